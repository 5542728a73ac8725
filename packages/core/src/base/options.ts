import type { Membership, MembershipRules } from '@meerkat/protocol';
import { DEFAULT_LIMIT_OPTIONS, type LimitOptions } from './limit-options.ts';
import type { Compression } from './snapshot-codec.ts';

/** Options of a server that is a member of an ensemble. */
export interface EnsembleOptions {
  /** Its members, this server among them. */
  readonly membership: Membership;
  /** Rules that every membership must satisfy to take effect. */
  readonly membershipRules: MembershipRules;
  /** Ticks that a learner may take to connect to its leader and to synchronize. */
  readonly initLimit: number;
  /** Ticks of silence after which leader and learner close their connection. */
  readonly syncLimit: number;
  /** Ticks for which an answered ping lets a server answer its clients, see docs/leases.md; 0: no limit. */
  readonly leaseTicks: number;
  /** Txns of an epoch after which its leader hands over, so that the counter never wraps; at most 2**32 − 2. */
  readonly epochTxnsMax: number;
  /** Committed txns that are kept in memory for learners that are a little behind (`commitLogCount`). */
  readonly commitLogCount: number;
  /** Fraction of the newest snapshot's size that may be read from the log for a learner that is further behind. */
  readonly snapshotSizeFactor: number;
  /** Milliseconds to connect to another server for an election and identify itself (`cnxTimeout`). */
  readonly electionConnectTimeoutMs: number;
  /**
   * Milliseconds that one of several addresses of a server may take to answer, before it counts as unreachable
   * (`multiAddress.reachabilityCheckTimeoutMs`).
   */
  readonly addressTimeoutMs: number;
  /** Listens on every address of the machine, whatever the server list says; each port is opened once. */
  readonly listensOnAllIps: boolean;
  /** True for an observer that logs the txns it receives (`syncEnabled`). */
  readonly syncEnabled: boolean;
  /** Port on which followers accept observers (`observerMasterPort`); 0: observers connect to the leader. */
  readonly observerMasterPort: number;
  /** False: a leader accepts no clients (`leaderServes`). */
  readonly leaderServes: boolean;
  /** A server without a leader answers reads (`readonlymode.enabled`). */
  readonly readOnlyEnabled: boolean;
  /** New sessions are known to their server only (`localSessionsEnabled`); the same at every server. */
  readonly localSessionsEnabled: boolean;
  /** Such a session becomes a global one with its first ephemeral (`localSessionsUpgradingEnabled`). */
  readonly localSessionsUpgradingEnabled: boolean;
}

export const DEFAULT_ENSEMBLE_OPTIONS: Omit<EnsembleOptions, 'membership'> = {
  membershipRules: { isStandaloneEnabled: true, isMultiAddressEnabled: false },
  initLimit: 10,
  syncLimit: 5,
  leaseTicks: 2,
  epochTxnsMax: 2 ** 32 - 2 ** 20,
  commitLogCount: 500,
  snapshotSizeFactor: 0.33,
  electionConnectTimeoutMs: 5000,
  addressTimeoutMs: 1000,
  listensOnAllIps: false,
  syncEnabled: true,
  observerMasterPort: 0,
  leaderServes: true,
  readOnlyEnabled: false,
  localSessionsEnabled: false,
  localSessionsUpgradingEnabled: false,
};

