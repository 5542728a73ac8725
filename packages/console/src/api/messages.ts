/*
 * The messages between backend and page, as JSON. Zxids and session ids are hexadecimal text with 0x, bytes are base64,
 * times are milliseconds since 1970.
 */

/** The first response to the page: GET api/hello. */
export interface Hello {
  readonly version: string;
  /** False: the page must first send the key of its address. */
  readonly isAdmitted: boolean;
  /** Whether this console may change anything. */
  readonly isWritable: boolean;
  /** To be sent in the header of every request that is not a GET. */
  readonly csrf: string;
  readonly clusters: readonly ClusterInfo[];
}

export interface ClusterInfo {
  readonly name: string;
  readonly servers: readonly string[];
  readonly hasTls: boolean;
  /** Whether the console was started with its own credentials for it. */
  readonly hasOwnLogin: boolean;
  /** Whether the history of znodes is available. */
  readonly hasHistory: boolean;
  /** Whether complete past trees are available. */
  readonly hasPast: boolean;
  /** The login of this page's session; null: not logged in. */
  readonly login: LoginInfo | null;
}

export interface LoginInfo {
  readonly method: LoginMethod;
  /** The user, or '' where there is none. */
  readonly user: string;
}

export type LoginMethod = 'own' | 'none' | 'digest' | 'sasl' | 'certificate';

/** POST api/c/CLUSTER/login. */
export type LoginRequest =
  | { readonly method: 'own' | 'none' }
  | { readonly method: 'digest' | 'sasl'; readonly user: string; readonly password: string }
  | { readonly method: 'certificate'; readonly pem: string; readonly passphrase: string };

/** Sent instead of a result. */
export interface Failure {
  /** ZooKeeper's name of the error, or one of the console's in lower case. */
  readonly code: string;
  readonly message: string;
  readonly path: string | null;
}

export interface StatInfo {
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly ephemeralOwner: string;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly dataLength: number;
  readonly numChildren: number;
}

export interface AclEntry {
  /** Letters out of cdrwa. */
  readonly perms: string;
  readonly scheme: string;
  readonly id: string;
}

/** GET api/c/CLUSTER/znode?path= */
export interface ZnodeInfo {
  readonly path: string;
  /** base64; null: the znode has no data, which is not the same as empty. */
  readonly data: string | null;
  readonly stat: StatInfo;
  /** null: it may not be read. */
  readonly acl: readonly AclEntry[] | null;
  /** The identities of this session at the server; null when the server does not tell. */
  readonly identities: readonly { readonly scheme: string; readonly id: string }[] | null;
  /** The nearest quota, at the znode or above it. */
  readonly quota: QuotaInfo | null;
}

export interface QuotaInfo {
  /** The znode with the quota. */
  readonly path: string;
  /** Soft limits, at which servers log a warning; -1: none. */
  readonly countMax: number;
  readonly bytesMax: number;
  /** Hard limits, enforced with enforceQuota=true; -1: none. */
  readonly countHardMax: number;
  readonly bytesHardMax: number;
  readonly count: number;
  readonly bytes: number;
}

/** GET api/c/CLUSTER/children?path=&from=&count= */
export interface ChildrenPage {
  readonly path: string;
  readonly total: number;
  readonly cversion: number;
  readonly from: number;
  readonly children: readonly ChildInfo[];
  /** The indexes of the names requested with `find`; -1 when they are gone. */
  readonly places: Readonly<Record<string, number>>;
}

export interface ChildInfo {
  readonly name: string;
  /** null: not known, for instance when it has been deleted meanwhile. */
  readonly numChildren: number | null;
  readonly dataLength: number;
  readonly isEphemeral: boolean;
}

/** GET api/c/CLUSTER/search?text= */
export interface SearchResult {
  readonly paths: readonly string[];
  /** The number of matches; at most 200 of them are listed. */
  readonly found: number;
  readonly index: IndexState;
}

/** The state of the index of the whole tree. */
export interface IndexState {
  readonly znodes: number;
  readonly bytes: number;
  readonly isComplete: boolean;
  /** Changes are followed; false: it is as old as its walk. */
  readonly isLive: boolean;
  /** Znodes that may not be read, or exceed the limit of the index. */
  readonly missing: string | null;
}

