/**
 * Classifies the position in a log file after which no valid entry follows: the end, the effect of a crash, or
 * corruption.
 *
 * **A crash omits bytes; it never changes them.** Everything before the last batch was synced (`txn-log.ts`), so only
 * the last batch can be incomplete. Its bytes were passed to the kernel in one write over zeros; after the end of the
 * process they are there up to some byte; after a crash of the machine, each unit of 512 bytes (the smallest write of a
 * device) is there or still zero, in any combination. So after a crash, the last valid entry is followed by:
 *
 *     end        nothing but zeros
 *     cut        an entry that stops somewhere, and nothing but zeros after it
 *     holed      an entry that lacks a whole unit, perhaps with other parts of the batch, even whole entries, after it
 *
 * In the last two cases nothing from there on was acknowledged, and recovery cuts it. Everything else was changed after
 * it had been written, and may have been acknowledged: the start is refused, even for the very last entry when all of
 * it is there and only its checksum is wrong.
 *
 * A device block that turns into zeros looks like the third case. What distinguishes the two are the whole entries
 * after it: a crash leaves those of one write only. For our own log the mark records how far it was acknowledged
 * (`durable-mark.ts`, checked by the reader), and no write is longer than `BATCH_BYTES_MAX` and one entry. Of Apache's
 * logs it is only known that they are synced after at most 1000 txns: txns that were made over more than a second, or
 * more than so many, were hardly part of one write. Without forceSync anything may be missing after a crash of the
 * machine, and nothing is proof.
 *
 * What remains undecided: damage in what our server wrote after the last sync of the mark, a second before the crash of
 * the machine, and in Apache's last write.
 */
import { epochOf, getInt, isZxid, type Zxid } from '@meerkat/protocol';
import { isNext } from '../zab/recent-log.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { findIntactTxns, type IntactTxns } from './intact-txns.ts';
import {
  END_OF_ENTRY,
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  entryTimeAt,
  entryZxidAt,
  LOG_HEADER_BYTES,
  PAYLOAD_BYTES_MAX,
} from './log-format.ts';
import { BATCH_BYTES_MAX } from './txn-log.ts';

/** The smallest unit that a device writes or omits. */
export const UNIT_BYTES = 512;

/**
 * How far after the last valid entry a crash can leave anything: more than one of our batches (`BATCH_BYTES_MAX`), and
 * more than what Apache writes between two syncs (1000 requests) unless they are very large.
 */
export const WINDOW_BYTES: number = 16 * 1024 * 1024;

export interface LogTail {
  /** Position in the file of the first byte after the last valid entry. */
  readonly position: number;
  /** The bytes from there on, without trailing zeros; at most `keptBytesOf` of them. */
  readonly bytes: Uint8Array;
  /** Number of bytes from `position` to the last one that is not zero. */
  readonly length: number;
}

/** What is known about the log before the tail, and about its writer. */
export interface LogTailContext {
  /** The last entry before the tail. */
  readonly last: Zxid;
  /** The writer, which determines how much of the log was written without a sync. */
  readonly writer: LogWriter;
}

/** `marked`: ours, in a directory with a mark. `unsynced`: any writer without forceSync. `other`: all others. */
export type LogWriter = 'marked' | 'unsynced' | 'other';

export type LogTailState = { readonly kind: 'end' } | TornOrRotten;

export interface TornOrRotten {
  readonly kind: 'torn' | 'rotten';
  readonly reason: string;
  /** Whole txns after the position. */
  readonly intact: IntactTxns | null;
}

/** How many bytes of a tail the check needs, given its first ones: the entry there, and the window after it. */
export function keptBytesOf(head: Uint8Array): number {
  if (head.length < ENTRY_HEAD_BYTES) return WINDOW_BYTES;
  const length = getInt(head, 8);
  return WINDOW_BYTES + (isPlausible(length) ? length + ENTRY_FRAME_BYTES : 0);
}

