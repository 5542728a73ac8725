import type { Membership, MembershipRules } from '@meerkat/protocol';
import { DEFAULT_LIMIT_OPTIONS, type LimitOptions } from './limit-options.ts';
import type { Compression } from './snapshot-codec.ts';

/** What a server knows of the ensemble that it is a member of. */
export interface EnsembleOptions {
  /** Its members, this server among them. */
  readonly membership: Membership;
  /** What every membership that is to be in force must keep to. */
  readonly membershipRules: MembershipRules;
  /** Ticks that a learner may take to connect to its leader and to synchronize. */
  readonly initLimit: number;
  /** Ticks of silence after which leader and learner give each other up. */
  readonly syncLimit: number;
  /** Ticks for which an answered ping lets a server answer its clients, see docs/leases.md; 0: nothing limits it. */
  readonly leaseTicks: number;
  /** Txns of an epoch after which its leader hands over, so that the counter never wraps; at most 2**32 − 2. */
  readonly epochTxnsMax: number;
  /** Committed txns that are kept in memory for learners that are a little behind (`commitLogCount`). */
  readonly commitLogCount: number;
  /** Part of the newest snapshot's size that may be read from the log for a learner that is further behind. */
  readonly snapshotSizeFactor: number;
  /** Milliseconds to connect to another server for an election and to say who one is (`cnxTimeout`). */
  readonly electionConnectTimeoutMs: number;
  /**
   * Milliseconds that one of several addresses of a server may take to answer, before it counts as unreachable
   * (`multiAddress.reachabilityCheckTimeoutMs`).
   */
  readonly addressTimeoutMs: number;
  /** The host listens on every address of the machine, whatever the list says: each port is listened on once. */
  readonly listensOnAllIps: boolean;
  /** True of an observer that logs what it is informed of (`syncEnabled`). */
  readonly syncEnabled: boolean;
  /** Where followers take observers, and observers look for followers (`observerMasterPort`); 0: observers hang on the leader. */
  readonly observerMasterPort: number;
  /** False: a leader takes no clients (`leaderServes`). */
  readonly leaderServes: boolean;
  /** A server that finds no leader answers reads (`readonlymode.enabled`). */
  readonly readOnlyEnabled: boolean;
  /** New sessions are known to their server alone (`localSessionsEnabled`); the same at every server. */
  readonly localSessionsEnabled: boolean;
  /** Such a session becomes one of the ensemble with its first ephemeral (`localSessionsUpgradingEnabled`). */
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

/** Everything that configuration decides about a server's core. Names and defaults are those of zoo.cfg. */
export interface CoreOptions {
  /** Directory of the snapshots and epoch files (`dataDir/version-2`). */
  readonly snapshotDirectory: string;
  /** Directory of the transaction logs (`dataLogDir/version-2`). */
  readonly logDirectory: string;
  /** Becomes the top byte of session ids; 1 for a standalone server. */
  readonly serverId: number;
  /** Length of a tick in milliseconds: sessions expire in buckets of it. */
  readonly tickTimeMs: number;
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
  /** Largest frame in bytes (`jute.maxbuffer`). */
  readonly frameBytesMax: number;
  /** What a txn may take beyond that (`jute.maxbuffer.extrasize`); null = as much again. See `txnBytesMaxOf`. */
  readonly extraBytesMax: number | null;
  /** Longest reply to a multiRead in bytes: it may read the same znode again and again. */
  readonly multiReadBytesMax: number;
  /** Requests that are not answered yet, reads behind their client's writes included, above which no connection is read that waits for replies. */
  readonly globalOutstandingLimit: number;
  /** Connections of one address; 0 = unlimited. */
  readonly connectionsPerHostMax: number;
  /** All connections; 0 = unlimited. */
  readonly connectionsMax: number;
  /** Milliseconds that a connection may stay without a session. */
  readonly sessionlessTimeoutMs: number;
  readonly skipAcl: boolean;
  /** Whether members come, go and change while an ensemble runs; the same at all its servers. */
  readonly reconfigEnabled: boolean;
  readonly enforceQuota: boolean;
  /** TTL znodes (`extendedTypesEnabled`). */
  readonly extendedTypesEnabled: boolean;
  /** TTL znodes as 3.5.3 wrote them are read as such (`emulate353TTLNodes`), where extended types are enabled. */
  readonly emulate353TtlZnodes: boolean;
  readonly digestEnabled: boolean;
  /** Period in milliseconds, and pace per minute, of the search for empty containers and old TTL znodes. */
  readonly containerCheckIntervalMs: number;
  readonly containerDeletesPerMinuteMax: number;
  /** Milliseconds after which a container that never had a child is deleted; 0 = never. */
  readonly containerNeverUsedMs: number;
  /** Txns after which, plus or minus a random part, a snapshot is taken. */
  readonly snapCount: number;
  /** Bytes of log after which, plus or minus a random part, a snapshot is taken; ≤ 0 = off. */
  readonly snapBytesMax: number;
  /** Of new snapshots (`snapshot.compression.method`), which the host has a codec for; null = none. */
  readonly snapshotCompression: Compression | null;
  /** Bytes by which a log file grows; ≤ 0 = no preallocation. */
  readonly preallocateBytes: number;
  /** Bytes of a log file after which the next one is started; ≤ 0 = off. */
  readonly logBytesMax: number;
  /** False: nothing is synced and every txn counts as durable at once (`forceSync=no`). */
  readonly forceSync: boolean;
  /** A sync of the log that takes longer than this many milliseconds is reported (`fsync.warningthresholdms`). */
  readonly syncWarningMs: number;
  /** Snapshots kept by the purge, at least 3, and its period in milliseconds; 0 = never. */
  readonly purgeRetainCount: number;
  readonly purgeIntervalMs: number;
  /** Start with a log but without any snapshot (`snapshot.trust.empty`). */
  readonly trustEmptySnapshot: boolean;
  /**
   * False: a server whose directory is empty has lost it, unless a file `initialize` beside the log directory says that it is new
   * (`db.autocreate`). It votes for nobody until a leader has sent it everything; a server of its own does not start.
   */
  readonly createsDatabase: boolean;
  readonly limits: LimitOptions;
  /** null: a server of its own. */
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
