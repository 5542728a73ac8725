import type { Draft } from './draft.ts';
import type { Kind } from './kinds.ts';
import * as kinds from './kinds.ts';

/**
 * What becomes of a key:
 *
 * | tier | when it is in the file |
 * |---|---|
 * | supported | takes effect |
 * | accepted | its value is checked; it has nothing to decide here |
 * | later | warned about: this version does not have it yet |
 * | security | stops the start, because without it the server would be less safe than the file says |
 *
 * The last two are silent for values that ask for nothing, such as `sslQuorum=false`.
 */
export type Tier = 'supported' | 'accepted' | 'later' | 'security';

/** One key of zoo.cfg, or with a `*` at its end all keys with that beginning. */
export interface Key {
  readonly name: string;
  readonly tier: Tier;
  /** As it would stand in the file; '' for none. */
  readonly default: string;
  readonly meaning: string;
  readonly expected: string;
  /** Values that ask for nothing that this server does not do. */
  readonly harmless: readonly string[];
  /** Writes the value into the draft; false when it is not what the key expects. */
  take(text: string, draft: Draft, name: string): boolean;
}

/** The key of that name, with or without ZooKeeper's prefix for system properties; null when nobody knows it. */
export function findKey(name: string): Key | null {
  const bare = name.startsWith(PROPERTY_PREFIX) ? name.slice(PROPERTY_PREFIX.length) : name;
  const exact = KEYS_BY_NAME.get(bare);
  if (exact !== undefined) return exact;
  let longest: Key | null = null;
  for (const key of KEY_FAMILIES) {
    const prefix = key.name.slice(0, -1);
    if (bare.startsWith(prefix) && bare.length > prefix.length && key.name.length > (longest?.name.length ?? 0))
      longest = key;
  }
  return longest;
}

/** A name that differs only by its case, which ZooKeeper does not forgive; null when there is none. */
export function findSimilarName(name: string): string | null {
  const lower = name.toLowerCase();
  return KEYS.find((key) => key.name.toLowerCase() === lower)?.name ?? null;
}

const PROPERTY_PREFIX = 'zookeeper.';
const DIGEST_PROVIDER = 'org.apache.zookeeper.server.auth.DigestAuthenticationProvider';
const IP_PROVIDER = 'org.apache.zookeeper.server.auth.IPAuthenticationProvider';

function supported<T>(
  name: string,
  kind: Kind<T>,
  defaultText: string,
  meaning: string,
  apply: (draft: Draft, value: T, name: string) => void,
): Key {
  return {
    name,
    tier: 'supported',
    default: defaultText,
    meaning,
    expected: kind.expected,
    harmless: [],
    take(text, draft, nameInFile) {
      const value = kind.parse(text);
      if (value === null) return false;
      apply(draft, value, nameInFile);
      return true;
    },
  };
}

function accepted(name: string, kind: Kind<unknown>, defaultText: string, meaning: string): Key {
  return { ...supported(name, kind, defaultText, meaning, () => {}), tier: 'accepted' };
}

function later(name: string, harmless: readonly string[], meaning: string): Key {
  const key = supported(name, kinds.anything, harmless[0] ?? '', meaning, () => {});
  return { ...key, tier: 'later', harmless };
}

function security(name: string, harmless: readonly string[], meaning: string): Key {
  return { ...later(name, harmless, meaning), tier: 'security' };
}

/** Raises a number to the least that makes sense, as ZooKeeper does, and says so. */
function atLeast(draft: Draft, value: number, min: number): number {
  if (value < min) draft.notes.push(`${value} is too small; ${min} is used`);
  return Math.max(value, min);
}

const INT_MIN = -0x80000000;
const KIB = 1024;
const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });
const kibibytes = kinds.integer({ min: -1, max: 2 ** 40, unit: 'KiB; 0 or less switches it off' });
const sessionTimeout = kinds.integer({ min: -1, unit: 'ms; -1 is the default' });

