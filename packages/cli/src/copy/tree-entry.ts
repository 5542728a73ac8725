import { type Acl, formatPerms, Perm, type Stat } from '@meerkat/client';
import type { ZnodeKind } from '../archive/znode-kind.ts';

/** A znode of a tree that is copied, compared, written to a file or read from one. */
export interface TreeEntry {
  /** From the root of that tree: "/" is the root itself, "/a/b" is below it. */
  readonly path: string;
  /** null and empty are different values in ZooKeeper. */
  readonly data: Uint8Array | null;
  /** null: not known, or not asked for. */
  readonly acl: readonly Acl[] | null;
  readonly kind: ZnodeKind;
  /** Milliseconds; null unless the kind is 'ttl'. */
  readonly ttlMs: number | null;
  /** When the data last changed, by the clock of its service; milliseconds. null: a file does not say. */
  readonly mtime: number | null;
  /** Of a service; null from a file. */
  readonly stat: Stat | null;
}

/** In what two znodes of one path can differ. */
export type Difference = 'data' | 'acl' | 'kind';

export function differencesOf(a: TreeEntry, b: TreeEntry): readonly Difference[] {
  const differences: Difference[] = [];
  if (!isSameData(a.data, b.data)) differences.push('data');
  if (!isSameAcl(a.acl, b.acl)) differences.push('acl');
  // The other kinds look the same from outside.
  if ((a.kind === 'ephemeral') !== (b.kind === 'ephemeral')) differences.push('kind');
  return differences;
}

function isSameData(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : a.length === b.length && Buffer.compare(a, b) === 0;
}

/** The order of entries means nothing, nor does saying one twice. What is not known does not differ. */
function isSameAcl(a: readonly Acl[] | null, b: readonly Acl[] | null): boolean {
  if (a === null || b === null) return true;
  // `auth` stands for the creator of the znode: the service puts identities in its place.
  if (a.some(isAuth) || b.some(isAuth)) return true;
  const [left, right] = [new Set(a.map(aclEntryText)), new Set(b.map(aclEntryText))];
  return left.size === right.size && [...left].every((text) => right.has(text));
}

/** What an entry allows that a parent has only until everything below it is copied. */
export const PASSAGE_PERMS: number = Perm.create | Perm.admin;

/** Whether a znode is as its source but for such entries: the copy was interrupted. */
export function isUnfinished(source: TreeEntry, target: TreeEntry): boolean {
  const [wanted, found] = [source.acl ?? [], target.acl ?? []];
  const texts = found.map(aclEntryText);
  const isWhole = wanted.every((entry) => texts.includes(aclEntryText(entry)));
  const wantedTexts = wanted.map(aclEntryText);
  const extra = found.filter((entry) => !wantedTexts.includes(aclEntryText(entry)));
  return isWhole && extra.length > 0 && extra.every(({ perms }) => perms === PASSAGE_PERMS);
}

function isAuth({ scheme }: Acl): boolean {
  return scheme === 'auth';
}

/** As people write it: `digest:ann:…:cdrwa`. Bits that have no letter are added as a number. */
export function aclEntryText({ scheme, id, perms }: Acl): string {
  const rest = perms & ~0x1f;
  return `${scheme}:${id}:${formatPerms(perms)}${rest === 0 ? '' : `+${rest}`}`;
}

/**
 * The order in which trees are read and written: parents before what is below them, siblings by the UTF-16 code units of
 * their names. @returns less than 0 when `a` comes first
 */
export function compareInTreeOrder(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    // A name ends here on one side: what is below it comes before siblings that only begin with it.
    if (left !== right) return (left === SLASH ? -1 : left) - (right === SLASH ? -1 : right);
  }
  return a.length - b.length;
}

const SLASH = 0x2f;

/** Whether a path lies below another one, at any depth. */
export function isBelow(path: string, ancestor: string): boolean {
  if (ancestor === '/') return path !== '/';
  return path.length > ancestor.length && path.charCodeAt(ancestor.length) === SLASH && path.startsWith(ancestor);
}

/** The absolute path of an entry of the tree with that root. */
export function absolutePath(root: string, path: string): string {
  if (path === '/') return root;
  return root === '/' ? path : root + path;
}
