import { type Difference, differencesOf, isBelow, isUnfinished, type TreeEntry } from './tree-entry.ts';
import { pairTrees, type TreeEntries } from './tree-pairs.ts';

/** What becomes of a znode that the target has already, and that differs. */
export type Existing =
  /** Nothing is done at all. */
  | 'refuse'
  | 'overwrite'
  | 'skip'
  /** The newer one of the two wins, by the time of the last change. */
  | 'update';

export interface Policy {
  readonly existing: Existing;
  /** Takes away what only the target has. */
  readonly isMirror: boolean;
  /** Otherwise they are left out: they belong to sessions of the source. */
  readonly ephemeralsAsPersistent: boolean;
}

/** What is to be done at one path, so that the target becomes as the source. */
export type Step =
  | { readonly action: 'create'; readonly path: string; readonly entry: TreeEntry }
  | {
      readonly action: 'change';
      readonly path: string;
      readonly entry: TreeEntry;
      readonly what: readonly Difference[];
    }
  /** A copy that was interrupted has left it with an entry too many in its ACL. */
  | { readonly action: 'finish'; readonly path: string; readonly entry: TreeEntry }
  /** An ephemeral znode of the target makes room for one that stays. */
  | { readonly action: 'replace'; readonly path: string; readonly entry: TreeEntry }
  | { readonly action: 'delete'; readonly path: string }
  /** The target has another one, and the policy protects it. */
  | { readonly action: 'conflict'; readonly path: string; readonly what: readonly Difference[] }
  | { readonly action: 'leave'; readonly path: string; readonly reason: LeaveReason };

export type LeaveReason =
  | 'same'
  /** The source has an ephemeral one. */
  | 'ephemeral'
  /** --skip. */
  | 'skipped'
  /** --update. */
  | 'newer'
  /** Only the target has it. */
  | 'extra'
  /** Only the target has it, and it is an ephemeral one or has such below it: they belong to living sessions. */
  | 'in-use';

/**
 * Compares source and target, and reports step by step what is to be done: parents before their children, deletions the
 * other way round. When there is nothing but `leave`, the target is a copy: planning again is also how one verifies.
 */
export async function* plan(source: TreeEntries, target: TreeEntries, policy: Policy): AsyncGenerator<Step, void> {
  /** Znodes that only the target has, each below the one before; what becomes of them is known behind the last one below. */
  const extras: Extra[] = [];
  for await (const { path, left, right } of pairTrees(source, target)) {
    while (extras.length > 0 && !isBelow(path, extras.at(-1)?.path ?? '')) yield stepOfExtra(extras.pop() as Extra);
    const entry = left === null ? null : copyable(left, policy);
    if (left !== null && entry === null) yield { action: 'leave', path, reason: 'ephemeral' };
    if (entry !== null) yield stepOf(path, entry, right, policy);
    else if (right !== null && !policy.isMirror) {
      if (left === null) yield { action: 'leave', path, reason: 'extra' };
    } else if (right !== null && (left === null || right.kind !== 'ephemeral')) {
      extras.push({ path, isInUse: false });
      if (right.kind === 'ephemeral') for (const extra of extras) extra.isInUse = true;
    }
  }
  while (extras.length > 0) yield stepOfExtra(extras.pop() as Extra);
}

interface Extra {
  readonly path: string;
  isInUse: boolean;
}

function stepOfExtra({ path, isInUse }: Extra): Step {
  return isInUse ? { action: 'leave', path, reason: 'in-use' } : { action: 'delete', path };
}

/** @returns null for an ephemeral znode that is left out */
function copyable(entry: TreeEntry, { ephemeralsAsPersistent }: Policy): TreeEntry | null {
  if (entry.kind !== 'ephemeral') return entry;
  return ephemeralsAsPersistent ? { ...entry, kind: 'persistent' } : null;
}

function stepOf(path: string, entry: TreeEntry, target: TreeEntry | null, policy: Policy): Step {
  if (target === null) return { action: 'create', path, entry };
  const what = differencesOf(entry, target);
  if (what.length === 0) return { action: 'leave', path, reason: 'same' };
  if (what.length === 1 && what[0] === 'acl' && isUnfinished(entry, target)) return { action: 'finish', path, entry };
  switch (policy.existing) {
    case 'refuse':
      return { action: 'conflict', path, what };
    case 'skip':
      return { action: 'leave', path, reason: 'skipped' };
    case 'update':
      // An ACL has no time of its own: it follows data that are the same or newer.
      if (what.includes('data') && !isNewer(entry, target)) return { action: 'leave', path, reason: 'newer' };
      break;
    case 'overwrite':
  }
  return what.includes('kind') ? { action: 'replace', path, entry } : { action: 'change', path, entry, what };
}

function isNewer(entry: TreeEntry, target: TreeEntry): boolean {
  return entry.mtime !== null && target.mtime !== null && entry.mtime > target.mtime;
}
