import type { Column } from '../output/column.ts';
import { count } from '../output/stat-columns.ts';
import type { Step } from './plan.ts';

/** How many znodes had what done to them, or are to have. */
export interface Counts {
  create: number;
  change: number;
  replace: number;
  finish: number;
  delete: number;
  conflict: number;
  same: number;
  skipped: number;
  newer: number;
  extra: number;
  'in-use': number;
  ephemeral: number;
}

/** Adds up a plan. */
export class CopyTally {
  readonly counts: Counts = {
    create: 0,
    change: 0,
    replace: 0,
    finish: 0,
    delete: 0,
    conflict: 0,
    same: 0,
    skipped: 0,
    newer: 0,
    extra: 0,
    'in-use': 0,
    ephemeral: 0,
  };

  add(step: Step): void {
    this.counts[step.action === 'leave' ? step.reason : step.action]++;
  }

  /** Znodes that are written or deleted. */
  get writes(): number {
    const { create, change, replace, finish, delete: deleted } = this.counts;
    return create + change + replace + finish + deleted;
  }

  /** Everything that was looked at. */
  get total(): number {
    return Object.values(this.counts).reduce((sum: number, number: number) => sum + number, 0);
  }

  /** What is left of a plan when the work is done: 0 when the target is a copy. */
  get open(): number {
    return this.writes + this.counts.conflict;
  }
}

/** How a copy ended. */
export interface CopyResult {
  readonly source: string;
  readonly target: string;
  readonly counts: Readonly<Counts>;
  readonly isDryRun: boolean;
  /** null: not counted. */
  readonly isVerified: boolean | null;
}

export const COPY_COLUMNS: readonly Column<CopyResult>[] = [
  { name: 'source', value: ({ source }) => source },
  { name: 'target', value: ({ target }) => target },
  { name: 'created', value: ({ counts }) => counts.create },
  { name: 'changed', value: ({ counts }) => counts.change + counts.replace + counts.finish },
  { name: 'deleted', value: ({ counts }) => counts.delete },
  { name: 'same', value: ({ counts }) => counts.same },
  { name: 'skipped', value: ({ counts }) => counts.skipped },
  { name: 'newer', value: ({ counts }) => counts.newer },
  { name: 'extra', value: ({ counts }) => counts.extra },
  { name: 'inUse', value: ({ counts }) => counts['in-use'] },
  { name: 'ephemerals', value: ({ counts }) => counts.ephemeral },
  { name: 'verified', value: ({ isVerified }) => isVerified },
];

/** @returns `12 created, 3 the same` */
export function describeCounts(counts: Readonly<Counts>): string {
  const parts = [
    part(counts.create, 'created'),
    part(counts.change + counts.replace, 'changed'),
    part(counts.finish, 'finished, the ACL was still to be set'),
    part(counts.delete, 'deleted'),
    part(counts.same, 'the same before'),
    part(counts.skipped, 'skipped, they differ'),
    part(counts.newer, 'newer in the target, left as they are'),
    part(counts.extra, 'only in the target, left there (--delete deletes such)'),
    part(counts['in-use'], 'only in the target, left there: ephemeral, or with ephemeral ones below'),
    part(counts.ephemeral, 'ephemeral, left out (--ephemerals-as-persistent takes them along)'),
  ].filter((text) => text !== null);
  return parts.length === 0 ? 'nothing there' : parts.join(', ');
}

function part(number: number, what: string): string | null {
  return number === 0 ? null : `${count(number)} ${what}`;
}
