/** What writes cost, in units of the work meter, and what is asked of clients whose writes cost very much. */
import { OpCode, type Txn } from '@meerkat/protocol';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { WorkMeter } from './work-meter.ts';

/**
 * Counts what a write, or an operation of a multi, costs until it is logged: more when its path is long, for that is looked
 * for, hashed and logged several times, and there may be recursive watches on its way.
 *
 * @returns the units that are for its path
 */
export function addWrite(path: string, work: WorkMeter, watches: WatchManager): number {
  work.add(PREPARE_UNITS);
  if (path.length <= PATH_CHARS) return 0;
  const units = (path.length >> CHARS_PER_UNIT_SHIFT) + watches.costOf(path);
  work.add(units);
  return units;
}

/** What it costs to apply a txn, without the events that it causes, and to answer it. */
export function unitsOf(txn: Txn): number {
  if (txn.type === OpCode.multi) return txn.txns.length * APPLY_UNITS;
  const length = 'path' in txn ? txn.path.length : 0;
  return APPLY_UNITS + (length <= PATH_CHARS ? 0 : length >> CHARS_PER_UNIT_SHIFT);
}

/**
 * A write whose path costs so much is alone: however many turns pass until the disk has it, no other one is applied behind it
 * in the same turn.
 */
export const COSTLY_UNITS = 2048;

/** A multi of more parts is alone, too. */
export const SHORT_MULTI_PARTS = 4096;

/**
 * All writes wait for a multi. Behind a long one its client leaves the server to the others: for some three times as long as
 * the multi has taken, and up to fifty times while others write. One of 1 MB holds all of them up for a tenth of a second, so it
 * may be no more than one or two per cent of the time that has one in it.
 *
 * @param isContended others have written lately
 * @param timeoutMs of the session: a client that is not read has no answer to its pings
 * @returns milliseconds; 0 behind one that is not long
 */
export function pauseBehind(parts: number, isContended: boolean, timeoutMs: number): number {
  const excess = parts - SHORT_MULTI_PARTS;
  if (excess <= 0) return 0;
  return Math.min(excess / (isContended ? PARTS_PER_MS_CONTENDED : PARTS_PER_MS), PAUSE_MS_MAX, timeoutMs / 4);
}

const PARTS_PER_MS = 64;
const PARTS_PER_MS_CONTENDED = 4;
const PAUSE_MS_MAX = 5000;

/** To be decoded, prepared and logged; to be applied and answered. */
const PREPARE_UNITS = 16;
const APPLY_UNITS = 16;

/** Characters of a path that are part of what any request costs, and how many more are a unit: eight. */
const PATH_CHARS = 256;
const CHARS_PER_UNIT_SHIFT = 3;
