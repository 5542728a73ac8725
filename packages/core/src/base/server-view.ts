import type { Acl, Membership, PersistedStat } from '@meerkat/protocol';
import type { FiredWatches } from './meters/fired-watches.ts';
import type { Meters } from './meters/meters.ts';
import type { PeerAddress } from './ports.ts';
import type { ServerStats } from './server-stats.ts';

/** One client connection, for administration (ServerCnxn, `cons`). Times are monotonic unless named wall. */
export interface ConnectionView {
  readonly remote: PeerAddress;
  /** Whether it uses TLS. */
  readonly isSecure: boolean;
  /** 0n before the connect request has been answered. */
  readonly sessionId: bigint;
  /** Negotiated session timeout in milliseconds. */
  readonly sessionTimeoutMs: number;
  readonly isReading: boolean;
  readonly isWriting: boolean;
  readonly outstandingRequests: number;
  readonly packetsReceived: number;
  readonly packetsSent: number;
  /** Name of the last operation as `cons` shows it: `NA`, `PING`, `GETD` …; null before the first. */
  readonly lastOperation: string | null;
  readonly establishedWallMs: number;
  readonly lastCxid: number;
  readonly lastZxid: number;
  readonly lastResponseMs: number;
  readonly lastLatencyMs: number;
  readonly minLatencyMs: number;
  readonly averageLatencyMs: number;
  readonly maxLatencyMs: number;
}

/** One session, for administration. */
export interface SessionView {
  readonly id: bigint;
  /** As negotiated at the last connect; milliseconds. */
  readonly timeoutMs: number;
  /** Address of its client; null while it has no connection. */
  readonly remote: PeerAddress | null;
}

/** Sessions or connections that expire together. */
export interface ExpiryBucketView<T> {
  /** Wall-clock milliseconds. */
  readonly expiresAtWallMs: number;
  readonly members: readonly T[];
}

/** The part of a connection that `dump` shows. */
export type ConnectionName = Pick<ConnectionView, 'remote' | 'sessionId'>;

export interface WatchView {
  /** Data watches only, as `wchs` counts. */
  summary(): { readonly connections: number; readonly paths: number; readonly watches: number };
  /** Sessions and the paths they watch. Evaluated lazily, so that the caller may pause in between. */
  bySession(): Iterable<readonly [sessionId: bigint, paths: Iterable<string>]>;
  byPath(): Iterable<readonly [path: string, sessionIds: Iterable<bigint>]>;
  /** How many watches events have fired. */
  readonly fired: FiredWatches;
  /** All watches of both tables: `zk_watch_count`. */
  readonly count: number;
}

/** A learner that is connected to this server. */
export interface LearnerView {
  readonly serverId: number;
  readonly isObserver: boolean;
  /** True when its acknowledgements count for the quorum. */
  readonly isVoter: boolean;
  /** True once it has the leader's history and receives new proposals. */
  readonly isSynchronized: boolean;
}

/** Bytes of the txns that a leader has proposed during its leadership; −1 before the first. */
export interface ProposalSizesView {
  readonly last: number;
  readonly min: number;
  readonly max: number;
  reset(): void;
}

/** A server of an ensemble, for administration. */
export interface EnsembleView {
  readonly membership: Membership;
  /** Hosts of the servers of the committed and the proposed membership. */
  hosts(): readonly string[];
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  /** Server id; null while it is looking. */
  readonly leader: number | null;
  /** Other servers with an established election connection. */
  readonly connectedServers: readonly number[];
  /** For an observer: the server that it is connected to, the leader or a follower; null for others. */
  readonly observerMaster: number | null;
  /** True for a follower that accepts observers on behalf of its leader. */
  readonly feedsObservers: boolean;
  /** Connected learners: of a leader all learners, of a follower the observers that it feeds. */
  learners(): readonly LearnerView[];
  /** Sync requests of learners that are pending at this leader. */
  readonly pendingSyncs: number;
  /** Txns in memory for learners that are a little behind, those that are not committed yet included. */
  readonly rememberedTxns: number;
  /** Of this leader; null for other servers. */
  readonly proposalSizes: ProposalSizesView | null;
}

