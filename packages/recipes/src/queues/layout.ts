import { joinPath } from '@meerkat/client';
import { checkLayout } from '../kernel/layout.ts';
import { compareSequences, sequenceOf, withoutSequence } from '../kernel/sequence.ts';

/**
 * The layout of a queue: the names of the znodes and their data.
 *
 * | layout | shared with | items | leases | data |
 * |---|---|---|---|---|
 * | `curator` | DistributedQueue and its kin | `<path>/queue-…` | `<leasesPath>/<item>`, Curator's lock path | envelope |
 * | `curator-simple` | SimpleDistributedQueue | `<path>/qn-…` | theirs has none | plain |
 * | `kazoo` | Queue | `<path>/entry-<priority>-…` | theirs has none | plain |
 * | `kazoo-locking` | LockingQueue | `<path>/entries/entry-<priority>-…` | `<path>/taken/<item>` | plain |
 */
export type QueueLayout = 'curator' | 'curator-simple' | 'kazoo' | 'kazoo-locking';

/** How a queue's items are ordered, and how their names encode that. */
export interface ItemNaming {
  /** The prefix of every item's name; other znodes are ignored. */
  readonly prefix: string;
  /** Smaller ones come first; among equals the older. */
  rankOf(name: string): number;
  /** When the item may be taken, milliseconds since 1970 by the clock of the service; 0 for at once. */
  dueMsOf(name: string): number;
}

/** The paths of a queue's znodes. */
export interface QueuePaths {
  readonly items: string;
  readonly leases: string;
  /**
   * Used by this package only: waiting `consumers` and `producers`, and `tallies`. Beside the queue, so that they are
   * not taken for items.
   */
  readonly lines: string;
  readonly consumers: string;
  readonly producers: string;
  readonly tallies: string;
}

export function makePaths(path: string, layout: QueueLayout, leasesPath: string | undefined): QueuePaths {
  checkLayout(layout, QUEUE_LAYOUTS);
  const isLocking = layout === 'kazoo-locking';
  const lines = isLocking ? joinPath(path, 'lines') : `${path}-lines`;
  return {
    items: isLocking ? joinPath(path, 'entries') : path,
    leases: leasesPath ?? (isLocking ? joinPath(path, 'taken') : `${path}-leases`),
    lines,
    consumers: joinPath(lines, 'consumers'),
    producers: joinPath(lines, 'producers'),
    tallies: joinPath(lines, 'tallies'),
  };
}

/** Curator wraps items in an envelope, in all of its queues but the simple one. */
export function hasEnvelope(layout: QueueLayout): boolean {
  return layout === 'curator';
}

const QUEUE_LAYOUTS: readonly QueueLayout[] = ['curator', 'curator-simple', 'kazoo', 'kazoo-locking'];

const PREFIXES: Readonly<Record<QueueLayout, string>> = {
  curator: 'queue-',
  'curator-simple': 'qn-',
  kazoo: 'entry-',
  'kazoo-locking': 'entry-',
};

export function isKazoo(layout: QueueLayout): boolean {
  return layout === 'kazoo' || layout === 'kazoo-locking';
}

/** First in, first out. kazoo's items have a priority nevertheless: 100 by default. */
export function fifoNaming(layout: QueueLayout): ItemNaming {
  if (isKazoo(layout)) return priorityNaming(layout);
  return { prefix: PREFIXES[layout], rankOf: () => 0, dueMsOf: () => 0 };
}

/** The part of an item's name before the number. */
export function fifoStem(layout: QueueLayout): string {
  return isKazoo(layout) ? priorityStem(layout, KAZOO_PRIORITY_DEFAULT) : PREFIXES[layout];
}

/**
 * Smaller priorities first.
 *
 *     queue-1000000070000000012    Curator: sign (0 is negative), 32 bits in hexadecimal digits
 *     entry-007-0000000012         kazoo: 0 to 999
 */
export function priorityNaming(layout: QueueLayout): ItemNaming {
  const prefix = PREFIXES[layout];
  const rankOf = isKazoo(layout) ? kazooPriorityOf : curatorPriorityOf;
  return { prefix, rankOf: (name) => rankOf(withoutSequence(name).slice(prefix.length)), dueMsOf: () => 0 };
}

export function priorityStem(layout: QueueLayout, priority: number): string {
  if (isKazoo(layout)) {
    if (!Number.isInteger(priority) || priority < 0 || priority > KAZOO_PRIORITY_MAX) {
      throw new RangeError(`a priority of a kazoo queue is a whole number from 0 to 999, not ${priority}`);
    }
    return `${PREFIXES[layout]}${String(priority).padStart(3, '0')}-`;
  }
  if (priority !== (priority | 0)) throw new RangeError(`a priority is a whole number of 32 bits, not ${priority}`);
  return `${PREFIXES[layout]}${priority >= 0 ? '1' : '0'}${hex8(priority >>> 0)}`;
}

/** `queue-|18C2F0A3B40|0000000012`: the time before which it must not be taken, in hexadecimal digits. */
export const DELAY_NAMING: ItemNaming = {
  prefix: PREFIXES.curator,
  rankOf: dueMsOf,
  dueMsOf,
};

export function delayStem(dueMs: number): string {
  if (!Number.isSafeInteger(dueMs) || dueMs <= 0) {
    throw new RangeError(`an item is due at a whole number of milliseconds since 1970, not ${dueMs}`);
  }
  return `${PREFIXES.curator}|${hex8(dueMs)}|`;
}

/** `queue-|order-7|0000000012`. */
export function idStem(id: string): string {
  if (id === '') throw new RangeError('the id of an item has at least one character');
  return `${PREFIXES.curator}|${fixId(id)}|`;
}

/** An id as encoded by Curator: a znode name without separators. */
export function fixId(id: string): string {
  return id.replaceAll('/', '_').replaceAll('|', '_');
}

/** The id in an item's name; null when it has none. */
export function idOf(name: string): string | null {
  const first = name.indexOf('|');
  const second = name.indexOf('|', first + 1);
  return first < 0 || second < 0 ? null : name.slice(first + 1, second);
}

/** The items among the children of a queue, in order. */
export function orderedItems(naming: ItemNaming, children: readonly string[]): string[] {
  const items: Array<{ readonly name: string; readonly rank: number; readonly sequence: number }> = [];
  for (const name of children) {
    const sequence = name.startsWith(naming.prefix) ? sequenceOf(name) : null;
    if (sequence !== null) items.push({ name, rank: naming.rankOf(name), sequence });
  }
  items.sort((a, b) => a.rank - b.rank || compareSequences(a.sequence, b.sequence));
  return items.map(({ name }) => name);
}

/** As parsed by Curator: the text between the last two separators; 0 when that is not a number. */
function dueMsOf(name: string): number {
  const last = name.lastIndexOf('|');
  const first = last > 0 ? name.lastIndexOf('|', last - 1) : -1;
  if (first <= 0) return 0;
  const digits = name.slice(first + 1, last);
  return HEX.test(digits) ? Number.parseInt(digits, 16) : 0;
}

function curatorPriorityOf(text: string): number {
  if (!/^[01][0-9A-F]{8}$/.test(text)) return 0;
  return Number.parseInt(text.slice(1), 16) | 0;
}

function kazooPriorityOf(text: string): number {
  const match = /^(\d{3})-/.exec(text);
  return match === null ? KAZOO_PRIORITY_DEFAULT : Number(match[1]);
}

function hex8(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, '0');
}

const HEX = /^[0-9A-Fa-f]+$/;
const KAZOO_PRIORITY_DEFAULT = 100;
const KAZOO_PRIORITY_MAX = 999;
