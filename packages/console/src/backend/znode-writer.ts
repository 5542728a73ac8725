import {
  type Acl,
  BadVersionError,
  type Client,
  type CreateOptions,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  parentOf,
  parsePerms,
} from '@meerkat/client';
import type { Changed, Extent, NewZnodeKind } from '../api/messages.ts';
import { Fields } from './fields.ts';
import { Refusal } from './refusal.ts';
import { deleteUnchanged, listTree, readTree, type SavedZnode, writeTree } from './saved-tree.ts';
import type { Undo } from './undo-slot.ts';
import type { Call } from './znode-reader.ts';

/** The result of a change, and how to undo it; null: not possible. */
export interface Change {
  readonly changed: Changed;
  readonly undo: Undo | null;
}

export async function createZnode(client: Client, fields: Fields, call: Call): Promise<Change> {
  const path = fields.path();
  const kind = fields.choice<NewZnodeKind>('kind', ['persistent', 'ephemeral', 'container', 'ttl'], 'persistent');
  const options: CreateOptions = {
    ...call,
    mode: kind === 'ttl' ? 'persistent' : kind,
    sequential: fields.flag('sequential'),
    ...(kind === 'ttl' ? { ttlMs: fields.number('ttlMs', 1) } : {}),
    ...(fields.has('acl') ? { acl: readAclField(fields) } : {}),
  };
  const data = fields.bytes('data');
  const created = await (fields.flag('parents')
    ? client.createParents(path, data, options)
    : client.create(path, data, options));
  const made = created.path;
  return undoable(made, 1, `delete ${made} again`, () => client.delete(made, { ...call, version: 0 }));
}

export async function setData(client: Client, fields: Fields, call: Call): Promise<Change> {
  const path = fields.path();
  const version = fields.number('version', -1);
  const before = await client.get(path, { ...call, codec: nullableBytes });
  if (version >= 0 && before.stat.version !== version) {
    throw new Refusal(409, 'BADVERSION', `${path} has version ${before.stat.version}, not ${version}`, path);
  }
  const stat = await client.set(path, fields.bytes('data'), { ...call, version: before.stat.version });
  return undoable(path, 1, `give ${path} the data of version ${before.stat.version} again`, async () => {
    await client.set(path, before.data, { ...call, version: stat.version });
  });
}

export async function setAcl(client: Client, fields: Fields, call: Call): Promise<Change> {
  const path = fields.path();
  const before = await client.getAcl(path, call);
  const acl = readAclField(fields);
  const stat = await client.setAcl(path, acl, { ...call, version: fields.number('version', -1) });
  return undoable(path, 1, `give ${path} its former ACL again`, async () => {
    await client.setAcl(path, before.acl, { ...call, version: stat.aversion });
  });
}

/** Deletes a znode, optionally with its subtree. */
export async function deleteZnode(client: Client, fields: Fields, call: Call): Promise<Change> {
  const path = fields.path();
  refuseSystem(path, 'delete');
  const saved = await saveForUndo(client, path, call);
  if (!fields.flag('recursive')) {
    await client.delete(path, { ...call, version: fields.number('version', -1, -1) });
    return restorable(client, path, 1, saved, call);
  }
  const znodes = await client.deleteRecursive(path);
  return restorable(client, path, znodes, saved, call);
}

/** Copies a tree to a path that does not exist yet. */
export async function copyTree(client: Client, fields: Fields, call: Call): Promise<Change> {
  const { from, to } = await checkTarget(client, fields, call);
  const { znodes } = await readWhole(client, from, call);
  await putCopy(client, to, znodes, call);
  const asMade = znodes.map(({ below }) => ({ below, version: 0 }));
  return undoable(to, znodes.length, `delete the copy ${to}`, () => deleteOrRefuse(client, to, asMade, call));
}

/** Copies a tree and then deletes the original: ZooKeeper has no move. Versions and times start over. */
export async function moveTree(client: Client, fields: Fields, call: Call): Promise<Change> {
  const { from, to } = await checkTarget(client, fields, call);
  refuseSystem(from, 'move');
  const { znodes, ephemerals } = await readWhole(client, from, call);
  if (ephemerals > 0) {
    const text = `${from} has ${ephemerals} ephemeral znodes, which belong to their sessions and cannot be moved`;
    throw new Refusal(409, 'ephemerals', text, from);
  }
  await putCopy(client, to, znodes, call);
  const changed = await deleteUnchanged(client, from, znodes, call);
  if (changed !== null) {
    const text = `${changed} was changed while ${from} was copied: what is left there stays, and so does the copy ${to}`;
    throw new Refusal(409, 'BADVERSION', text, changed);
  }
  return undoable(from, znodes.length, `move ${to} back to ${from}`, async () => {
    const back = await readWhole(client, to, call);
    await putCopy(client, from, back.znodes, call);
    await deleteOrRefuse(client, to, back.znodes, call);
  });
}

/** @throws Refusal which says where it has stopped */
async function deleteOrRefuse(
  client: Client,
  root: string,
  znodes: Parameters<typeof deleteUnchanged>[2],
  call: Call,
): Promise<void> {
  const changed = await deleteUnchanged(client, root, znodes, call);
  if (changed === null) return;
  throw new Refusal(409, 'BADVERSION', `${changed} was changed since, and stays with what is above it`, changed);
}

