/** What writes cost, in units of the work meter, and what is asked of clients whose writes cost very much. */
import { type MultiOp, OpCode, type Txn, type WriteRequest } from '@meerkat/protocol';
import { SHORT_PATH_CHARS, weightOf, weightOfAll } from '../tree/change-weight.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import { COST_MAX } from './waiting-requests.ts';
import type { WorkMeter } from './work-meter.ts';

type CostOfWatches = Pick<WatchManager, 'costOf' | 'eventCountOf'>;

/**
 * Counts what a write costs until it is logged.
 *
 * @returns the units that are for its path, and for the events that it will cause: those are counted where they are sent
 */
export function addWrite(write: WriteRequest, work: WorkMeter, watches: CostOfWatches): number {
  return addWork(write, work, watches) + eventUnitsOf(write, watches);
}

/** The same of a multi. Events are not counted any more once it is known to be alone. */
export function addMulti(ops: readonly MultiOp[], work: WorkMeter, watches: CostOfWatches): number {
  let units = ops.length > SHORT_MULTI_PARTS ? COSTLY_UNITS : 0;
  for (const op of ops) {
    units += addWork(op, work, watches);
    if (units < COSTLY_UNITS) units += eventUnitsOf(op, watches);
  }
  return units;
}

/**
 * Counts a write or an operation of a multi: more when its path is long, for that is looked for, hashed and logged several times, and there may be recursive watches on its
 * way.
 *
 * @returns the units that are for its path
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

/** What it costs to apply a txn, without the events that it causes, and to answer it. */
export function unitsOf(txn: Txn): number {
  if (txn.type === OpCode.multi) return APPLY_UNITS * weightOfAll(txn.txns);
  return APPLY_UNITS * ('path' in txn ? weightOf(txn.path) : 1);
}

/** What a write whose path and events cost so much counts as among the writes of its client that wait: a very costly one is alone. */
export function costOf(units: number): number {
  return units >= COSTLY_UNITS ? COST_MAX : units;
}

/**
 * A write whose path and events cost so much is alone: however many turns pass until the disk has it, no other one is applied behind it
 * in the same turn.
 */
const COSTLY_UNITS = 2048;

/** A multi of more parts is alone, too. */
const SHORT_MULTI_PARTS = 4096;

/** A change costs as much as to tell so many watchers of one: sixteen. */
const TOLD_PER_PART_SHIFT = 4;

/** @returns parts of a multi beyond those of a short one; watchers that were told count as parts */
export function excessOf(txn: Txn, told: number): number {
  return txn.type === OpCode.multi ? txn.txns.length + (told >> TOLD_PER_PART_SHIFT) - SHORT_MULTI_PARTS : 0;
}

/** A session that owns more ephemerals is long to end. */
export const SHORT_END_EPHEMERALS = 4096;

/** How many ephemerals a txn makes for its session. */
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
 * All writes wait for a multi, and for the end of a session. Behind a long multi its client leaves the server to the others: for
 * some three times as long as the multi has taken, and a hundred times while others write. One of 1 MB holds all of them up for a
 * tenth of a second, so that a hundredth of the time is one, at most. A client cannot pause behind the end of its session: it
 * pauses before, as it makes the many ephemerals that the end deletes.
 *
 * @param parts of the multi, beyond what is not long
 * @param ephemerals that it adds, beyond what is not long to end
 * @param isContended others have written lately
 * @param timeoutMs of the session: a client that is not read has no answer to its pings, and gives up after two thirds of it. It is
 *   read again five seconds before that, or after two fifths, whichever is later
 * @param leftMs of the pause before
 * @returns milliseconds from now on
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

/** To be decoded, prepared and logged; to be applied and answered. */
const PREPARE_UNITS = 16;
const APPLY_UNITS = 16;

/** When several writes of a turn tell it, an event costs half a microsecond, its part of the kernel's work included. */
const EVENTS_PER_UNIT_SHIFT = 1;

/** Characters of a long path that are a unit: eight. */
const CHARS_PER_UNIT_SHIFT = 3;
