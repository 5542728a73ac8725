/**
 * The transaction log on disk (FileTxnLog, FilePadding), byte for byte Apache's:
 *
 *     file    := header entry* zero*
 *     header  := int 0x5A4B4C47 "ZKLG", int 2, long dbid                          (16 bytes)
 *     entry   := long checksum, int length, payload (length bytes), byte 0x42 'B'  (13 bytes and the payload)
 *     payload := TxnHeader, txn, TxnDigest?        checksum := Adler-32 of the payload
 *
 * The file is grown ahead with zeros; a length of zero is where the entries end.
 *
 * The dbid is the one difference: Apache's servers write 0 and look at it nowhere. Here it is ~z, a negative number, where z
 * is the last zxid of the history before the file's first entry. It tells our files from Apache's, and lets a reader see
 * that a file or the end of one is missing, across epochs too (`log-sequence.ts`).
 */
import {
  counterOf,
  DIGEST_VERSION,
  epochOf,
  getInt,
  isZxid,
  type JuteWriter,
  maxZxid,
  putInt,
  RECORD_BYTES_MAX,
  type Txn,
  type TxnHeader,
  writeTxn,
  writeTxnDigest,
  ZXID_ZERO,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { ADLER_START, adler32 } from './adler32.ts';

export const LOG_HEADER_BYTES = 16;
/** Checksum and length in front of the payload. */
export const ENTRY_HEAD_BYTES = 12;
/** What an entry takes besides its payload. */
export const ENTRY_FRAME_BYTES: number = ENTRY_HEAD_BYTES + 1;
/** 'B', the last byte of an entry. */
export const END_OF_ENTRY = 0x42;
/**
 * A length beyond this is damage, and an entry with a right checksum below it is read, whatever wrote it and whatever
 * `jute.maxbuffer` is now. What is written is never above `RECORD_BYTES_MAX`; before there was a limit, the end of a
 * session or an ACL could be longer.
 */
export const PAYLOAD_BYTES_MAX: number = 4 * RECORD_BYTES_MAX;

/** A payload begins with the header of a txn. */
export const ENTRY_PAYLOAD_BYTES_MIN = 32;

const LOG_MAGIC = 0x5a4b4c47;
const LOG_VERSION = 2;
const DBID_AT = 8;
/** Offset of the zxid in a payload, behind session id and cxid. */
const ZXID_OFFSET = 12;
const TIME_OFFSET = 20;
/** Apache grows a file when no more than this is left of it. */
const GROWTH_MARGIN_BYTES = 4096;

/** @param before the last zxid of the history before the file's first entry */
export function logHeader(before: Zxid): Uint8Array {
  const bytes = new Uint8Array(LOG_HEADER_BYTES);
  putInt(bytes, 0, LOG_MAGIC);
  putInt(bytes, 4, LOG_VERSION);
  const known = maxZxid(ZXID_ZERO, before);
  putInt(bytes, DBID_AT, ~epochOf(known));
  putInt(bytes, DBID_AT + 4, ~counterOf(known));
  return bytes;
}

/** What a header says about the history before the file; null when Apache's server wrote it, which says nothing. */
export function zxidBeforeLog(header: Uint8Array): Zxid | null {
  const epoch = ~getInt(header, DBID_AT);
  const before = epoch * 0x100000000 + (~getInt(header, DBID_AT + 4) >>> 0);
  return epoch >= 0 && isZxid(before) ? before : null;
}

/** @returns what is wrong with the 16 bytes, or null */
export function faultOfLogHeader(bytes: Uint8Array): string | null {
  const magic = getInt(bytes, 0) >>> 0;
  if (magic !== LOG_MAGIC) return `its magic is 0x${magic.toString(16)} instead of 0x5a4b4c47 ("ZKLG")`;
  const version = getInt(bytes, 4);
  return version === LOG_VERSION ? null : `its version is ${version} instead of ${LOG_VERSION}`;
}

/** True when the bytes are a header up to some byte that is not its last, and zeros or nothing behind that. */
export function isCutLogHeader(bytes: Uint8Array): boolean {
  if (bytes.length >= LOG_HEADER_BYTES && faultOfLogHeader(bytes) === null) return false;
  const header = logHeader(ZXID_ZERO);
  let same = 0;
  while (same < DBID_AT && bytes[same] === header[same]) same++;
  return same === DBID_AT || bytes.subarray(same, LOG_HEADER_BYTES).every((byte) => byte === 0);
}

/** Appends one entry; `treeDigest` null leaves the digest out, as Apache does when digests are off. */
export function writeLogEntry(writer: JuteWriter, header: TxnHeader, txn: Txn, treeDigest: bigint | null): void {
  const start = writer.position;
  writer.ensure(ENTRY_HEAD_BYTES);
  writer.position = start + ENTRY_HEAD_BYTES;
  writeTxn(writer, header, txn);
  if (treeDigest !== null) writeTxnDigest(writer, DIGEST_VERSION, treeDigest);
  frameLogEntry(writer, start);
}

/** Appends one entry whose payload (header, txn, digest) is ready. */
export function writeLogPayload(writer: JuteWriter, payload: Uint8Array): void {
  const start = writer.position;
  writer.ensure(ENTRY_FRAME_BYTES + payload.length);
  writer.position = start + ENTRY_HEAD_BYTES;
  writer.raw(payload);
  frameLogEntry(writer, start);
}

/** Puts checksum, length and end around the payload that stands behind the room for them. */
function frameLogEntry(writer: JuteWriter, start: number): void {
  const end = writer.position;
  assert(end - start - ENTRY_HEAD_BYTES <= PAYLOAD_BYTES_MAX, 'nothing is written that would not be read');
  writer.byte(END_OF_ENTRY);
  const bytes = writer.bytes;
  putInt(bytes, start, 0);
  putInt(bytes, start + 4, adler32(ADLER_START, bytes, start + ENTRY_HEAD_BYTES, end));
  putInt(bytes, start + 8, end - start - ENTRY_HEAD_BYTES);
}

/** The zxid of the entry whose checksum stands at `at`; its epoch half and its counter half make one exact number. */
export function entryZxidAt(bytes: Uint8Array, at: number): number {
  const zxidAt = at + ENTRY_HEAD_BYTES + ZXID_OFFSET;
  return getInt(bytes, zxidAt) * 0x100000000 + (getInt(bytes, zxidAt + 4) >>> 0);
}

/** The wall milliseconds of the entry whose checksum stands at `at`. */
export function entryTimeAt(bytes: Uint8Array, at: number): number {
  const timeAt = at + ENTRY_HEAD_BYTES + TIME_OFFSET;
  return getInt(bytes, timeAt) * 0x100000000 + (getInt(bytes, timeAt + 4) >>> 0);
}

/** The zxid of a payload. */
export function payloadZxid(payload: Uint8Array): number {
  return getInt(payload, ZXID_OFFSET) * 0x100000000 + (getInt(payload, ZXID_OFFSET + 4) >>> 0);
}

/** True when an entry with a payload of `length` bytes stands at `at`, complete and with the right checksum. */
export function isWholeEntry(bytes: Uint8Array, at: number, length: number): boolean {
  const end = at + ENTRY_HEAD_BYTES + length;
  return (
    bytes[end] === END_OF_ENTRY &&
    getInt(bytes, at) === 0 &&
    getInt(bytes, at + 4) >>> 0 === adler32(ADLER_START, bytes, at + ENTRY_HEAD_BYTES, end)
  );
}

/**
 * How large Apache makes a file before it writes an entry at `position` (FilePadding.calculateFileSizeWithPadding).
 *
 * @param size what the file was grown to before; for a new file the bytes of its header
 * @param preallocateBytes ≤ 0: the file is never grown ahead
 */
export function paddedLogSize(position: number, size: number, preallocateBytes: number): number {
  if (preallocateBytes <= 0 || position + GROWTH_MARGIN_BYTES < size) return size;
  if (position <= size) return size + preallocateBytes;
  const grown = position + preallocateBytes;
  return grown - (grown % preallocateBytes);
}
