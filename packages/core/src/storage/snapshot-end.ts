/**
 * The bytes after the body of a snapshot: seals, and the parts between them (`snapshot-format.ts`).
 */
import { getInt, getLong, getLongBig } from '@meerkat/protocol';
import { adler32 } from './adler32.ts';
import { isSeal, SEAL_BYTES } from './snapshot-format.ts';

/** The tree's digest at the time when the snapshot's body was complete. */
export interface SnapshotDigest {
  /** From this zxid on the replayed tree is exact, and digests can be compared. 0: immediately. */
  readonly zxid: number;
  readonly version: number;
  /** 0n for a version that this server does not compute. */
  readonly treeDigest: bigint;
}

export interface SnapshotEnd {
  readonly digest: SnapshotDigest | null;
  /** The last zxid applied when the body was complete: it contains nothing later; null when unknown. */
  readonly completeZxid: number | null;
}

/** long zxid, int version, and the length of version 1's text or the digest of version 2. */
const DIGEST_PART_BYTES = 20;
const LAST_ZXID_BYTES = 8;

/**
 * @param rest everything after the body
 * @param bodyChecksum Adler-32 of everything before
 * @returns null when a seal does not match what precedes it
 */
export function readSnapshotEnd(rest: Uint8Array, bodyChecksum: number): SnapshotEnd | null {
  let checksum = bodyChecksum;
  /** Checks the seal after a part, and moves past it. */
  const passSeal = (partStart: number, partEnd: number): boolean => {
    if (partEnd + SEAL_BYTES > rest.length) return false;
    const sum = adler32(checksum, rest, partStart, partEnd);
    if (!isSeal(rest, partEnd, sum)) return false;
    checksum = adler32(sum, rest, partEnd, partEnd + SEAL_BYTES);
    return true;
  };
  if (!passSeal(0, 0)) return null;
  let at = SEAL_BYTES;
  let digest: SnapshotDigest | null = null;
  let completeZxid: number | null = null;
  if (hasDigestPart(rest.length - at)) {
    const zxid = getLong(rest, at);
    const version = getInt(rest, at + 8);
    const isText = version < 2;
    digest = { zxid, version, treeDigest: isText ? 0n : getLongBig(rest, at + 12) };
    completeZxid = zxid;
    const partEnd = at + (isText ? 16 + getInt(rest, at + 12) : DIGEST_PART_BYTES);
    if (partEnd < at || !passSeal(at, partEnd)) return null;
    at = partEnd + SEAL_BYTES;
  }
  if (rest.length - at >= LAST_ZXID_BYTES + SEAL_BYTES) {
    // The zxid in the file's name counts; this copy of it only has to be intact.
    if (!passSeal(at, at + LAST_ZXID_BYTES)) return null;
    completeZxid = Math.max(completeZxid ?? 0, getLong(rest, at));
  }
  return { digest, completeZxid };
}

/**
 * Whether a digest follows the first seal. A last zxid alone (digests off) is 21 bytes with its seal; a digest takes 33
 * or, as a text, at least 29. Nothing else is shorter than a digest.
 */
function hasDigestPart(bytes: number): boolean {
  return bytes > LAST_ZXID_BYTES + SEAL_BYTES;
}
