/**
 * What a learner logs for a zxid that its leader has skipped.
 *
 * An Apache leader assigns a zxid to a multi with a null path and then fails to create its txn, so its next proposal
 * skips that zxid. Our log has no gaps, so it gets an error txn without a session: it changes nothing, answers no
 * request, and all of our servers write the same bytes.
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

/** Most zxids that may be missing in one gap. Clients cannot cause a larger one. */
const GAP_MAX = 10_000;

/** Offset of the type in a TxnHeader: behind session id, cxid, zxid and time. */
const TYPE_AT = 28;
const HEADER_BYTES = 32;

/** @returns the first zxid missing between two consecutive txns; null when none is, or too many are */
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

/** Whether a payload is a placeholder: every other error txn has a session. */
export function isPlaceholder(payload: Uint8Array): boolean {
  if (payload.length < HEADER_BYTES || getInt(payload, TYPE_AT) !== OpCode.error) return false;
  return getInt(payload, 0) === 0 && getInt(payload, 4) === 0;
}
