import { UNKNOWN_DIGEST } from './digest.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** Results of preparing a txn that apply can reuse: computing them again takes a tenth of a write. */
export interface Prepared {
  /** For a create or setData: digest of the znode after the change; unused for other txns. */
  readonly digest: number;
  /** The znode's number at that time, which may have been reused since; NO_ZNODE when the txn creates it. */
  readonly znode: ZnodeNumber;
  /** For each part of a multi, as of that part; null for any other txn. */
  readonly parts: readonly Prepared[] | null;
}

/** Nothing is known: the txn was prepared by another server, or comes from a log. */
export const UNPREPARED: Prepared = Object.freeze({ digest: UNKNOWN_DIGEST, znode: NO_ZNODE, parts: null });
