/**
 * What a learner logs in the place of a zxid that its leader has proposed nothing for.
 *
 * A leader of Apache's takes a zxid for a multi with a null path and then fails to make a txn of it, so that its next
 * proposal skips that zxid. An error txn without a session takes the place in our log, where no zxid is missing: it
 * changes nothing, answers nobody, and all servers of ours write the same bytes.
 *
 *     proposed    (5,6)          (5,8)
 *     logged      (5,6)  (5,7)   (5,8)
 */
import {
  counterOf,
  ErrorCode,
  epochOf,
  getInt,
  JuteWriter,
  makeZxid,
  nextZxid,
  OpCode,
  type TxnEntry,
  writeTxn,
  type Zxid,
} from '@meerkat/protocol';

/** Zxids that may be missing in one place. More than that is no client's doing. */
const GAP_MAX = 10_000;

/** In the header of a txn, behind its session's id: cxid, zxid, time. */
const TYPE_AT = 28;
const HEADER_BYTES = 32;

/** @returns the first zxid that is missing between two txns that follow each other; null when none is, or too many are */
export function firstMissing(last: Zxid, next: Zxid): Zxid | null {
  const first = epochOf(next) === epochOf(last) ? nextZxid(last) : makeZxid(epochOf(next), 1);
  const isGap = next > last && first < next && counterOf(next) > 0;
  return isGap && next - first <= GAP_MAX ? first : null;
}

export function makePlaceholder(zxid: Zxid): { readonly entry: TxnEntry; readonly payload: Uint8Array } {
  const header = { sessionId: 0n, cxid: 0, zxid, time: 0 };
  const txn = { type: OpCode.error, error: ErrorCode.marshallingError };
  const writer = new JuteWriter(64);
  writeTxn(writer, header, txn);
  return { entry: { header, txn, digest: null }, payload: writer.toBytes() };
}

/** True of the bytes of a placeholder: nobody else's error txn has no session. */
export function isPlaceholder(payload: Uint8Array): boolean {
  if (payload.length < HEADER_BYTES || getInt(payload, TYPE_AT) !== OpCode.error) return false;
  return getInt(payload, 0) === 0 && getInt(payload, 4) === 0;
}
