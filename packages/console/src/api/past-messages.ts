import type { StatInfo } from './messages.ts';

/** GET api/c/CLUSTER/history?path=: the history of a znode in the retained log, oldest first. */
export interface HistoryInfo {
  readonly entries: readonly HistoryEntry[];
  /** Older entries were left out. */
  readonly isCut: boolean;
}

export interface HistoryEntry {
  readonly zxid: string;
  readonly atMs: number;
  /** The session that wrote it; 0x0: the server itself. */
  readonly session: string;
  /** The client's address, if known. */
  readonly client: string | null;
  readonly change: 'created' | 'changed' | 'deleted' | 'acl';
  readonly version: number | null;
  /** base64 of the data afterwards; null: no data, or it was deleted. */
  readonly data: string | null;
  /** The ACL of that time cannot be checked for this session now. */
  readonly isWithheld: boolean;
}

/** GET api/c/CLUSTER/past/span: the time range of the retained log; null: it has none. */
export type PastSpan = { readonly fromMs: number; readonly toMs: number } | null;

/** The moment of a past tree: its last txn. */
export interface PastMoment {
  readonly zxid: string;
  readonly atMs: number | null;
}

/** GET api/c/CLUSTER/past/znode?at=&path=: a past znode, and its children. */
export interface PastZnode {
  readonly moment: PastMoment;
  readonly path: string;
  /** null: it did not exist, or may not be shown. */
  readonly stat: StatInfo | null;
  /** base64. */
  readonly data: string | null;
  /** The ACL of that time cannot be checked for this session now. */
  readonly isWithheld: boolean;
  /** The first names, in order. */
  readonly children: readonly string[];
  readonly total: number;
}

/** GET api/c/CLUSTER/past/difference?from=&to=&path=: the changes of a subtree between two moments. */
export interface PastDifference {
  readonly from: PastMoment;
  readonly to: PastMoment;
  readonly changes: readonly PastChange[];
  /** The number of compared znodes. */
  readonly compared: number;
  /** There are more, which were not compared. */
  readonly isCut: boolean;
  /** The number of znodes that may not be shown, with their subtrees. */
  readonly withheld: number;
}

export interface PastChange {
  readonly path: string;
  readonly change: 'created' | 'deleted' | 'recreated' | 'changed' | 'acl';
}