export function classifyLogTail(tail: LogTail, context: LogTailContext): LogTailState {
  if (tail.length === 0) return { kind: 'end' };
  const { isTorn, reason } = lookAtTail(tail);
  const intact = findIntactTxns(tail.bytes, context.last);
  if (!isTorn || intact === null) return { kind: isTorn ? 'torn' : 'rotten', reason, intact };
  const proof = findLaterWrite(tail, intact, context);
  return proof === null
    ? { kind: 'torn', reason, intact }
    : { kind: 'rotten', reason: `${reason}, and ${proof}`, intact };
}

/** Looks for proof that some whole entry after a hole was written after the entry there had been synced. */
function findLaterWrite(tail: LogTail, intact: IntactTxns, { last, writer }: LogTailContext): string | null {
  if (writer === 'unsynced') return null;
  if (writer === 'marked')
    return intact.lastAt >= BATCH_BYTES_MAX ? 'whole txns follow farther away than one write reaches' : null;
  // A period without any writes before that proves nothing.
  const oldestMs = Math.min(intact.oldestMs, timeOfTorn(tail, last) ?? intact.oldestMs);
  const seconds = (intact.youngestMs - oldestMs) / 1000;
  if (seconds >= 1) return `the whole txns after it were made up to ${seconds.toFixed(1)} s later`;
  const isFar = epochOf(intact.lastZxid) === epochOf(last) && intact.lastZxid - last > APACHES_BATCH_TXNS_MAX;
  return isFar ? 'more whole txns follow than Apache’s servers write without a sync' : null;
}

/** When the incomplete entry was made; null when its head is missing. */
function timeOfTorn({ bytes, position }: LogTail, last: Zxid): number | null {
  const isInOneUnit = (position % UNIT_BYTES) + ENTRY_HEAD_BYTES + ENTRY_PAYLOAD_BYTES_MIN <= UNIT_BYTES;
  const zxid = entryZxidAt(bytes, 0);
  return isInOneUnit && isZxid(zxid) && isNext(last, zxid) ? entryTimeAt(bytes, 0) : null;
}

/** SyncRequestProcessor's default of `zookeeper.maxBatchSize`. */
const APACHES_BATCH_TXNS_MAX = 1000;

/** What a crash has torn is zeros in place of data; everything else is corruption. */
function lookAtTail({ bytes, length, position }: LogTail): { readonly isTorn: boolean; readonly reason: string } {
  if (length > bytes.length) return rotten(`more follows (${length} bytes) than a crash can leave`);
  if (position === 0 && length < LOG_HEADER_BYTES) return torn(`its header is cut after ${length} bytes`);
  if (length <= ENTRY_HEAD_BYTES) return torn(`an entry is cut after ${length} bytes`);

  const payloadLength = getInt(bytes, 8);
  const entryLength = isPlausible(payloadLength) ? payloadLength + ENTRY_FRAME_BYTES : ENTRY_HEAD_BYTES;
  const change = findChange(bytes, length, payloadLength);
  if (change !== null) return rotten(change);
  if (isPlausible(payloadLength) && length < entryLength) {
    return torn(`an entry of ${entryLength} bytes is cut after ${length}`);
  }
  const hole = findHole(bytes, position, Math.min(entryLength, length), length);
  if (hole !== null) return torn(`an entry lacks the bytes from ${hole} on`);
  if (!isPlausible(payloadLength)) return rotten(`the length of an entry is ${payloadLength}`);
  return rotten('the checksum of an entry is wrong although all of the entry is there');
}

function torn(reason: string): { readonly isTorn: true; readonly reason: string } {
  return { isTorn: true, reason };
}

function rotten(reason: string): { readonly isTorn: false; readonly reason: string } {
  return { isTorn: false, reason };
}

function isPlausible(payloadLength: number): boolean {
  return payloadLength > 0 && payloadLength <= PAYLOAD_BYTES_MAX;
}

