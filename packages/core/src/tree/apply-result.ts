import { ErrorCode, type OpCode } from '@meerkat/protocol';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** What became of one part of a multi. */
export interface PartResult {
  /** Op code of the part's txn; `error` for each part of a multi that was not applied. */
  readonly type: OpCode;
  readonly error: ErrorCode;
  /** Path of the txn; '' of an ErrorTxn. */
  readonly path: string;
  /**
   * The stat as it was after this part, 68 bytes; null of a delete, a check, a failure. All multis use the same ones: valid until
   * the next `apply`.
   */
  readonly stat: Uint8Array | null;
}

/** What applying a txn came to. */
export interface ApplyResult {
  /**
   * The code of an ErrorTxn, of a multi that of its first part with one. Otherwise ok; noNode and nodeExists come up only
   * while a log is replayed over a snapshot that is already further, and harm nothing.
   */
  readonly error: ErrorCode;
  /** The created or changed znode; 0 of any other txn. Valid until the next change. */
  readonly znode: ZnodeNumber;
  /** Of a multi, in the order of its parts; null of any other txn. */
  readonly parts: readonly PartResult[] | null;
}

export const APPLIED: ApplyResult = Object.freeze({ error: ErrorCode.ok, znode: NO_ZNODE, parts: null });
export const NO_NODE: ApplyResult = Object.freeze({ error: ErrorCode.noNode, znode: NO_ZNODE, parts: null });
export const NODE_EXISTS: ApplyResult = Object.freeze({ error: ErrorCode.nodeExists, znode: NO_ZNODE, parts: null });
