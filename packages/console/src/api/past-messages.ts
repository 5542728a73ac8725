import type { StatInfo } from './messages.ts';

/** GET api/c/CLUSTER/history?path=: what the retained log tells of a znode, oldest first. */
export interface HistoryInfo {
  readonly entries: readonly HistoryEntry[];
  /** There were older ones. */
  readonly isCut: boolean;
}

export interface HistoryEntry {
  readonly zxid: string;
  readonly atMs: number;
  /** Who wrote it; 0x0: the server itself. */
  readonly session: string;
  /** Its address, where that is known. */
  readonly client: string | null;
  readonly change: 'created' | 'changed' | 'deleted' | 'acl';
  readonly version: number | null;
  /** base64 of what the znode held afterwards; null: nothing, or it was gone. */
  readonly data: string | null;
  /** The ACL of then is not one by which this session can be judged now. */
  readonly isWithheld: boolean;
}

/** GET api/c/CLUSTER/past/span: the times that the retained log has; null: it has none. */
export type PastSpan = { readonly fromMs: number; readonly toMs: number } | null;

/** A moment whose tree is shown: the last txn in it. */
export interface PastMoment {
  readonly zxid: string;
  readonly atMs: number | null;
}

/** GET api/c/CLUSTER/past/znode?at=&path=: a znode as it was, and its children. */
export interface PastZnode {
  readonly moment: PastMoment;
  readonly path: string;
  /** null: it was not there, or may not be known. */
  readonly stat: StatInfo | null;
  /** base64. */
  readonly data: string | null;
  /** Its ACL of then is not one by which this session can be judged now. */
  readonly isWithheld: boolean;
  /** The first names, in their order. */
  readonly children: readonly string[];
  readonly total: number;
}

/** GET api/c/CLUSTER/past/difference?from=&to=&path=: what has become of a subtree between two moments. */
export interface PastDifference {
  readonly from: PastMoment;
  readonly to: PastMoment;
  readonly changes: readonly PastChange[];
  /** Znodes that were compared. */
  readonly compared: number;
  /** There are more, of which nothing is said. */
  readonly isCut: boolean;
  /** Znodes that may not be known, with what was below them. */
  readonly withheld: number;
}

export interface PastChange {
  readonly path: string;
  readonly change: 'created' | 'deleted' | 'recreated' | 'changed' | 'acl';
}
