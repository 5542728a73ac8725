import type { WatchEvent, WatchGap } from '@meerkat/client';
import type { Seen } from './picture.ts';

/** What a row of `watch` reports. */
export interface Change {
  /** When this program learned of it, by the clock of this machine. Milliseconds. */
  readonly timeMs: number;
  readonly kind: WatchEvent['type'] | 'gap';
  readonly path: string;
  /** Of the txn that made the change; null when the server does not report it and it cannot be determined. */
  readonly zxid: bigint | null;
  /** Whether the server reported it, or it was found by comparison after a gap. */
  readonly source: 'event' | 'comparison';
  readonly before: Seen | null;
  readonly after: Seen | null;
  readonly value: ValueKnowledge;
  /** Of `children`: names. */
  readonly came: readonly string[];
  readonly went: readonly string[];
  /** Of a gap. */
  readonly reason: WatchGap['reason'] | null;
  /** Of a gap: events that were dropped; null when unknown. */
  readonly missed: number | null;
}

/**
 * What `after` is to the change. An event does not bring the data: they are read behind it, and may have changed again.
 *
 * - exact: what the change has made.
 * - later: already what a later change has made.
 * - known: what the row of an earlier change has shown already.
 * - passed: nothing; the znode was changed again or deleted before it could be read.
 * - none: nothing; not asked for, or no permission.
 */
export type ValueKnowledge = 'exact' | 'later' | 'known' | 'passed' | 'none';

const PLAIN = {
  source: 'event',
  before: null,
  after: null,
  value: 'none',
  came: [],
  went: [],
  reason: null,
  missed: null,
} as const;

export function gapChange(gap: WatchGap, path: string, timeMs: number): Change {
  return { ...PLAIN, timeMs, kind: 'gap', path, zxid: null, reason: gap.reason, missed: gap.missed };
}

/** An event of which nothing more is known. */
export function plainChange(event: WatchEvent, timeMs: number, value: 'none' | 'passed' = 'none'): Change {
  return { ...PLAIN, timeMs, kind: event.type, path: event.path, zxid: event.zxid, value };
}

export function deletion(event: WatchEvent, timeMs: number, before: Seen | null): Change {
  return { ...plainChange(event, timeMs), before };
}

/** A creation or a change of data, and the znode as it was read behind it. */
export function writing(event: WatchEvent, timeMs: number, before: Seen | null, after: Seen): Change {
  const isCreation = event.type === 'created';
  const change = { ...plainChange(event, timeMs), before, after };
  if (before !== null && before.mzxid === after.mzxid) return { ...change, value: 'known' };
  const made = isCreation ? after.czxid : after.mzxid;
  // One more than before, or the first of all: nothing can have come in between.
  const isNext = isCreation
    ? before === null && after.version === 0
    : before !== null && before.czxid === after.czxid && after.version === before.version + 1;
  const zxid = event.zxid ?? (isNext ? made : null);
  const isExact = event.zxid === null ? isNext : event.zxid === made && (!isCreation || after.version === 0);
  return { ...change, zxid, value: isExact ? 'exact' : 'later' };
}

/** Children came or went. */
export function childrenChange(
  event: WatchEvent,
  timeMs: number,
  before: readonly string[],
  after: readonly string[],
): Change {
  return { ...plainChange(event, timeMs), ...compareNames(before, after) };
}

/** What a look at a znode reports behind a gap; null when it is as it was. */
export function found(path: string, timeMs: number, before: Seen | null, after: Seen | null): Change | null {
  const change = { ...PLAIN, timeMs, path, source: 'comparison', before, after } as const;
  if (after === null) return before === null ? null : { ...change, kind: 'deleted', zxid: null };
  if (before?.mzxid === after.mzxid && before.czxid === after.czxid) return null;
  if (before === null) return { ...change, kind: 'created', zxid: after.czxid, value: 'exact' };
  return { ...change, kind: 'changed', zxid: after.mzxid, value: 'exact' };
}

/** The same of its children. */
export function foundChildren(
  path: string,
  timeMs: number,
  before: readonly string[],
  after: readonly string[],
): Change | null {
  const names = compareNames(before, after);
  if (names.came.length + names.went.length === 0) return null;
  return { ...PLAIN, timeMs, kind: 'children', path, zxid: null, source: 'comparison', ...names };
}

function compareNames(
  before: readonly string[],
  after: readonly string[],
): { readonly came: readonly string[]; readonly went: readonly string[] } {
  const [old, now] = [new Set(before), new Set(after)];
  return {
    came: after.filter((name) => !old.has(name)).toSorted(),
    went: before.filter((name) => !now.has(name)).toSorted(),
  };
}