/** Every key that we know, in the order of the manual. */
export const KEYS: readonly Key[] = [
  // ---- where to listen and where the data is
  supported(
    'clientPort',
    kinds.integer({ min: 0, max: 65535 }),
    '',
    'Port for clients; required. 0 takes any free port, which the log names',
    (draft, value) => {
      draft.clientPort = value;
    },
  ),
  supported(
    'clientPortAddress',
    kinds.host,
    '',
    'Name or address to listen on; every address of the machine if it is not given',
    (draft, value) => {
      draft.server.clientHost = value;
    },
  ),
  supported(
    'clientPortListenBacklog',
    kinds.integer({ min: -1 }),
    '-1',
    'Connections that wait to be accepted; -1 leaves it to the runtime',
    (draft, value) => {
      draft.server.listenBacklog = value;
    },
  ),
  supported('dataDir', kinds.path, '', 'Directory of the snapshots; required', (draft, value) => {
    draft.dataDirectory = value;
  }),
  supported(
    'dataLogDir',
    kinds.path,
    'dataDir',
    'Directory of the transaction log, best on a device of its own',
    (draft, value) => {
      draft.dataLogDirectory = value;
    },
  ),
  supported('datadir.autocreate', kinds.boolean, 'true', 'Create missing data directories', (draft, value) => {
    draft.server.createsDirectories = value;
  }),
  supported('tcpKeepAlive', kinds.boolean, 'false', 'Let the kernel probe idle connections', (draft, value) => {
    draft.server.tcpKeepAlive = value;
  }),
  supported('clientTcpKeepAlive', kinds.boolean, 'false', 'The same for the connections of clients', (draft, value) => {
    draft.server.tcpKeepAlive = value;
  }),
  // ---- sessions and connections
  supported(
    'tickTime',
    kinds.integer({ min: 1, unit: 'ms' }),
    '3000',
    'Length of a tick, the unit in which sessions expire',
    (draft, value) => {
      draft.core.tickTimeMs = value;
    },
  ),
  supported(
    'minSessionTimeout',
    sessionTimeout,
    '2 ticks',
    'Shortest session timeout that a client gets',
    (draft, value) => {
      draft.sessionTimeoutMinMs = value < 0 ? null : value;
    },
  ),
  supported(
    'maxSessionTimeout',
    sessionTimeout,
    '20 ticks',
    'Longest session timeout that a client gets',
    (draft, value) => {
      draft.sessionTimeoutMaxMs = value < 0 ? null : value;
    },
  ),
  supported('maxClientCnxns', nonNegative, '60', 'Connections of one address; 0 = unlimited', (draft, value) => {
    draft.core.connectionsPerHostMax = value;
  }),
  supported('maxCnxns', nonNegative, '0', 'Connections in all; 0 = unlimited', (draft, value) => {
    draft.core.connectionsMax = value;
  }),
  supported(
    'nio.sessionlessCnxnTimeout',
    kinds.integer({ min: 1, unit: 'ms' }),
    '10000',
    'Time that a connection may stay without a session',
    (draft, value) => {
      draft.core.sessionlessTimeoutMs = value;
    },
  ),
  supported(
    'globalOutstandingLimit',
    positive,
    '1000',
    'Requests in progress above which clients that wait for replies are not read',
    (draft, value) => {
      draft.core.globalOutstandingLimit = value;
    },
  ),
  supported(
    'jute.maxbuffer',
    kinds.decodedInteger({ min: 1, unit: 'bytes' }),
    '0xfffff',
    'Largest request and largest field of one',
    (draft, value) => {
      draft.core.frameBytesMax = value;
    },
  ),
  supported(
    '4lw.commands.whitelist',
    kinds.words,
    'srvr',
    'Four-letter words that are answered; * = all. srvr always is',
    (draft, value) => {
      draft.server.fourLetterWordsAllowed = value;
    },
  ),
  supported(
    'readonlymode.enabled',
    kinds.boolean,
    'false',
    'Concerns ensembles; here it only allows the word isro',
    (draft, value) => {
      draft.server.readOnlyModeEnabled = value;
    },
  ),
  // ---- tree
  supported('skipACL', kinds.yesOrNo, 'no', 'Skip all checks of ACLs', (draft, value) => {
    draft.core.skipAcl = value;
  }),
  supported('enforceQuota', kinds.boolean, 'false', 'Refuse writes beyond a hard quota', (draft, value) => {
    draft.core.enforceQuota = value;
  }),
  supported('extendedTypesEnabled', kinds.boolean, 'false', 'Allow TTL znodes', (draft, value) => {
    draft.core.extendedTypesEnabled = value;
  }),
  supported(
    'digest.enabled',
    kinds.boolean,
    'true',
    'Keep a digest of the tree and write it into logs and snapshots',
    (draft, value) => {
      draft.core.digestEnabled = value;
    },
  ),
  supported(
    'znode.container.checkIntervalMs',
    kinds.integer({ min: 1, unit: 'ms' }),
    '60000',
    'Period of the search for empty containers and old TTL znodes',
    (draft, value) => {
      draft.core.containerCheckIntervalMs = value;
    },
  ),
  supported(
    'znode.container.maxPerMinute',
    positive,
    '10000',
    'Containers and TTL znodes deleted in a minute at most',
    (draft, value) => {
      draft.core.containerDeletesPerMinuteMax = value;
    },
  ),
  supported(
    'znode.container.maxNeverUsedIntervalMs',
    kinds.integer({ min: 0, unit: 'ms' }),
    '0',
    'Age at which a container that never had a child is deleted; 0 = never',
    (draft, value) => {
      draft.core.containerNeverUsedMs = value;
    },
  ),
  // ---- authentication
  supported(
    'DigestAuthenticationProvider.enabled',
    kinds.boolean,
    'true',
    'Offer the scheme digest',
    (draft, value) => {
      draft.auth.digestEnabled = value;
    },
  ),
  supported(
    'DigestAuthenticationProvider.digestAlg',
    kinds.hash,
    'SHA1',
    'Hash of the scheme digest',
    (draft, value) => {
      draft.auth.digestAlgorithm = value;
    },
  ),
  supported(
    'DigestAuthenticationProvider.superDigest',
    kinds.text('user:hash', (value) => /^[^:]+:[^:]+$/.test(value)),
    '',
    'Digest of the super user, for whom no ACL counts',
    (draft, value) => {
      draft.auth.superDigest = value;
    },
  ),
  security(
    'authProvider.*',
    [DIGEST_PROVIDER, IP_PROVIDER],
    'Further schemes of authentication; digest and ip are always there',
  ),
  // ---- log and snapshots
  supported(
    'snapCount',
    kinds.integer({ min: INT_MIN }),
    '100000',
    'Txns between two snapshots; half of it is random',
    (draft, value) => {
      draft.core.snapCount = atLeast(draft, value, 2);
    },
  ),
  supported(
    'snapSizeLimitInKb',
    kibibytes,
    '4194304',
    'Log between two snapshots in KiB; half of it is random; 0 or less = unlimited',
    (draft, value) => {
      draft.core.snapBytesMax = value <= 0 ? -1 : value * KIB;
    },
  ),
  supported(
    'preAllocSize',
    kibibytes,
    '65536',
    'KiB by which a log file grows; 0 or less = as it is written',
    (draft, value) => {
      draft.core.preallocateBytes = value <= 0 ? -1 : value * KIB;
    },
  ),
  supported(
    'txnLogSizeLimitInKb',
    kibibytes,
    '-1',
    'KiB after which a new log file is started; 0 or less = only at snapshots',
    (draft, value) => {
      draft.core.logBytesMax = value <= 0 ? -1 : value * KIB;
    },
  ),
  supported(
    'forceSync',
    kinds.yesOrNo,
    'yes',
    'Sync the log before a write is answered. With no, a crash of the machine loses acknowledged writes',
    (draft, value) => {
      draft.core.forceSync = value;
    },
  ),
  supported(
    'fsync.warningthresholdms',
    kinds.integer({ min: 0, unit: 'ms' }),
    '1000',
    'A sync that takes longer is told in the log',
    (draft, value) => {
      draft.server.syncWarningMs = value;
    },
  ),
  supported(
    'snapshot.trust.empty',
    kinds.boolean,
    'false',
    'Start with a log but without any snapshot',
    (draft, value) => {
      draft.core.trustEmptySnapshot = value;
    },
  ),
  supported(
    'autopurge.snapRetainCount',
    kinds.integer({ min: INT_MIN }),
    '3',
    'Snapshots that the purge keeps, at least 3',
    (draft, value) => {
      draft.core.purgeRetainCount = atLeast(draft, value, 3);
    },
  ),
  supported(
    'autopurge.purgeInterval',
    kinds.intervalInHours,
    '0',
    'Time between two purges: hours, or with ms, s, m, h, d behind it; 0 = never',
    (draft, value) => {
      draft.core.purgeIntervalMs = value;
    },
  ),
  // ---- membership: one server
  supported(
    'server.*',
    kinds.text('host:port:port[:role][;[address:]clientPort]'),
    '',
    'A member. One line is taken as a server on its own; more are an ensemble, which this version refuses',
    (draft, value, name) => {
      draft.members.push({ id: name.slice(name.lastIndexOf('.') + 1), address: value });
    },
  ),
  supported(
    'standaloneEnabled',
    kinds.boolean,
    'true',
    'With false a single member would be an ensemble, which this version refuses',
    (draft, value) => {
      draft.standaloneEnabled = value;
    },
  ),
  accepted('group.*', kinds.anything, '', 'Quorums of groups'),
  accepted('weight.*', kinds.anything, '', 'Weights in quorums of groups'),
  accepted('initLimit', nonNegative, '', 'Ticks until a learner has caught up; concerns ensembles'),
  accepted('syncLimit', nonNegative, '', 'Ticks that a learner may lag; concerns ensembles'),
  accepted('connectToLearnerMasterLimit', nonNegative, '0', 'Ticks to connect to the leader; concerns ensembles'),
  accepted('electionAlg', kinds.oneOf('3'), '3', 'Algorithm of elections; there is one'),
  accepted('peerType', kinds.oneOf('participant', 'observer'), 'participant', 'Role in an ensemble'),
  accepted('leaderServes', kinds.yesOrNo, 'yes', 'Concerns ensembles'),
  accepted('quorumListenOnAllIPs', kinds.boolean, 'false', 'Concerns ensembles'),
  accepted('syncEnabled', kinds.boolean, 'true', 'Concerns observers'),
  accepted('observer.syncEnabled', kinds.boolean, 'true', 'Concerns observers'),
  accepted('observerMasterPort', kinds.integer({ min: 0, max: 65535 }), '0', 'Concerns ensembles'),
  accepted('localSessionsEnabled', kinds.boolean, 'false', 'Concerns ensembles'),
  accepted('localSessionsUpgradingEnabled', kinds.boolean, 'false', 'Concerns ensembles'),
  accepted('cnxTimeout', nonNegative, '5000', 'Concerns ensembles'),
  accepted('quorumCnxnTimeoutMs', kinds.integer({ min: -1 }), '-1', 'Concerns ensembles'),
  accepted('electionPortBindRetry', nonNegative, '3', 'Concerns ensembles'),
  accepted('commitLogCount', nonNegative, '500', 'Concerns ensembles'),
  accepted('snapshotSizeFactor', kinds.anything, '0.33', 'Concerns ensembles'),
  accepted('fastleader.*', kinds.anything, '', 'Waiting times of elections'),
  accepted('leader.*', kinds.anything, '', 'Concerns ensembles'),
  accepted('learner.*', kinds.anything, '', 'Concerns ensembles'),
  accepted('observer.*', kinds.anything, '', 'Concerns ensembles'),
  accepted('observerMaster.*', kinds.anything, '', 'Concerns ensembles'),
  accepted('multiAddress.*', kinds.anything, '', 'Concerns ensembles'),
  accepted('quorum.cnxn.threads.size', positive, '20', 'Concerns ensembles with SASL'),
  // ---- what has nothing to decide here
  accepted('serverCnxnFactory', kinds.anything, '', "Apache's choice of a network layer; there is one here"),
  accepted('fips-mode', kinds.boolean, 'true', 'Concerns TLS and SASL'),
  accepted(
    'jute.maxbuffer.extrasize',
    kinds.decodedInteger({ min: 0 }),
    '0xfffff',
    "Room for the server's own records; not needed here",
  ),
  accepted('flushDelay', nonNegative, '0', 'All writes of a turn are synced together anyway'),
  accepted('maxWriteQueuePollTime', nonNegative, '0', 'All writes of a turn are synced together anyway'),
  accepted('maxBatchSize', nonNegative, '1000', 'All writes of a turn are synced together anyway'),
  accepted(
    'maxResponseCacheSize',
    kinds.integer({ min: -1 }),
    '400',
    'Replies are made faster than they would be found',
  ),
  accepted(
    'maxGetChildrenResponseCacheSize',
    kinds.integer({ min: -1 }),
    '400',
    'Replies are made faster than they would be found',
  ),
  accepted('commitProcessor.*', kinds.anything, '', 'There are no such threads'),
  accepted('nio.*', kinds.anything, '', 'There are no such threads'),
  accepted('netty.*', kinds.anything, '', 'There is no Netty'),
  accepted('intBufferStartingSizeBytes', positive, '1024', "Tuning of Apache's server"),
  accepted('watchManagerName', kinds.anything, '', "Tuning of Apache's server"),
  accepted('watcherClean*', kinds.anything, '', "Tuning of Apache's server"),
  accepted('maxInProcessingDeadWatchers', kinds.anything, '', "Tuning of Apache's server"),
  accepted('bitHashCacheSize', kinds.anything, '', "Tuning of Apache's server"),
  accepted('pathStats.*', kinds.anything, '', "Tuning of Apache's server"),
  accepted('messageTracker.*', kinds.anything, '', "Tuning of Apache's server"),
  accepted('jvm.pause.monitor', kinds.boolean, 'false', 'There is no JVM'),
  accepted('jvm.pause.*', kinds.anything, '', 'There is no JVM'),
  // ---- known, not yet there
  later('dynamicConfigFile', [], 'Members in a file of their own; ensembles are not in this version'),
  later('reconfigEnabled', ['false'], 'Reconfiguration of ensembles'),
  later('oraclePath', [], 'Ensembles of two'),
  later('admin.enableServer', ['false'], 'The HTTP server for administrators'),
  later('admin.*', [], 'The HTTP server for administrators'),
  later(
    'metricsProvider.className',
    [
      'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider',
      'org.apache.zookeeper.metrics.impl.NullMetricsProvider',
    ],
    'Where metrics go; mntr shows them',
  ),
  later('metricsProvider.*', [], 'Settings of a metrics provider'),
  later('audit.enable', ['false'], 'The audit log'),
  later('audit.*', [], 'The audit log'),
  later('snapshot.compression.method', [''], 'Compressed snapshots'),
  later('db.autocreate', ['true'], 'Whether an empty directory may start'),
  later('closeSessionTxn.enabled', ['true'], 'Whether the end of a session lists its ephemerals in the log'),
  later('serializeLastProcessedZxid.enabled', ['true'], 'Whether a snapshot ends with its zxid'),
  later('enableEagerACLCheck', ['false'], 'Checks of ACLs by learners'),
  later('emulate353TTLNodes', ['false'], 'TTL znodes as 3.5.3 wrote them'),
  later('request_throttle_*', ['0'], 'Throttling of requests'),
  later('request_stale_*', [], 'Throttling of requests'),
  later('request_throttler.*', [], 'Throttling of requests'),
  later('throttled_op_wait_time', ['0'], 'Throttling of requests'),
  later('largeRequestThreshold', ['-1'], 'Throttling of large requests'),
  later('largeRequestMaxBytes', [], 'Throttling of large requests'),
  later('connection_throttle_*', ['0'], 'Throttling of new connections'),
  later('IPAuthenticationProvider.usexforwardedfor', ['false'], 'Addresses behind an HTTP proxy'),
  // ---- security
  security('secureClientPort', [], 'TLS for clients'),
  security('secureClientPortAddress', [], 'TLS for clients'),
  security('ssl.*', [], 'TLS'),
  security('sslQuorum', ['false'], 'TLS between servers'),
  security('sslQuorumReloadCertFiles', ['false'], 'TLS between servers'),
  security('portUnification', ['false'], 'TLS between servers'),
  security('client.portUnification', ['false'], 'TLS and plain text on one port'),
  security('client.certReload', ['false'], 'TLS for clients'),
  security('X509AuthenticationProvider.*', [], 'Authentication by certificate'),
  security('superUser', [], 'The super user by SASL or certificate; DigestAuthenticationProvider.superDigest works'),
  security('superUser.*', [], 'The super user by SASL or certificate; DigestAuthenticationProvider.superDigest works'),
  security('SASLAuthenticationProvider.*', [], 'Authentication by SASL'),
  security('enforce.auth.enabled', ['false'], 'Refusal of clients that have not authenticated'),
  security('enforce.auth.schemes', [''], 'Refusal of clients that have not authenticated'),
  security('sessionRequireClientSASLAuth', ['false'], 'Refusal of clients that have not authenticated'),
  security('allowSaslFailedClients', ['false'], 'Authentication by SASL'),
  security('letAnySaslUserDoX', [], 'Authentication by SASL'),
  security('sasl.*', [], 'Authentication by SASL'),
  security('java.security.auth.login.config', [], 'Authentication by SASL'),
  security('quorum.auth.*', ['false'], 'Authentication between servers'),
  security('ensembleAuthName', [], 'Check of the name of the ensemble'),
  security('kerberos.*', [], 'Kerberos'),
  security('kinit', [], 'Kerberos'),
  security('security.auth_to_local', [], 'Kerberos'),
];

const KEYS_BY_NAME: ReadonlyMap<string, Key> = new Map(KEYS.map((key) => [key.name, key]));
const KEY_FAMILIES: readonly Key[] = KEYS.filter((key) => key.name.endsWith('*'));
