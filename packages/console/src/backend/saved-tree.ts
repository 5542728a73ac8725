import {
  type Acl,
  BadVersionError,
  type Client,
  joinPath,
  NoAuthError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  nullableBytes,
  type Stat,
} from '@meerkat/client';
import type { Call } from './znode-reader.ts';

/** A znode saved for a later creation. */
export interface SavedZnode {
  /** Relative to the root of the tree: '' is the root itself. */
  readonly below: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
}

/** A znode that was read, with its version, to detect later changes. */
export interface ReadZnode extends SavedZnode {
  readonly version: number;
}

/**
 * The path and everything below it, parents before children.
 *
 * @throws NoNodeError when the path itself does not exist
 */
export async function listTree(
  client: Client,
  root: string,
  max: number,
  call: Call,
): Promise<{ readonly entries: readonly { readonly path: string; readonly stat: Stat }[]; readonly isCut: boolean }> {
  const entries: { path: string; stat: Stat }[] = [];
  let level = [root];
  let isCut = false;
  while (level.length > 0) {
    const next: string[] = [];
    for (let i = 0; i < level.length; i += BATCH) {
      const found = await Promise.all(level.slice(i, i + BATCH).map((path) => readChildren(client, path, root, call)));
      for (const entry of found) {
        if (entry === null) continue;
        entries.push({ path: entry.path, stat: entry.stat });
        for (const name of entry.children) next.push(joinPath(entry.path, name));
      }
    }
    isCut = entries.length + next.length > max;
    level = isCut ? [] : next.sort();
  }
  return { entries, isCut };
}

async function readChildren(client: Client, path: string, root: string, call: Call) {
  try {
    const { children, stat } = await client.children(path, call);
    return { path, stat, children };
  } catch (error) {
    // It was deleted meanwhile.
    if (error instanceof NoNodeError && path !== root) return null;
    if (!(error instanceof NoAuthError)) throw error;
    const stat = await client.exists(path, call);
    return stat === null ? null : { path, stat, children: [] };
  }
}

/**
 * Reads a complete tree, except for ephemeral znodes, which are counted.
 *
 * @returns null when it is larger than that
 * @throws NoNodeError, NoAuthError
 */
export async function readTree(
  client: Client,
  root: string,
  { znodesMax, bytesMax }: { readonly znodesMax: number; readonly bytesMax: number },
  call: Call,
): Promise<{ readonly znodes: readonly ReadZnode[]; readonly ephemerals: number } | null> {
  const { entries, isCut } = await listTree(client, root, znodesMax, call);
  if (isCut || entries.reduce((sum, { stat }) => sum + stat.dataLength, 0) > bytesMax) return null;
  const lasting = entries.filter(({ stat }) => !stat.isEphemeral);
  const znodes: ReadZnode[] = [];
  for (let i = 0; i < lasting.length; i += BATCH) {
    const found = await Promise.all(
      lasting.slice(i, i + BATCH).map(async ({ path }): Promise<ReadZnode | null> => {
        try {
          const [{ data, stat }, { acl }] = await Promise.all([
            client.get(path, { ...call, codec: nullableBytes }),
            client.getAcl(path, call),
          ]);
          return {
            below: path === root ? '' : path.slice(root === '/' ? 0 : root.length),
            data,
            acl,
            version: stat.version,
          };
        } catch (error) {
          if (error instanceof NoNodeError && path !== root) return null;
          throw error;
        }
      }),
    );
    for (const znode of found) if (znode !== null) znodes.push(znode);
  }
  return { znodes, ephemerals: entries.length - lasting.length };
}

/**
 * Creates a tree, parents before children. Not atomic: other clients see partial results.
 *
 * @param made receives the paths that were created, parents before children, also when it fails
 * @param mayExist true: existing znodes are left unchanged
 * @throws NodeExistsError when a znode exists and must not
 */
export async function writeTree(
  client: Client,
  root: string,
  znodes: readonly SavedZnode[],
  call: Call,
  made: string[],
  mayExist = false,
): Promise<void> {
  for (let i = 0; i < znodes.length; ) {
    // Of one depth: none of them is the parent of another one.
    const depth = depthOf(znodes[i]!);
    const batch: SavedZnode[] = [];
    while (i < znodes.length && batch.length < BATCH && depthOf(znodes[i]!) === depth) batch.push(znodes[i++]!);
    const outcomes = await Promise.allSettled(
      batch.map(async ({ below, data, acl }) => {
        const path = placeOf(root, below);
        // The root of all trees always exists.
        if (mayExist && path === '/') return;
        try {
          await client.create(path, data, { ...call, acl });
          made.push(path);
        } catch (error) {
          if (!(mayExist && error instanceof NodeExistsError)) throw error;
        }
      }),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

/**
 * Deletes what was read or written, children before parents, if it is unchanged.
 *
 * @param znodes parents before children
 * @returns the first path that was found changed, where it has stopped; null: all is deleted
 */
export async function deleteUnchanged(
  client: Client,
  root: string,
  znodes: readonly Pick<ReadZnode, 'below' | 'version'>[],
  call: Call,
): Promise<string | null> {
  for (let i = znodes.length; i > 0; ) {
    const depth = depthOf(znodes[i - 1]!);
    const batch: Pick<ReadZnode, 'below' | 'version'>[] = [];
    while (i > 0 && batch.length < BATCH && depthOf(znodes[i - 1]!) === depth) batch.push(znodes[--i]!);
    const changed = await Promise.all(
      batch.map(async ({ below, version }) => {
        const path = placeOf(root, below);
        try {
          await client.delete(path, { ...call, version });
          return null;
        } catch (error) {
          if (error instanceof NoNodeError) return null;
          if (error instanceof BadVersionError || error instanceof NotEmptyError) return path;
          throw error;
        }
      }),
    );
    const first = changed.find((path) => path !== null);
    if (first !== undefined) return first;
  }
  return null;
}

function placeOf(root: string, below: string): string {
  return root === '/' ? below || '/' : `${root}${below}`;
}

function depthOf({ below }: Pick<SavedZnode, 'below'>): number {
  let depth = 0;
  for (const letter of below) if (letter === '/') depth++;
  return depth;
}

const BATCH = 100;