/** Looks for proof that the entry was complete once and was changed later. @returns the proof, or null */
function findChange(bytes: Uint8Array, length: number, payloadLength: number): string | null {
  const stored = getInt(bytes, 4) >>> 0;
  const isChecksumHalfClear = getInt(bytes, 0) === 0;
  const whole = findWholePayload(bytes, length, stored);
  if (whole !== null && whole !== payloadLength) {
    return `the length of an entry is ${payloadLength}, but its checksum fits ${whole} bytes`;
  }
  if (!isPlausible(payloadLength) || length < payloadLength + ENTRY_FRAME_BYTES) return null;
  const payloadEnd = ENTRY_HEAD_BYTES + payloadLength;
  const last = bytes[payloadEnd]!;
  const actual = adler32(ADLER_START, bytes, ENTRY_HEAD_BYTES, payloadEnd);
  if (actual === stored) {
    if (last !== END_OF_ENTRY && last !== 0) return `an entry ends with 0x${last.toString(16)} instead of 0x42`;
    if (last === END_OF_ENTRY && !isChecksumHalfClear) return 'the upper half of the checksum of an entry is not zero';
    return null;
  }
  if (last !== END_OF_ENTRY) return null;
  if (isPowerOfTwo((actual ^ stored) >>> 0)) return 'one bit of the checksum of an entry has changed';
  if (isOneBitAway(bytes, payloadEnd, payloadLength, stored, actual)) return 'one bit of an entry has changed';
  return null;
}

/** The length of a payload that starts here, matches the checksum and is followed by 0x42; null if there is none. */
function findWholePayload(bytes: Uint8Array, length: number, stored: number): number | null {
  let checksum = ADLER_START;
  let checkedTo = ENTRY_HEAD_BYTES;
  const end = Math.min(length, ENTRY_HEAD_BYTES + PAYLOAD_BYTES_MAX + 1);
  for (;;) {
    const at = bytes.indexOf(END_OF_ENTRY, Math.max(checkedTo, ENTRY_HEAD_BYTES + 1));
    if (at < 0 || at >= end) return null;
    checksum = adler32(checksum, bytes, checkedTo, at);
    if (checksum === stored) return at - ENTRY_HEAD_BYTES;
    // The byte itself belongs to the payload when a later 0x42 ends it.
    checksum = adler32(checksum, bytes, at, at + 1);
    checkedTo = at + 1;
  }
}

/**
 * Whether flipping one bit of the payload gives the stored checksum.
 *
 * A byte that is larger by d makes the first sum larger by d, and the second by d times the number of bytes from there
 * to the end. So the difference of the first sums identifies the bit, and that of the second the byte.
 */
function isOneBitAway(bytes: Uint8Array, end: number, length: number, stored: number, actual: number): boolean {
  const differenceA = modulo((stored & 0xffff) - (actual & 0xffff));
  const differenceB = modulo((stored >>> 16) - (actual >>> 16));
  for (let bit = 0; bit < 8; bit++) {
    for (const sign of [1, -1]) {
      const change = sign * (1 << bit);
      if (modulo(change) !== differenceA) continue;
      for (let fromEnd = 1; fromEnd <= length; fromEnd++) {
        const isSet = (bytes[end - fromEnd]! & (1 << bit)) !== 0;
        if (isSet === sign < 0 && modulo(change * (fromEnd % ADLER_MODULUS)) === differenceB) return true;
      }
    }
  }
  return false;
}

const ADLER_MODULUS = 65521;

function modulo(value: number): number {
  const rest = value % ADLER_MODULUS;
  return rest < 0 ? rest + ADLER_MODULUS : rest;
}

function isPowerOfTwo(value: number): boolean {
  return value !== 0 && (value & (value - 1)) === 0;
}

/**
 * Looks for a unit that was never written: all of it is zero, or all of it from the entry's first byte on (then the
 * unit is an older version of itself, which ended there).
 *
 * @param entryEnd units that begin before it are examined
 * @param length bytes that are there; a unit that reaches beyond has a byte that is not zero
 * @returns the position in the file where the hole begins, or null
 */
function findHole(bytes: Uint8Array, position: number, entryEnd: number, length: number): number | null {
  let start = 0;
  while (start < entryEnd) {
    const end = start + UNIT_BYTES - ((position + start) % UNIT_BYTES);
    if (end > length) return null;
    // The first four bytes of an entry are zero anyway, so their absence proves nothing.
    const isConclusive = start > 0 || end > 4;
    if (isConclusive && isZero(bytes, start, end)) return position + start;
    start = end;
  }
  return null;
}

function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== 0) return false;
  return true;
}
