import type { Acl, Membership, PersistedStat } from '@meerkat/protocol';
import type { FiredWatches } from './meters/fired-watches.ts';
import type { Meters } from './meters/meters.ts';
import type { PeerAddress } from './ports.ts';
import type { ServerStats } from './server-stats.ts';

/** One client connection as the administrator sees it (ServerCnxn, `cons`). Times are monotonic unless named wall. */
export interface ConnectionView {
  readonly remote: PeerAddress;
  /** By TLS. */
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
  /** `NA`, `PING`, `GETD` …: names of the last operation as `cons` shows them; null before the first. */
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

/** One session as the administrator sees it. */
export interface SessionView {
  readonly id: bigint;
  /** As negotiated at the last connect; milliseconds. */
  readonly timeoutMs: number;
  /** Where its client is; null while it has no connection. */
  readonly remote: PeerAddress | null;
}

/** Sessions or connections that expire together. */
export interface ExpiryBucketView<T> {
  /** Wall-clock milliseconds. */
  readonly expiresAtWallMs: number;
  readonly members: readonly T[];
}

/** What a line of `dump` says of a connection. */
export type ConnectionName = Pick<ConnectionView, 'remote' | 'sessionId'>;

export interface WatchView {
  /** Of the data watches alone, as `wchs` counts. */
  summary(): { readonly connections: number; readonly paths: number; readonly watches: number };
  /** Sessions and the paths they watch. Nothing is looked at before its turn comes, so that there may be pauses between. */
  bySession(): Iterable<readonly [sessionId: bigint, paths: Iterable<string>]>;
  byPath(): Iterable<readonly [path: string, sessionIds: Iterable<bigint>]>;
  /** How many watches events have fired. */
  readonly fired: FiredWatches;
  /** All watches of both tables: `zk_watch_count`. */
  readonly count: number;
}

/** A learner as the server sees it that it hangs on. */
export interface LearnerView {
  readonly serverId: number;
  readonly isObserver: boolean;
  /** True when its acknowledgements count for the quorum. */
  readonly isVoter: boolean;
  /** True once it has the leader's history and is sent what follows. */
  readonly isSynchronized: boolean;
}

/** Bytes of the txns that a leader has proposed since it leads; −1 before the first. */
export interface ProposalSizesView {
  readonly last: number;
  readonly min: number;
  readonly max: number;
  reset(): void;
}

/** A server of an ensemble as the administrator sees it. */
export interface EnsembleView {
  readonly membership: Membership;
  /** Where servers of the committed and of the proposed membership are. */
  hosts(): readonly string[];
  readonly role: 'looking' | 'leading' | 'following' | 'observing';
  /** Server id; null while it looks for one. */
  readonly leader: number | null;
  /** Other servers with which a connection for elections stands. */
  readonly connectedServers: readonly number[];
  /** Of an observer, the server that it hangs on, the leader or a follower; null of others. */
  readonly observerMaster: number | null;
  /** True of a follower that takes observers in its leader's place. */
  readonly feedsObservers: boolean;
  /** Those that hang on this server: of a leader all learners, of a follower the observers that it feeds. */
  learners(): readonly LearnerView[];
  /** Syncs of learners that wait for this leader. */
  readonly pendingSyncs: number;
  /** Of this leader; null of other servers. */
  readonly proposalSizes: ProposalSizesView | null;
}

/** A registered path, with what may be and what is in use below it. −1: not limited. Of hard and soft limits the hard one. */
export interface QuotaUse {
  readonly path: string;
  readonly countLimit: number;
  readonly bytesLimit: number;
  readonly count: number;
  readonly bytes: number;
}

/** What the administrator may look at and reset; every value is read when asked for. */
export interface ServerView {
  readonly isServing: boolean;
  /** True while reads alone are answered, as there is no leader. */
  readonly isReadOnly: boolean;
  readonly serverId: number;
  readonly lastZxid: number;
  /** As Apache counts: both names of the root; a fresh server has 5. */
  readonly znodeCount: number;
  readonly ephemeralCount: number;
  /** Bytes of paths and data. */
  readonly approximateDataSize: number;
  readonly outstandingRequests: number;
  /** Sessions of the ensemble, or of a server of its own. */
  readonly sessionCount: number;
  /** Sessions that this server alone knows; null where there are none such. */
  readonly localSessionCount: number | null;
  readonly stats: ServerStats;
  readonly meters: Meters;
  /** Requests and connections that a limit has refused since the start, by the limit's name. */
  refusals(): Iterable<readonly [limit: string, count: number]>;
  readonly watches: WatchView;
  /** Null of a server of its own. */
  readonly ensemble: EnsembleView | null;
  readonly connectionCount: number;
  /** Each is looked at when its turn comes, so that there may be pauses between. */
  connections(): Iterable<ConnectionView>;
  /** The sessions that live: neither expired nor closing. */
  sessions(): readonly SessionView[];
  /** Their ids in ascending order, those that are closing among them. */
  sessionIds(): Iterable<bigint>;
  /** Milliseconds; null when there is no such session, or none that lives. */
  timeoutMsOf(sessionId: bigint): number | null;
  sessionBuckets(): readonly ExpiryBucketView<bigint>[];
  localSessionBuckets(): readonly ExpiryBucketView<bigint>[];
  connectionBuckets(): readonly ExpiryBucketView<ConnectionName>[];
  sessionsWithEphemerals(): readonly bigint[];
  /** The paths of a session's ephemerals; each is looked at when its turn comes. */
  ephemeralsOf(sessionId: bigint): Iterable<string>;
  ephemeralCountOf(sessionId: bigint): number;
  /** Quotas and their use; each is looked at when its turn comes. */
  quotas(): Iterable<QuotaUse>;
  /** Digests kept of every 128th zxid, oldest first, at most 1024. */
  digests(): readonly { readonly zxid: number; readonly digest: bigint }[];
  /** Everything that is replicated; null while nobody is served. */
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
   * The text in pieces, after which the connection is closed. Between two of them others are served and things change, so
   * that a long text is of no one moment.
   *
   * @param argument the mask behind `stmk`
   */
  answer(word: string, argument: bigint | null): Iterable<string>;
}

/** One znode as it is kept. */
export interface ZnodeView {
  readonly path: string;
  /** A view of the tree's own bytes, valid until the next txn. */
  readonly data: Uint8Array | null;
  /** As a snapshot keeps it: `cversion` counts the children ever created, `ephemeralOwner` marks containers and TTLs too. */
  readonly stat: PersistedStat;
  readonly acl: readonly Acl[];
}

/** All that is replicated, as one server has it at this moment. */
export interface DatabaseView {
  readonly lastZxid: number;
  /** A signed long; 0n where digests are off. */
  readonly treeDigest: bigint;
  /** Negotiated timeout in milliseconds of each session that was created and not closed. */
  readonly sessions: ReadonlyMap<bigint, number>;
  /**
   * Every znode, a parent before its children, the root first. Whoever looks at a large tree stops between znodes, and
   * must not go on after a txn has been applied.
   */
  znodes(): Iterable<ZnodeView>;
}
