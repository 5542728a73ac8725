import { ErrorCode, type OpCode } from '@meerkat/protocol';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** The result of one part of a multi. */
export interface PartResult {
  /** Op code of the part's txn; `error` for each part of a multi that was not applied. */
  readonly type: OpCode;
  readonly error: ErrorCode;
  /** Path of the txn; '' for an ErrorTxn. */
  readonly path: string;
  /**
   * The stat after this part, 68 bytes; null for a delete, a check or a failure. All multis share these buffers: valid
   * until the next `apply`.
   */
  readonly stat: Uint8Array | null;
}

/** The result of applying a txn. */
export interface ApplyResult {
  /**
   * The code of an ErrorTxn; for a multi that of its first part with one. Otherwise ok; noNode and nodeExists occur
   * only while a log is replayed over a snapshot that is already ahead, and are harmless.
   */
  readonly error: ErrorCode;
  /** The created or changed znode; 0 for any other txn. Valid until the next change. */
  readonly znode: ZnodeNumber;
  /** For a multi, in the order of its parts; null for any other txn. */
  readonly parts: readonly PartResult[] | null;
}

export const APPLIED: ApplyResult = Object.freeze({ error: ErrorCode.ok, znode: NO_ZNODE, parts: null });
export const NO_NODE: ApplyResult = Object.freeze({ error: ErrorCode.noNode, znode: NO_ZNODE, parts: null });
export const NODE_EXISTS: ApplyResult = Object.freeze({ error: ErrorCode.nodeExists, znode: NO_ZNODE, parts: null });