/** Deletes what an import has created below a path. */
export function undoOfImport(client: Client, made: readonly string[], call: Call): Change['undo'] {
  const znodes = made.map((path) => ({ below: path, version: 0 }));
  return {
    text: `delete the ${made.length} imported znodes`,
    run: () => deleteOrRefuse(client, '/', znodes, call),
  };
}

/**
 * A copy that cannot be completed, for instance because one of its ACLs forbids creating children, is deleted again.
 */
async function putCopy(client: Client, to: string, znodes: readonly SavedZnode[], call: Call): Promise<void> {
  const made: string[] = [];
  try {
    await writeTree(client, to, znodes, call, made);
  } catch (error) {
    // What others have created in between stays.
    const ours = made.map((path) => ({ below: path, version: 0 }));
    await deleteUnchanged(client, '/', ours, call).catch(() => {});
    throw error;
  }
}

export async function measureExtent(client: Client, path: string, call: Call): Promise<Extent> {
  const { entries, isCut } = await listTree(client, path, EXTENT_MAX, call);
  return {
    znodes: entries.length,
    bytes: entries.reduce((sum, { stat }) => sum + stat.dataLength, 0),
    ephemerals: entries.filter(({ stat }) => stat.isEphemeral).length,
    sample: entries.slice(0, 50).map((entry) => entry.path),
    isCut,
  };
}

export function readAclField(fields: Fields): Acl[] {
  return fields.list('acl').map((entry) => {
    const of = new Fields(entry);
    return { perms: parsePerms(of.text('perms')), scheme: of.text('scheme'), id: of.text('id', '') };
  });
}

async function checkTarget(client: Client, fields: Fields, call: Call): Promise<{ from: string; to: string }> {
  const from = fields.path('from');
  const to = fields.path('to');
  if (to === from || to.startsWith(from === '/' ? '/' : `${from}/`)) {
    throw new Refusal(400, 'into-itself', `${to} is in ${from}, which cannot be put into itself`, to);
  }
  if ((await client.exists(to, call)) !== null) {
    throw new Refusal(409, 'NODEEXISTS', `${to} is there already: choose another name, or delete it first`, to);
  }
  const parent = parentOf(to);
  if (parent !== '/' && (await client.exists(parent, call)) === null) {
    throw new Refusal(404, 'NONODE', `${parent}, which ${to} would be in, is not there`, parent);
  }
  return { from, to };
}

async function readWhole(client: Client, path: string, call: Call) {
  const tree = await readTree(client, path, { znodesMax: COPY_MAX, bytesMax: COPY_BYTES_MAX }, call);
  if (tree === null) {
    const text = `${path} has more than ${COPY_MAX} znodes or ${COPY_BYTES_MAX >> 20} MiB: use "meerkat cp" or "meerkat mv"`;
    throw new Refusal(413, 'too-large', text, path);
  }
  return tree;
}

function refuseSystem(path: string, what: string): void {
  if (path === '/' || path === '/zookeeper' || path.startsWith('/zookeeper/')) {
    throw new Refusal(400, 'system', `${path} belongs to ZooKeeper itself: the console does not ${what} it`, path);
  }
}

interface Saved {
  readonly znodes: readonly SavedZnode[] | null;
  readonly ephemerals: number;
}

/** The znodes to be deleted, as far as they can be read and restored. */
async function saveForUndo(client: Client, path: string, call: Call): Promise<Saved> {
  try {
    const tree = await readTree(client, path, { znodesMax: UNDO_MAX, bytesMax: UNDO_BYTES_MAX }, call);
    return { znodes: tree?.znodes ?? null, ephemerals: tree?.ephemerals ?? 0 };
  } catch (error) {
    if (error instanceof NoNodeError) throw error;
    return { znodes: null, ephemerals: 0 };
  }
}

function restorable(client: Client, path: string, count: number, saved: Saved, call: Call): Change {
  if (saved.znodes === null) {
    const noUndo = `it is too large to be kept, or was not readable as a whole`;
    return { changed: { path, znodes: count, undo: null, noUndo }, undo: null };
  }
  if (saved.ephemerals > 0 && saved.znodes.length === 0) {
    const noUndo = 'an ephemeral znode belongs to its session, which alone can create it again';
    return { changed: { path, znodes: count, undo: null, noUndo }, undo: null };
  }
  const { znodes } = saved;
  const without = saved.ephemerals > 0 ? `, without ${saved.ephemerals} ephemeral ones` : '';
  return undoable(path, count, `create ${path} and what was below it again${without}`, async () => {
    await putCopy(client, path, znodes, call);
  });
}

function undoable(path: string, znodes: number, text: string, run: () => Promise<void>): Change {
  const undo: Undo = {
    text,
    async run() {
      try {
        await run();
      } catch (error) {
        if (error instanceof BadVersionError || error instanceof NodeExistsError || error instanceof NoNodeError) {
          const found = 'the tree has changed since: nothing was undone';
          throw new Refusal(409, error.code, `${found} (${error.message})`, path);
        }
        throw error;
      }
    },
  };
  return { changed: { path, znodes, undo: text, noUndo: null }, undo };
}

const EXTENT_MAX = 20_000;
const UNDO_MAX = 10_000;
const UNDO_BYTES_MAX = 16 << 20;
const COPY_MAX = 100_000;
const COPY_BYTES_MAX = 128 << 20;
