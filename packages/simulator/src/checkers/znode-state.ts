import { type Acl, OPEN_ACL, type Stat } from '@meerkat/protocol';

/** The state of a path from some zxid on. Immutable. */
export interface ZnodeState {
  readonly zxid: number;
  /** false: the znode does not exist; the other fields are those from before. */
  readonly exists: boolean;
  readonly data: Uint8Array | null;
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  /** Number of children ever created. */
  readonly cversion: number;
  readonly aversion: number;
  /** Session of an ephemeral; otherwise 0n, also for containers and TTL znodes. */
  readonly owner: bigint;
  readonly numChildren: number;
  readonly acl: readonly Acl[];
  readonly isContainer: boolean;
  /** Milliseconds without changes after which a TTL znode may be deleted; null for others. */
  readonly ttlMs: number | null;
}

/** A path where nothing has ever existed. */
export const NOTHING: ZnodeState = {
  zxid: 0,
  exists: false,
  data: null,
  czxid: 0,
  mzxid: 0,
  pzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  owner: 0n,
  numChildren: 0,
  acl: OPEN_ACL,
  isContainer: false,
  ttlMs: null,
};

/** What a client is told of a state (DataNode.copyStat). */
export function statOf(state: ZnodeState): Stat {
  return {
    czxid: state.czxid,
    mzxid: state.mzxid,
    ctime: state.ctime,
    mtime: state.mtime,
    version: state.version,
    cversion: state.cversion * 2 - state.numChildren,
    aversion: state.aversion,
    ephemeralOwner: state.owner,
    dataLength: state.data?.length ?? 0,
    numChildren: state.numChildren,
    pzxid: state.pzxid,
  };
}
