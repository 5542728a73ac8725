/**
 * The maximum and the actual size of txns.
 *
 * A txn is one field of a log entry and of a PROPOSAL. Apache's servers refuse a field longer than the sum of
 * `jute.maxbuffer` and `extrasize`: such an entry makes the start fail, such a packet closes the link. So that is the
 * limit of proposals, and every reader of txns accepts at least as much:
 *
 *     proposed ≤ txnBytesMaxOf(…) ≤ RECORD_BYTES_MAX = limit for packets of a leader and for reading a snapshot
 *                                 ≤ limit for reading a log
 */
import { type TextMeasure, textBytes, textBytesAtMost } from '../jute/text-bytes.ts';
import { OpCode } from '../op-code.ts';
import { type Acl, OPEN_ACL, OPEN_ACL_LENGTH } from './data.ts';
import type { CloseSessionTxn, MultiSubTxn, MultiTxn, Txn } from './txn.ts';

/** Upper limit of a txn, or a field of one, in every configuration. */
export const RECORD_BYTES_MAX: number = 0x10000000;

/** `jute.maxbuffer` and its `extrasize` are at most this, so that both together stay below `RECORD_BYTES_MAX`. */
export const FRAME_BYTES_LIMIT: number = RECORD_BYTES_MAX / 2;

/** Header in front of the record, and digest behind it. */
export const TXN_FRAME_BYTES = 44;

/** Type and length in front of each part of a multi. */
export const MULTI_PART_BYTES = 8;

/** Lower limit of `extrasize`. */
const EXTRA_BYTES_MIN = 1024;

/**
 * Largest txn, with header and digest, and therefore the largest field between servers.
 *
 * @param frameBytesMax `jute.maxbuffer`
 * @param extraBytesMax `jute.maxbuffer.extrasize`; null: as large as `jute.maxbuffer`
 */
export function txnBytesMaxOf(frameBytesMax: number, extraBytesMax: number | null): number {
  return frameBytesMax + Math.max(extraBytesMax ?? frameBytesMax, EXTRA_BYTES_MIN);
}

/** Bytes that a txn takes in a payload besides `TXN_FRAME_BYTES`. */
export function txnRecordBytes(txn: Txn, measure: TextMeasure = textBytes): number {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
      return 4 + measure(txn.path) + bufferBytes(txn.data) + aclListBytes(txn.acl, measure) + 5;
    case OpCode.createContainer:
      return 4 + measure(txn.path) + bufferBytes(txn.data) + aclListBytes(txn.acl, measure) + 4;
    case OpCode.createTTL:
      return 4 + measure(txn.path) + bufferBytes(txn.data) + aclListBytes(txn.acl, measure) + 12;
    case OpCode.delete:
    case OpCode.deleteContainer:
      return 4 + measure(txn.path);
    case OpCode.setData:
    case OpCode.reconfig:
      return 4 + measure(txn.path) + bufferBytes(txn.data) + 4;
    case OpCode.setACL:
      return 4 + measure(txn.path) + aclListBytes(txn.acl, measure) + 4;
    case OpCode.check:
      return 4 + measure(txn.path) + 4;
    case OpCode.createSession:
    case OpCode.error:
      return 4;
    case OpCode.closeSession:
      return closeSessionBytes(txn, measure);
    case OpCode.multi:
      return multiBytes(txn, measure);
  }
}

/** Whether a payload with this txn is not longer than `bytesMax`. The cheap measure nearly always suffices. */
export function isTxnWithin(txn: Txn, bytesMax: number): boolean {
  const room = bytesMax - TXN_FRAME_BYTES;
  return isSurelyWithin(txn, room) || txnRecordBytes(txn, textBytesAtMost) <= room || txnRecordBytes(txn) <= room;
}

/** Decides most writes from three lengths: with a call per field this took 3 % of the time of a 100 B write. */
function isSurelyWithin(txn: Txn, room: number): boolean {
  switch (txn.type) {
    case OpCode.setData:
      return ROOM_OF_FIELDS + 3 * txn.path.length + (txn.data?.length ?? 0) <= room;
    case OpCode.create:
    case OpCode.create2:
      return (
        txn.acl === OPEN_ACL && ROOM_OF_FIELDS + OPEN_ACL_LENGTH + 3 * txn.path.length + (txn.data?.length ?? 0) <= room
      );
    case OpCode.delete:
      return ROOM_OF_FIELDS + 3 * txn.path.length <= room;
    default:
      return false;
  }
}

/** Upper bound of the other fields of these txns, besides path, data and list. */
const ROOM_OF_FIELDS = 32;

function closeSessionBytes({ paths }: CloseSessionTxn, measure: TextMeasure): number {
  if (paths === null) return 0;
  let bytes = 4;
  for (const path of paths) bytes += 4 + measure(path);
  return bytes;
}

function multiBytes({ txns }: MultiTxn, measure: TextMeasure): number {
  let bytes = 4;
  for (const part of txns) bytes += partBytes(part, measure);
  return bytes;
}

/** Bytes that a part adds to its multi. */
function partBytes(part: MultiSubTxn, measure: TextMeasure): number {
  return MULTI_PART_BYTES + txnRecordBytes(part, measure);
}

function bufferBytes(data: Uint8Array | null): number {
  return data === null ? 4 : 4 + data.length;
}

function aclListBytes(list: readonly Acl[], measure: TextMeasure): number {
  let bytes = 4;
  for (const { scheme, id } of list) {
    bytes += 12;
    if (scheme !== null) bytes += measure(scheme);
    if (id !== null) bytes += measure(id);
  }
  return bytes;
}
