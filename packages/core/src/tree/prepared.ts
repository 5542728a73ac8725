import { UNKNOWN_DIGEST } from './digest.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** What the one who prepared a txn knows of the znode that it changes: to find it out again is a tenth of what a write costs. */
export interface Prepared {
  /** Of the znode that a create or setData changes, as it is afterwards; else nobody looks at it. */
  readonly digest: number;
  /** Where the znode was then, which may be another's number since; NO_ZNODE when the txn is to make it. */
  readonly znode: ZnodeNumber;
  /** Of each part of a multi, as it is after that part; null of any other txn. */
  readonly parts: readonly Prepared[] | null;
}

/** Nothing is known: another server has prepared the txn, or it comes from a log. */
export const UNPREPARED: Prepared = Object.freeze({ digest: UNKNOWN_DIGEST, znode: NO_ZNODE, parts: null });
