/**
 * The snapshot file (FileSnap, SnapStream), byte for byte what Apache's 3.9 line writes:
 *
 *     file   := header body seal (digest seal)? (lastZxid seal)?
 *     header := int 0x5A4B534E "ZKSN", int 2, long −1                                   (16 bytes)
 *     body   := sessions, ACLs, znodes, ustring "/"       (tree/snapshot-writer, tree/snapshot-reader)
 *     seal   := long checksum, ustring "/"                                              (13 bytes)
 *     digest := long zxid, int version, long tree digest (a ustring before version 2)   when digests are on
 *     lastZxid := long                                                                  since 3.9; 3.8 ignores it
 *
 * A checksum is the Adler-32 of all bytes before it, earlier seals included. The whole file may be compressed: as a
 * gzip file, or as a stream of snappy-java (SnappyOutputStream).
 */
import { getInt, type JuteWriter, putInt } from '@meerkat/protocol';
import type { Compression } from '../base/ports.ts';

export const SNAPSHOT_HEADER_BYTES = 16;
export const SEAL_BYTES = 13;
/** Minimum size that Apache accepts as a snapshot. */
const SNAPSHOT_BYTES_MIN = 10;
/** First bytes of compressed files; Apache checks them before it loads one. */
const COMPRESSED_HEADS: Readonly<Record<Compression, readonly number[]>> = {
  gz: [0x1f, 0x8b],
  snappy: [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00],
};
/** Length of the longest of these. */
export const COMPRESSED_HEAD_BYTES = 8;
/** Last bytes of every seal: ustring "/". */
const SEAL_END: readonly number[] = [0, 0, 0, 1, 0x2f];
export const SEAL_END_BYTES: number = SEAL_END.length;

const SNAPSHOT_MAGIC = 0x5a4b534e;
const SNAPSHOT_VERSION = 2;

export function writeSnapshotHeader(writer: JuteWriter): void {
  writer.int(SNAPSHOT_MAGIC);
  writer.int(SNAPSHOT_VERSION);
  writer.long(-1);
}

/** @returns what is wrong with the 16 bytes, or null */
export function faultOfSnapshotHeader(bytes: Uint8Array): string | null {
  const magic = getInt(bytes, 0) >>> 0;
  if (magic !== SNAPSHOT_MAGIC) return `its magic is 0x${magic.toString(16)} instead of 0x5a4b534e ("ZKSN")`;
  const version = getInt(bytes, 4);
  return version === SNAPSHOT_VERSION ? null : `its version is ${version} instead of ${SNAPSHOT_VERSION}`;
}

export function writeSeal(writer: JuteWriter, checksum: number): void {
  const at = writer.position;
  writer.ensure(SEAL_BYTES);
  putInt(writer.bytes, at, 0);
  putInt(writer.bytes, at + 4, checksum);
  writer.position = at + 8;
  writer.ustring('/');
}

/** True when the 13 bytes at `at` are the seal of what precedes them. */
export function isSeal(bytes: Uint8Array, at: number, checksum: number): boolean {
  return (
    getInt(bytes, at) === 0 &&
    getInt(bytes, at + 4) >>> 0 === checksum &&
    endsLikeSnapshot(bytes.subarray(at + 8, at + SEAL_BYTES))
  );
}

/** Part of Apache's quick test: a file that a crash cut short does not end with a seal. */
export function isLongEnoughForSnapshot(size: number): boolean {
  return size >= SNAPSHOT_BYTES_MIN;
}

/** @param end the last five bytes of the file */
export function endsLikeSnapshot(end: Uint8Array): boolean {
  return end.length === SEAL_END.length && SEAL_END.every((byte, i) => end[i] === byte);
}

/** @param head the first bytes of the file, COMPRESSED_HEAD_BYTES of them unless it is shorter */
export function beginsLikeCompressed(head: Uint8Array, compression: Compression): boolean {
  return COMPRESSED_HEADS[compression].every((byte, i) => head[i] === byte);
}