/** A path with a quota: limits and usage. −1: no limit. If there are a soft and a hard limit, the hard one. */
export interface QuotaUse {
  readonly path: string;
  readonly countLimit: number;
  readonly bytesLimit: number;
  readonly count: number;
  readonly bytes: number;
}

/** What an administrator may inspect and reset; every value is computed when it is read. */
export interface ServerView {
  readonly isServing: boolean;
  /** True while only reads are answered because there is no leader. */
  readonly isReadOnly: boolean;
  readonly serverId: number;
  readonly lastZxid: number;
  /** Counted as Apache does, with the root twice; a fresh server has 5. */
  readonly znodeCount: number;
  readonly ephemeralCount: number;
  /** Bytes of paths and data. */
  readonly approximateDataSize: number;
  readonly outstandingRequests: number;
  /** Sessions of the ensemble, or of a standalone server. */
  readonly sessionCount: number;
  /** Local sessions of this server; null where they are disabled. */
  readonly localSessionCount: number | null;
  readonly stats: ServerStats;
  readonly meters: Meters;
  /** Requests and connections that a limit has refused since the start, by name of the limit. */
  refusals(): Iterable<readonly [limit: string, count: number]>;
  readonly watches: WatchView;
  /** Null for a standalone server. */
  readonly ensemble: EnsembleView | null;
  readonly connectionCount: number;
  /** Evaluated lazily, so that the caller may pause in between. */
  connections(): Iterable<ConnectionView>;
  /** Live sessions: neither expired nor closing. */
  sessions(): readonly SessionView[];
  /** All session ids in ascending order, including those that are closing. */
  sessionIds(): Iterable<bigint>;
  /** Milliseconds; null when there is no such live session. */
  timeoutMsOf(sessionId: bigint): number | null;
  sessionBuckets(): readonly ExpiryBucketView<bigint>[];
  localSessionBuckets(): readonly ExpiryBucketView<bigint>[];
  connectionBuckets(): readonly ExpiryBucketView<ConnectionName>[];
  sessionsWithEphemerals(): readonly bigint[];
  /** The paths of a session's ephemerals, evaluated lazily. */
  ephemeralsOf(sessionId: bigint): Iterable<string>;
  ephemeralCountOf(sessionId: bigint): number;
  /** Quotas and their usage, evaluated lazily. */
  quotas(): Iterable<QuotaUse>;
  /** Digests of every 128th zxid, oldest first, at most 1024. */
  digests(): readonly { readonly zxid: number; readonly digest: bigint }[];
  /** Everything that is replicated; null while no client is served. */
  database(): DatabaseView | null;
  resetConnectionStats(): void;
}

/** Answers the four-letter words. */
export interface FourLetterWords {
  /** True for the words of ZooKeeper, allowed or not. */
  isWord(word: string): boolean;
  /** True when 8 bytes follow the word, the mask of `stmk`: only where it is allowed. */
  hasArgument(word: string): boolean;
  /**
   * The text in pieces; the connection is closed afterwards. Other clients are served and state changes in between, so
   * a long text is not a consistent snapshot.
   *
   * @param argument the mask of `stmk`
   */
  answer(word: string, argument: bigint | null): Iterable<string>;
}

/** One znode as it is stored. */
export interface ZnodeView {
  readonly path: string;
  /** A view of the tree's own bytes, valid until the next txn. */
  readonly data: Uint8Array | null;
  /** As in a snapshot: `cversion` counts the children ever created, `ephemeralOwner` also marks containers and TTLs. */
  readonly stat: PersistedStat;
  readonly acl: readonly Acl[];
}

/** Everything that is replicated, as one server has it at this moment. */
export interface DatabaseView {
  readonly lastZxid: number;
  /** A signed long; 0n where digests are off. */
  readonly treeDigest: bigint;
  /** Negotiated timeout in milliseconds of each session that was created and not closed. */
  readonly sessions: ReadonlyMap<bigint, number>;
  /**
   * Every znode, parents before their children, the root first. For a large tree the caller may pause between znodes,
   * but must not continue after a txn has been applied.
   */
  znodes(): Iterable<ZnodeView>;
}