/** The complete configuration of a server's core. Names and defaults are those of zoo.cfg. */
export interface CoreOptions {
  /** Directory of the snapshots and epoch files (`dataDir/version-2`). */
  readonly snapshotDirectory: string;
  /** Directory of the transaction logs (`dataLogDir/version-2`). */
  readonly logDirectory: string;
  /** Top byte of session ids; 1 for a standalone server. */
  readonly serverId: number;
  /** Length of a tick in milliseconds: sessions expire in buckets of it. */
  readonly tickTimeMs: number;
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
  /** Largest frame in bytes (`jute.maxbuffer`). */
  readonly frameBytesMax: number;
  /** Additional bytes that a txn may take (`jute.maxbuffer.extrasize`); null = as much again. See `txnBytesMaxOf`. */
  readonly extraBytesMax: number | null;
  /** Longest reply to a multiRead in bytes: it may read the same znode repeatedly. */
  readonly multiReadBytesMax: number;
  /**
   * Unanswered requests, including reads behind their client's writes, above which connections that wait for replies
   * are not read.
   */
  readonly globalOutstandingLimit: number;
  /** Connections per address; 0 = unlimited. */
  readonly connectionsPerHostMax: number;
  /** Total connections; 0 = unlimited. */
  readonly connectionsMax: number;
  /** Milliseconds that a connection may stay without a session. */
  readonly sessionlessTimeoutMs: number;
  readonly skipAcl: boolean;
  /** Whether the membership can change while an ensemble runs; the same at all its servers. */
  readonly reconfigEnabled: boolean;
  readonly enforceQuota: boolean;
  /** TTL znodes (`extendedTypesEnabled`). */
  readonly extendedTypesEnabled: boolean;
  /** TTL znodes written by 3.5.3 are recognized (`emulate353TTLNodes`), where extended types are enabled. */
  readonly emulate353TtlZnodes: boolean;
  readonly digestEnabled: boolean;
  /** Period in milliseconds, and maximum rate per minute, of deleting empty containers and expired TTL znodes. */
  readonly containerCheckIntervalMs: number;
  readonly containerDeletesPerMinuteMax: number;
  /** Milliseconds after which a container that never had a child is deleted; 0 = never. */
  readonly containerNeverUsedMs: number;
  /** Txns after which, plus or minus a random amount, a snapshot is taken. */
  readonly snapCount: number;
  /** Bytes of log after which, plus or minus a random amount, a snapshot is taken; ≤ 0 = off. */
  readonly snapBytesMax: number;
  /** Compression of new snapshots (`snapshot.compression.method`), for which the host needs a codec; null = none. */
  readonly snapshotCompression: Compression | null;
  /** Bytes by which a log file grows; ≤ 0 = no preallocation. */
  readonly preallocateBytes: number;
  /** Bytes of a log file after which the next one is started; ≤ 0 = off. */
  readonly logBytesMax: number;
  /** False: nothing is synced and every txn counts as durable immediately (`forceSync=no`). */
  readonly forceSync: boolean;
  /** A sync of the log that takes longer than this many milliseconds is reported (`fsync.warningthresholdms`). */
  readonly syncWarningMs: number;
  /** Snapshots kept by the purge, at least 3, and its period in milliseconds; 0 = never. */
  readonly purgeRetainCount: number;
  readonly purgeIntervalMs: number;
  /** Start with a log but without any snapshot (`snapshot.trust.empty`). */
  readonly trustEmptySnapshot: boolean;
  /**
   * False: an empty directory counts as lost data, unless a file `initialize` next to the log directory marks the
   * server as new (`db.autocreate`). The server does not vote until a leader has sent it everything; a standalone
   * server does not start.
   */
  readonly createsDatabase: boolean;
  readonly limits: LimitOptions;
  /** null: standalone. */
  readonly ensemble: EnsembleOptions | null;
}

export const DEFAULT_CORE_OPTIONS: Omit<CoreOptions, 'snapshotDirectory' | 'logDirectory'> = {
  serverId: 1,
  tickTimeMs: 3000,
  sessionTimeoutMinMs: 6000,
  sessionTimeoutMaxMs: 60_000,
  frameBytesMax: 0xfffff,
  multiReadBytesMax: 16 * 1024 * 1024,
  extraBytesMax: null,
  globalOutstandingLimit: 1000,
  connectionsPerHostMax: 60,
  connectionsMax: 0,
  sessionlessTimeoutMs: 10_000,
  skipAcl: false,
  reconfigEnabled: false,
  enforceQuota: false,
  extendedTypesEnabled: false,
  emulate353TtlZnodes: false,
  digestEnabled: true,
  containerCheckIntervalMs: 60_000,
  containerDeletesPerMinuteMax: 10_000,
  containerNeverUsedMs: 0,
  snapCount: 100_000,
  snapBytesMax: 4_194_304 * 1024,
  snapshotCompression: null,
  preallocateBytes: 65_536 * 1024,
  logBytesMax: -1,
  forceSync: true,
  syncWarningMs: 1000,
  purgeRetainCount: 3,
  purgeIntervalMs: 0,
  trustEmptySnapshot: false,
  createsDatabase: true,
  limits: DEFAULT_LIMIT_OPTIONS,
  ensemble: null,
};
