import {
  type Acl,
  type Client,
  joinPath,
  NoAuthError,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  type Stat,
} from '@meerkat/client';
import type { Call } from './znode-reader.ts';

/** A znode that is kept to be created somewhere. */
export interface SavedZnode {
  /** Below the root of the tree: '' is the root itself. */
  readonly below: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
}

/** Everything at and below a path, parents before children. @throws NoNodeError when the path itself is not there */
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
    // It has gone meanwhile.
    if (error instanceof NoNodeError && path !== root) return null;
    if (!(error instanceof NoAuthError)) throw error;
    const stat = await client.exists(path, call);
    return stat === null ? null : { path, stat, children: [] };
  }
}

/**
 * Reads a tree whole, but for ephemeral znodes, which are counted.
 *
 * @returns null when it is larger than that
 * @throws NoNodeError, NoAuthError
 */
export async function readTree(
  client: Client,
  root: string,
  { znodesMax, bytesMax }: { readonly znodesMax: number; readonly bytesMax: number },
  call: Call,
): Promise<{ readonly znodes: readonly SavedZnode[]; readonly ephemerals: number } | null> {
  const { entries, isCut } = await listTree(client, root, znodesMax, call);
  if (isCut || entries.reduce((sum, { stat }) => sum + stat.dataLength, 0) > bytesMax) return null;
  const lasting = entries.filter(({ stat }) => !stat.isEphemeral);
  const znodes: SavedZnode[] = [];
  for (let i = 0; i < lasting.length; i += BATCH) {
    const found = await Promise.all(
      lasting.slice(i, i + BATCH).map(async ({ path }): Promise<SavedZnode | null> => {
        try {
          const [{ data }, { acl }] = await Promise.all([
            client.get(path, { ...call, codec: nullableBytes }),
            client.getAcl(path, call),
          ]);
          return { below: path === root ? '' : path.slice(root === '/' ? 0 : root.length), data, acl };
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
 * Creates a tree, parents before children. It is not one change: others see it grow.
 *
 * @param mayExist true: what is there already is left as it is
 * @throws NodeExistsError when the root is there and must not be
 */
export async function writeTree(
  client: Client,
  root: string,
  znodes: readonly SavedZnode[],
  call: Call,
  mayExist = false,
): Promise<number> {
  let created = 0;
  for (let i = 0; i < znodes.length; ) {
    // Of one depth: none of them is the parent of another one.
    const depth = depthOf(znodes[i]!);
    const batch: SavedZnode[] = [];
    while (i < znodes.length && batch.length < BATCH && depthOf(znodes[i]!) === depth) batch.push(znodes[i++]!);
    const made = await Promise.all(
      batch.map(async ({ below, data, acl }) => {
        try {
          await client.create(root === '/' ? below : `${root}${below}`, data, { ...call, acl });
          return 1;
        } catch (error) {
          if (mayExist && error instanceof NodeExistsError) return 0;
          throw error;
        }
      }),
    );
    created += made.reduce<number>((sum, one) => sum + one, 0);
  }
  return created;
}

function depthOf({ below }: SavedZnode): number {
  let depth = 0;
  for (const letter of below) if (letter === '/') depth++;
  return depth;
}

const BATCH = 100;
