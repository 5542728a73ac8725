/**
 * Whole txns in a log after a position without a valid entry: what a crash can leave of one write, or proof of later
 * damage (`log-damage.ts`).
 */
import { epochOf, getInt, isZxid, type Zxid } from '@meerkat/protocol';
import { ENTRY_FRAME_BYTES, ENTRY_PAYLOAD_BYTES_MIN, entryTimeAt, entryZxidAt, isWholeEntry } from './log-format.ts';

export interface IntactTxns {
  readonly count: number;
  readonly firstZxid: Zxid;
  readonly lastZxid: Zxid;
  /** Offsets of the first and the last one in the bytes. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Wall-clock milliseconds of the oldest and of the youngest. */
  readonly oldestMs: number;
  readonly youngestMs: number;
}

/**
 * Finds entries with a correct checksum at any offset.
 *
 * @param after lower bound of their zxids, which must not be of a far later epoch either: data that looks like an entry
 *   is none
 */
export function findIntactTxns(bytes: Uint8Array, after: Zxid): IntactTxns | null {
  let found: IntactTxns | null = null;
  const last = bytes.length - ENTRY_FRAME_BYTES - ENTRY_PAYLOAD_BYTES_MIN;
  for (let at = 0; at <= last; ) {
    // The upper half of a checksum is zero; nearly every other position is rejected here.
    if (bytes[at + 3] !== 0 || getInt(bytes, at) !== 0) {
      at++;
      continue;
    }
    const length = getInt(bytes, at + 8);
    const end = at + length + ENTRY_FRAME_BYTES;
    const isPossible = length >= ENTRY_PAYLOAD_BYTES_MIN && end <= bytes.length;
    const zxid = isPossible ? zxidOfEntry(bytes, at, length, after) : null;
    if (zxid === null) {
      at++;
      continue;
    }
    found = extend(found, bytes, at, zxid);
    at = end;
  }
  return found;
}

/** @returns null when there is no entry */
function zxidOfEntry(bytes: Uint8Array, at: number, length: number, after: Zxid): Zxid | null {
  const zxid = entryZxidAt(bytes, at);
  if (!isZxid(zxid) || zxid <= after || epochOf(zxid) > epochOf(after) + EPOCHS_AHEAD_MAX) return null;
  return isWholeEntry(bytes, at, length) ? zxid : null;
}

/** Epochs without txns are possible, but not this many in a row. */
const EPOCHS_AHEAD_MAX = 1_000_000;

function extend(found: IntactTxns | null, bytes: Uint8Array, at: number, zxid: Zxid): IntactTxns {
  const timeMs = entryTimeAt(bytes, at);
  if (found === null) {
    return {
      count: 1,
      firstZxid: zxid,
      lastZxid: zxid,
      firstAt: at,
      lastAt: at,
      oldestMs: timeMs,
      youngestMs: timeMs,
    };
  }
  return {
    ...found,
    count: found.count + 1,
    lastZxid: zxid,
    lastAt: at,
    oldestMs: Math.min(found.oldestMs, timeMs),
    youngestMs: Math.max(found.youngestMs, timeMs),
  };
}