/** GET api/c/CLUSTER/sizes?path=: the sizes below a znode, by child. */
export interface SizeNode {
  readonly name: string;
  readonly path: string;
  readonly count: number;
  readonly bytes: number;
  /** The largest ones; the rest is combined in a last one without path. */
  readonly children: readonly SizeNode[];
}

/** GET api/c/CLUSTER/extent?path=: what a deletion would remove. */
export interface Extent {
  readonly znodes: number;
  readonly bytes: number;
  readonly ephemerals: number;
  /** The first paths. */
  readonly sample: readonly string[];
  /** There are more than were counted. */
  readonly isCut: boolean;
}

/** The result of a change. */
export interface Changed {
  readonly path: string;
  readonly znodes: number;
  /** What undo would do, as text; null: it cannot be undone. */
  readonly undo: string | null;
  /** Why not, as text. */
  readonly noUndo: string | null;
}

/** GET api/c/CLUSTER/members: the members of the ensemble, and their states. */
export interface MembersInfo {
  /** Of the configuration, in hexadecimal digits; null: none is stored. */
  readonly version: string | null;
  readonly members: readonly MemberInfo[];
  /** A line of groups or weights, with which members cannot be changed individually; null: there is none. */
  readonly weightLine: string | null;
}

export interface MemberInfo extends MemberChange {
  readonly line: string;
  readonly isVoter: boolean;
  /** host:port for clients; null: not in the configuration. */
  readonly client: string | null;
  /** As in the configuration; null: not given. */
  readonly weight: string | null;
  readonly group: string | null;
  /** Its own answer; null: it does not answer. */
  readonly role: string | null;
  readonly problem: string | null;
}

/** A member that is added, removed or changed. */
export interface MemberChange {
  readonly id: string;
  /** The text after `server.N=`; null: it is removed. */
  readonly line: string | null;
}

/** POST api/c/CLUSTER/members/plan: the steps of the changes. Each is performed by members/step. */
export interface MembersPlan {
  readonly version: string | null;
  readonly steps: readonly MemberStep[];
}

export interface MemberStep {
  readonly change: MemberChange;
  readonly what: string;
  /** Ids of the participants afterwards, how many of them must be up, how many answer now. */
  readonly voters: readonly string[];
  readonly quorum: number;
  readonly up: number;
  readonly survives: boolean;
  /** What to do before the step; null: nothing. */
  readonly first: string | null;
  readonly note: string | null;
}

export type NewZnodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

/** A subscription of an open stream: POST api/stream/ID/subscribe. */
export type Subscription =
  | { readonly kind: 'znode' | 'children' | 'changes'; readonly cluster: string; readonly path: string }
  | { readonly kind: 'servers' | 'sessions' | 'lines' | 'state' | 'index'; readonly cluster: string };

/** An event of the stream. */
export type StreamMessage =
  | { readonly kind: 'open'; readonly stream: string }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure }
  | { readonly kind: 'znode'; readonly id: number; readonly znode: ZnodeInfo | null; readonly zxid: string | null }
  | { readonly kind: 'children'; readonly id: number; readonly path: string }
  | {
      readonly kind: 'changes';
      readonly id: number;
      readonly changes: readonly ChangeInfo[];
      readonly isReady: boolean;
      readonly mode: string | null;
    }
  | { readonly kind: 'servers'; readonly id: number; readonly samples: readonly ServersSample[] }
  | { readonly kind: 'sessions'; readonly id: number; readonly sessions: SessionsInfo }
  | { readonly kind: 'lines'; readonly id: number; readonly lines: LinesInfo }
  | { readonly kind: 'index'; readonly id: number; readonly index: IndexState }
  | {
      readonly kind: 'state';
      readonly id: number;
      readonly state: string;
      readonly reason: string;
      readonly server: string | null;
      readonly session: string | null;
    };

