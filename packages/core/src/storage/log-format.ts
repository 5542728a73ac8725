/**
 * The transaction log on disk (FileTxnLog, FilePadding), byte for byte Apache's:
 *
 *     file    := header entry* zero*
 *     header  := int 0x5A4B4C47 "ZKLG", int 2, long dbid                          (16 bytes)
 *     entry   := long checksum, int length, payload (length bytes), byte 0x42 'B'  (13 bytes and the payload)
 *     payload := TxnHeader, txn, TxnDigest?        checksum := Adler-32 of the payload
 *
 * Files are preallocated with zeros; the entries end at a length of zero.
 *
 * The dbid is the only difference: Apache writes 0 and never reads it. Here it is ~z, a negative number, where z is the
 * last zxid of the history before the file's first entry. It distinguishes our files from Apache's, and lets a reader
 * detect a missing file or a missing end of one, across epochs too (`log-sequence.ts`).
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
/** Checksum and length before the payload. */
export const ENTRY_HEAD_BYTES = 12;
/** Size of an entry without its payload. */
export const ENTRY_FRAME_BYTES: number = ENTRY_HEAD_BYTES + 1;
/** 'B', the last byte of an entry. */
export const END_OF_ENTRY = 0x42;
/**
 * A greater length is damage, and an entry below it with a correct checksum is read, whatever wrote it and whatever
 * `jute.maxbuffer` is now. No entry written now exceeds `RECORD_BYTES_MAX`; before there was a limit, the end of a
 * session or an ACL could be longer.
 */
export const PAYLOAD_BYTES_MAX: number = 4 * RECORD_BYTES_MAX;

/** A payload begins with the header of a txn. */
export const ENTRY_PAYLOAD_BYTES_MIN = 32;

const LOG_MAGIC = 0x5a4b4c47;
const LOG_VERSION = 2;
const DBID_AT = 8;
/** Offset of the zxid in a payload, after session id and cxid. */
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

/**
 * The last zxid before the file, according to its header; null for an Apache server's file, which does not record it.
 */
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

/** True for the beginning of a header, followed by zeros or nothing. */
export function isCutLogHeader(bytes: Uint8Array): boolean {
  if (bytes.length >= LOG_HEADER_BYTES && faultOfLogHeader(bytes) === null) return false;
  const header = logHeader(ZXID_ZERO);
  let same = 0;
  while (same < DBID_AT && bytes[same] === header[same]) same++;
  return same === DBID_AT || bytes.subarray(same, LOG_HEADER_BYTES).every((byte) => byte === 0);
}

/** Appends one entry; with `treeDigest` null without a digest, as Apache does when digests are off. */
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

/** Fills in checksum, length and end around the payload. */
function frameLogEntry(writer: JuteWriter, start: number): void {
  const end = writer.position;
  assert(end - start - ENTRY_HEAD_BYTES <= PAYLOAD_BYTES_MAX, 'an entry that is written can be read back');
  writer.byte(END_OF_ENTRY);
  const bytes = writer.bytes;
  putInt(bytes, start, 0);
  putInt(bytes, start + 4, adler32(ADLER_START, bytes, start + ENTRY_HEAD_BYTES, end));
  putInt(bytes, start + 8, end - start - ENTRY_HEAD_BYTES);
}

/** The zxid of the entry at `at`; its epoch half and its counter half form one exact number. */
export function entryZxidAt(bytes: Uint8Array, at: number): number {
  const zxidAt = at + ENTRY_HEAD_BYTES + ZXID_OFFSET;
  return getInt(bytes, zxidAt) * 0x100000000 + (getInt(bytes, zxidAt + 4) >>> 0);
}

/** The wall-clock milliseconds of the entry at `at`. */
export function entryTimeAt(bytes: Uint8Array, at: number): number {
  const timeAt = at + ENTRY_HEAD_BYTES + TIME_OFFSET;
  return getInt(bytes, timeAt) * 0x100000000 + (getInt(bytes, timeAt + 4) >>> 0);
}

/** The zxid of a payload. */
export function payloadZxid(payload: Uint8Array): number {
  return getInt(payload, ZXID_OFFSET) * 0x100000000 + (getInt(payload, ZXID_OFFSET + 4) >>> 0);
}

/** True when there is an entry with a payload of `length` bytes at `at`, complete and with the correct checksum. */
export function isWholeEntry(bytes: Uint8Array, at: number, length: number): boolean {
  const end = at + ENTRY_HEAD_BYTES + length;
  return (
    bytes[end] === END_OF_ENTRY &&
    getInt(bytes, at) === 0 &&
    getInt(bytes, at + 4) >>> 0 === adler32(ADLER_START, bytes, at + ENTRY_HEAD_BYTES, end)
  );
}

/**
 * To which size Apache grows a file before it writes an entry at `position` (FilePadding.calculateFileSizeWithPadding).
 *
 * @param size to which the file was grown before; for a new file the bytes of its header
 * @param preallocateBytes ≤ 0: files are not preallocated
 */
export function paddedLogSize(position: number, size: number, preallocateBytes: number): number {
  if (preallocateBytes <= 0 || position + GROWTH_MARGIN_BYTES < size) return size;
  if (position <= size) return size + preallocateBytes;
  const grown = position + preallocateBytes;
  return grown - (grown % preallocateBytes);
}
