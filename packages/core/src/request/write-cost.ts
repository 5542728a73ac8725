/** The cost of writes in units of the work meter, and the pauses of clients whose writes cost too much. */
import { type MultiOp, OpCode, type Txn, type WriteRequest } from '@meerkat/protocol';
import { SHORT_PATH_CHARS, weightOf, weightOfAll } from '../tree/change-weight.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import { COST_MAX } from './waiting-requests.ts';
import type { WorkMeter } from './work-meter.ts';

type CostOfWatches = Pick<WatchManager, 'costOf' | 'eventCountOf'>;

/**
 * Adds the cost of a write until it is logged.
 *
 * @returns units for its path and its events; the events are charged where they are sent
 */
export function addWrite(write: WriteRequest, work: WorkMeter, watches: CostOfWatches): number {
  return addWork(write, work, watches) + eventUnitsOf(write, watches);
}

/** The same for a multi. Stops counting events once it is costly enough to be applied alone. */
export function addMulti(ops: readonly MultiOp[], work: WorkMeter, watches: CostOfWatches): number {
  let units = ops.length > SHORT_MULTI_PARTS ? COSTLY_UNITS : 0;
  for (const op of ops) {
    units += addWork(op, work, watches);
    if (units < COSTLY_UNITS) units += eventUnitsOf(op, watches);
  }
  return units;
}

/**
 * Adds the cost of a write or an operation of a multi. A long path costs more: it is looked up, hashed and logged
 * several times, and its ancestors may have recursive watches.
 *
 * @returns units for its path
 */
function addWork({ path }: WriteRequest | MultiOp, work: WorkMeter, watches: CostOfWatches): number {
  work.add(PREPARE_UNITS);
  if (path.length <= SHORT_PATH_CHARS) return 0;
  const units = (path.length >> CHARS_PER_UNIT_SHIFT) + watches.costOf(path);
  work.add(units);
  return units;
}

function eventUnitsOf(write: WriteRequest | MultiOp, watches: CostOfWatches): number {
  return watches.eventCountOf(write) >> EVENTS_PER_UNIT_SHIFT;
}

/** Cost of applying a txn, without its events, and of answering it. */
export function unitsOf(txn: Txn): number {
  if (txn.type === OpCode.multi) return APPLY_UNITS * weightOfAll(txn.txns);
  return APPLY_UNITS * ('path' in txn ? weightOf(txn.path) : 1);
}

/** The cost of a waiting write by the units of its path and events: a costly one fills the limit of its client. */
export function costOf(units: number): number {
  return units >= COSTLY_UNITS ? COST_MAX : units;
}

/**
 * A write whose path and events cost this much is alone: no other write of its client is accepted until it is applied,
 * so that none is applied after it in the same turn.
 */
const COSTLY_UNITS = 2048;

/** A multi with more parts is alone, too. */
const SHORT_MULTI_PARTS = 4096;

/** A change costs as much as sixteen watch events. */
const NOTIFIED_PER_PART_SHIFT = 4;

/** @returns parts of a multi beyond those of a short one; fired watches count as parts */
export function excessOf(txn: Txn, notified: number): number {
  return txn.type === OpCode.multi ? txn.txns.length + (notified >> NOTIFIED_PER_PART_SHIFT) - SHORT_MULTI_PARTS : 0;
}

/** Ending a session with more ephemerals takes long. */
export const SHORT_END_EPHEMERALS = 4096;

/** Number of ephemerals that a txn creates. */
export function ephemeralsMadeBy(txn: Txn): number {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
      return txn.isEphemeral ? 1 : 0;
    case OpCode.multi: {
      let made = 0;
      for (const part of txn.txns) {
        if (part.type === OpCode.error) return 0;
        made += ephemeralsMadeBy(part);
      }
      return made;
    }
    default:
      return 0;
  }
}

/**
 * All writes wait for a multi or closeSession before them. After a long multi its client is paused: for about three
 * times as long as the multi took, or a hundred times while other clients write. A multi of 1 MB delays them for a
 * tenth of a second, so such multis take at most a hundredth of the time. A client cannot be paused after its
 * closeSession; instead it is paused before, while it creates the many ephemerals.
 *
 * @param parts of the multi, beyond those of a short one
 * @param ephemerals that it adds, beyond the number that can be deleted quickly
 * @param isContended other clients have written recently
 * @param timeoutMs of the session: while paused, the client gets no answers to its pings, and disconnects after two
 *   thirds of its timeout. It is read again five seconds before that or after two fifths of its timeout, whichever is
 *   later
 * @param leftMs remaining time of the previous pause
 * @returns milliseconds from now
 */
export function pauseFor(
  parts: number,
  ephemerals: number,
  isContended: boolean,
  timeoutMs: number,
  leftMs: number,
): number {
  const forParts = parts / (isContended ? PARTS_PER_MS_CONTENDED : PARTS_PER_MS);
  const forEphemerals = ephemerals / (isContended ? EPHEMERALS_PER_MS_CONTENDED : PARTS_PER_MS);
  const maxMs = Math.min(Math.max(timeoutMs * 0.4, (timeoutMs * 2) / 3 - 5000), PAUSE_MS_MAX);
  return Math.min(leftMs + Math.max(forParts, forEphemerals), maxMs);
}

const PARTS_PER_MS = 64;
const PARTS_PER_MS_CONTENDED = 1.25;
const EPHEMERALS_PER_MS_CONTENDED = 4;
const PAUSE_MS_MAX = 15_000;

/** Decoding, preparing and logging a write. */
const PREPARE_UNITS = 16;
/** Applying and answering a write. */
const APPLY_UNITS = 16;

/** An event costs half a microsecond, including its share of the kernel's work, if several writes of a turn fire it. */
const EVENTS_PER_UNIT_SHIFT = 1;

/** Eight characters of a long path cost one unit. */
const CHARS_PER_UNIT_SHIFT = 3;