export interface ChangeInfo {
  /** `gap`: changes may be missing here. */
  readonly type: 'created' | 'deleted' | 'changed' | 'children' | 'gap';
  readonly path: string;
  readonly zxid: string | null;
  readonly atMs: number;
  /** The data after the change, as text and truncated; null: not read. */
  readonly value: string | null;
  readonly before: string | null;
  readonly version: number | null;
  /** The session that owns an ephemeral znode. */
  readonly owner: string | null;
  /** The number of changes missing in a gap, if known, and its reason. */
  readonly missed: number | null;
  readonly reason: string | null;
}

/** The answers of all servers at one time. */
export interface ServersSample {
  readonly atMs: number;
  readonly servers: readonly ServerSample[];
}

export interface ServerSample {
  readonly name: string;
  /** leader, follower, observer, standalone, read-only; looking without a leader; null if a server does not answer. */
  readonly role: string | null;
  readonly problem: string | null;
  readonly version: string | null;
  readonly zxid: string | null;
  /** Txns behind the furthest; null: not known. */
  readonly lag: number | null;
  readonly latencyAverageMs: number;
  readonly latencyMaxMs: number;
  readonly received: number;
  readonly connections: number;
  readonly outstanding: number;
  readonly znodes: number;
  /** From mntr, if it is allowed: see `METRICS` of the backend. */
  readonly metrics: Readonly<Record<string, number>>;
  /** From conf, if it is allowed. */
  readonly config: Readonly<Record<string, string>>;
  readonly certificate: CertificateInfo | null;
  /** Four-letter words that the server does not allow. */
  readonly refused: readonly string[];
}

export interface CertificateInfo {
  readonly subject: string;
  readonly issuer: string;
  readonly validFromMs: number;
  readonly validToMs: number;
}

export interface SessionsInfo {
  readonly sessions: readonly SessionInfo[];
  /** What servers did not report, and what can be done. */
  readonly problems: readonly string[];
}

/** One connection with a session, from `cons`. */
export interface ConnectionLine {
  readonly session: string;
  /** Address of the client. */
  readonly client: string;
  readonly server: string;
  readonly timeoutMs: number;
  readonly establishedMs: number;
  /** In hexadecimal; '' when there is none. */
  readonly lastZxid: string;
  readonly operation: string;
  readonly latencyAverageMs: number;
  readonly latencyMaxMs: number;
}

export interface SessionInfo extends ConnectionLine {
  readonly ephemerals: readonly string[];
  readonly watches: readonly string[];
  /** It is this page's own session. */
  readonly isOurs: boolean;
}

/** GET api/c/CLUSTER/session-end?session=&server=: a session that can be ended. POST ends it. */
export interface SessionEndInfo {
  /** The server that handles the request. */
  readonly server: string;
  /** The number of ephemeral znodes that are deleted with it, and the first of their paths. */
  readonly ephemerals: number;
  readonly paths: readonly string[];
  readonly isEnded: boolean;
}

export type LineKind =
  | 'lock'
  | 'read-write lock'
  | 'semaphore'
  | 'election'
  | 'queue'
  | 'barrier'
  | 'double barrier'
  | 'rendezvous'
  | 'line';

export interface LinesInfo {
  readonly lines: readonly LineInfo[];
  /** Sessions in a wait cycle, each waiting for the next and the last for the first. */
  readonly deadlocks: readonly (readonly string[])[];
  readonly index: IndexState;
}

/** The contenders below a znode, in order. */
export interface LineInfo {
  readonly path: string;
  readonly kind: LineKind;
  /** The library of the layout; `any`: all have the same. */
  readonly layout: 'curator' | 'kazoo' | 'meerkat' | 'any' | 'unknown';
  readonly total: number;
  /** The first ones. */
  readonly contenders: readonly ContenderInfo[];
  /** How many may hold it at once, if known. */
  readonly places: number | null;
}

export interface ContenderInfo {
  readonly name: string;
  readonly session: string | null;
  readonly client: string | null;
  /** null for a client that watches a barrier: it has no znode. */
  readonly sinceMs: number | null;
  /** Fencing token: the czxid; null as above. */
  readonly token: string | null;
  readonly data: string;
  /** It holds it; at barriers: it is inside, or has met. */
  readonly isHolder: boolean;
  /** Names of those it waits for. */
  readonly waitsFor: readonly string[];
}
