import {
  type Acl,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  nullableBytes,
  type Stat,
} from '@meerkat/client';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { absolutePath, type TreeEntry } from './tree-entry.ts';

export interface TreeReading extends CallOptions {
  /** Reads ACLs as well: a request more for each znode. */
  readonly withAcl: boolean;
  /** False: the first znode alone. */
  readonly isRecursive: boolean;
  /** Not read, and nothing below it. Paths are those of entries. */
  readonly isLeftOut?: ((path: string) => boolean) | undefined;
}

/** Znodes that are asked for at once. */
const IN_FLIGHT_MAX = 128;

/**
 * Reads a znode and everything below it in tree order, many requests in flight. It is no snapshot: what changes meanwhile
 * is seen or not, and a znode that goes is left out. `/zookeeper` is no part of the root's tree.
 *
 * @param root absolute
 * @throws NoNodeError when the first znode is not there; CommandFailure when an ACL is shown in part only
 */
export async function* readTree(client: Client, root: string, reading: TreeReading): AsyncGenerator<TreeEntry, void> {
  const isWhole = client.chroot === '' && root === '/';
  /** What is still to be read, the next one last. Those near the end have been asked for. */
  const stack: Pending[] = [{ path: '/', found: null }];
  let asked = 0;
  while (stack.length > 0) {
    for (let i = stack.length - 1; i >= 0; i--) {
      const pending = stack[i];
      if (pending === undefined || pending.found !== null) continue;
      // The next one is asked for in any case: those in flight may all lie behind it.
      if (asked >= IN_FLIGHT_MAX && i < stack.length - 1) break;
      pending.found = begin(client, absolutePath(root, pending.path), reading);
      asked++;
    }
    const next = stack.pop();
    if (next?.found == null) return;
    const found = await next.found;
    asked--;
    if (found === null) {
      if (next.path === '/') throw new NoNodeError({ operation: 'get', path: root });
      continue;
    }
    for (let i = found.children.length - 1; i >= 0; i--) {
      const path = joinPath(next.path, found.children[i] ?? '');
      if ((isWhole && path === '/zookeeper') || reading.isLeftOut?.(path) === true) continue;
      stack.push({ path, found: null });
    }
    yield makeEntry(next.path, found);
  }
}

interface Pending {
  readonly path: string;
  found: Promise<Found | null> | null;
}

interface Found {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
  readonly acl: readonly Acl[] | null;
  /** Sorted. */
  readonly children: readonly string[];
}

/** An abandoned promise of a znode must not end the process. */
function begin(client: Client, path: string, reading: TreeReading): Promise<Found | null> {
  const found = readZnode(client, path, reading);
  found.catch(() => {});
  return found;
}

/** @returns null when it does not exist, or was deleted meanwhile */
async function readZnode(client: Client, path: string, reading: TreeReading): Promise<Found | null> {
  const { withAcl, isRecursive, signal, timeoutMs } = reading;
  const call: CallOptions = { signal, timeoutMs };
  try {
    const [{ data, stat }, acl] = await Promise.all([
      client.get(path, { ...call, codec: nullableBytes }),
      withAcl ? client.getAcl(path, call) : null,
    ]);
    if (acl !== null) refuseMasked(path, acl.acl);
    // Most znodes are leaves, and their Stat says so.
    const hasChildren = isRecursive && stat.numChildren > 0;
    const children = hasChildren ? (await client.children(path, call)).children.toSorted() : NO_CHILDREN;
    return { data, stat, acl: acl?.acl ?? null, children };
  } catch (error) {
    if (error instanceof NoNodeError) return null;
    throw error;
  }
}

const NO_CHILDREN: readonly string[] = [];

/** Without ADMIN permission the hash is masked, as `user:x`. Set elsewhere, such an ACL would lock every user out. */
function refuseMasked(path: string, acl: readonly Acl[]): void {
  if (!acl.some(({ scheme, id }) => scheme === 'digest' && id?.endsWith(':x') === true)) return;
  throw new CommandFailure(
    CommandExit.noAuth,
    `cannot read the ACL of ${path}: the service hides the hashes of passwords from who has no permission "a"; ` +
      '--auth gives credentials, --no-acl leaves ACLs out',
  );
}

function makeEntry(path: string, { data, stat, acl }: Found): TreeEntry {
  const kind = stat.isEphemeral ? 'ephemeral' : 'persistent';
  return { path, data, acl, kind, ttlMs: null, mtime: stat.mtime, stat };
}
