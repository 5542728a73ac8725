import { FRAME_BYTES_LIMIT } from '@meerkat/protocol';
import type { Draft } from './draft.ts';
import { type Key, supported } from './key.ts';
import * as kinds from './kinds.ts';

const INT_MIN = -0x80000000;
const KIB = 1024;
const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });
const kibibytes = kinds.integer({ min: -1, max: 2 ** 40, unit: 'KiB; 0 or less switches it off' });
const sessionTimeout = kinds.integer({ min: -1, unit: 'ms; -1 is the default' });

/** The keys that take effect, in the order of the manual. */
export const SUPPORTED_KEYS: readonly Key[] = [
  // ---- where to listen and where the data is
  supported(
    'clientPort',
    kinds.integer({ min: 0, max: 65535 }),
    '',
    'Port for clients; required. 0 takes a free one, see the log',
    (draft, value) => {
      draft.clientPort = value;
    },
  ),
  supported('clientPortAddress', kinds.host, '', 'Where to listen; every address if not given', (draft, value) => {
    draft.server.clientHost = value;
  }),
  supported(
    'clientPortListenBacklog',
    kinds.integer({ min: -1 }),
    '-1',
    'Connections that wait to be accepted; -1: as Node.js decides',
    (draft, value) => {
      draft.server.listenBacklog = value;
    },
  ),
  supported('dataDir', kinds.path, '', 'Snapshots; required', (draft, value) => {
    draft.dataDirectory = value;
  }),
  supported('dataLogDir', kinds.path, 'dataDir', 'Transaction log, best on a device of its own', (draft, value) => {
    draft.dataLogDirectory = value;
  }),
  supported('datadir.autocreate', kinds.boolean, 'true', 'Create missing data directories', (draft, value) => {
    draft.server.createsDirectories = value;
  }),
  supported('tcpKeepAlive', kinds.boolean, 'false', 'Let the kernel probe idle connections', (draft, value) => {
    draft.server.tcpKeepAlive = value;
  }),
  supported('clientTcpKeepAlive', kinds.boolean, 'false', 'Let the kernel probe idle connections', (draft, value) => {
    draft.server.tcpKeepAlive = value;
  }),
  supported(
    'clientThreads',
    kinds.integer({ min: 0, max: 64 }),
    '0',
    '[Threads](threads.md) for sockets of clients; 0 = the main one (Meerkat)',
    (draft, value) => {
      draft.server.clientThreads = value;
    },
  ),
  // ---- sessions and connections
  supported('tickTime', kinds.integer({ min: 1, unit: 'ms' }), '3000', 'Length of a tick', (draft, value) => {
    draft.core.tickTimeMs = value;
  }),
  supported(
    'minSessionTimeout',
    sessionTimeout,
    '2 ticks',
    'Shortest session timeout; -1 = the default',
    (draft, value) => {
      draft.sessionTimeoutMinMs = value < 0 ? null : value;
    },
  ),
  supported(
    'maxSessionTimeout',
    sessionTimeout,
    '20 ticks',
    'Longest session timeout; -1 = the default',
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
    'Time that a client may take to ask for a session',
    (draft, value) => {
      draft.core.sessionlessTimeoutMs = value;
    },
  ),
  supported(
    'globalOutstandingLimit',
    positive,
    '1000',
    'Unanswered requests above which clients that wait for replies are not read',
    (draft, value) => {
      draft.core.globalOutstandingLimit = value;
    },
  ),
  supported(
    'jute.maxbuffer',
    kinds.decodedInteger({ min: 1, max: FRAME_BYTES_LIMIT, unit: 'bytes' }),
    '0xfffff',
    'Largest request, and field of one. Same on all servers',
    (draft, value) => {
      draft.core.frameBytesMax = value;
    },
  ),
  supported(
    'jute.maxbuffer.extrasize',
    kinds.decodedInteger({ min: 0, max: FRAME_BYTES_LIMIT, unit: 'bytes' }),
    '',
    'What a txn may take beyond `jute.maxbuffer`; default as much again, at least 1024. Same on all servers',
    (draft, value) => {
      draft.core.extraBytesMax = value;
    },
  ),
  supported(
    'multiRead.maxReplyBytes',
    kinds.integer({ min: 1, max: 2 ** 30, unit: 'bytes' }),
    '16777216',
    'Longest reply to a multiRead, else MARSHALLINGERROR (Meerkat)',
    (draft, value) => {
      draft.core.multiReadBytesMax = value;
    },
  ),
  supported(
    '4lw.commands.whitelist',
    kinds.words,
    'srvr',
    'Four-letter words that are answered, `srvr` always; * = all',
    (draft, value) => {
      draft.server.fourLetterWordsAllowed = value;
    },
  ),
  supported(
    'readonlymode.enabled',
    kinds.boolean,
    'false',
    'Be a [read-only server](modes.md#read-only-servers) without a leader',
    (draft, value) => {
      draft.server.readOnlyModeEnabled = value;
      draft.ensemble.readOnlyEnabled = value;
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
    'emulate353TTLNodes',
    kinds.boolean,
    'false',
    'With `extendedTypesEnabled`: TTL znodes of snapshots of 3.5.3 are read as such. The same at all servers, with ids up to 127',
    (draft, value) => {
      draft.core.emulate353TtlZnodes = value;
    },
  ),
  supported(
    'digest.enabled',
    kinds.boolean,
    'true',
    'Keep a digest of the tree in logs and snapshots',
    (draft, value) => {
      draft.core.digestEnabled = value;
    },
  ),
  supported(
    'znode.container.checkIntervalMs',
    kinds.integer({ min: 1, unit: 'ms' }),
    '60000',
    'Time between two searches for empty containers and old TTL znodes',
    (draft, value) => {
      draft.core.containerCheckIntervalMs = value;
    },
  ),
  supported(
    'znode.container.maxPerMinute',
    positive,
    '10000',
    'Containers and TTL znodes deleted in a minute',
    (draft, value) => {
      draft.core.containerDeletesPerMinuteMax = value;
    },
  ),
  supported(
    'znode.container.maxNeverUsedIntervalMs',
    kinds.integer({ min: 0, unit: 'ms' }),
    '0',
    'Delete containers that never had a child at this age; 0 = never',
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
    'Hash of the scheme digest: MD5, SHA-1, SHA-2, SHA-3',
    (draft, value) => {
      draft.auth.digestAlgorithm = value;
    },
  ),
  supported(
    'DigestAuthenticationProvider.superDigest',
    kinds.text('user:hash', (value) => /^[^:]+:[^:]+$/.test(value)),
    '',
    'Super user: no ACL counts',
    (draft, value) => {
      draft.auth.superDigest = value;
    },
  ),
  supported(
    'authProvider.*',
    kinds.authProvider,
    '',
    'Further [schemes](security/schemes.md). An unknown class is ignored, unless ACLs of the directory need it',
    (draft, value) => {
      if (value === kinds.X509_PROVIDER) draft.auth.x509Enabled = true;
      if (kinds.OWN_PROVIDERS.includes(value)) return;
      if (takeProvider(value, draft)) return;
      draft.auth.unknownProviders = [...draft.auth.unknownProviders, value];
      draft.notes.push(`names the class ${value}, which this server does not have: it is ignored`);
    },
  ),
  supported('ensembleAuthName', kinds.words, '', 'Names for the scheme `ensemble`', (draft, value) => {
    draft.ensembleNames = value;
  }),
  // ---- log and snapshots
  supported(
    'snapCount',
    kinds.integer({ min: INT_MIN }),
    '100000',
    'Txns between two snapshots, half of it random; at least 2',
    (draft, value) => {
      draft.core.snapCount = atLeast(draft, value, 2);
    },
  ),
  supported(
    'snapSizeLimitInKb',
    kibibytes,
    '4194304',
    'Log between two snapshots, half of it random; 0 or less = unlimited',
    (draft, value) => {
      draft.core.snapBytesMax = value <= 0 ? -1 : value * KIB;
    },
  ),
  supported('preAllocSize', kibibytes, '65536', 'What a log file grows by; 0 or less = as written', (draft, value) => {
    draft.core.preallocateBytes = value <= 0 ? -1 : value * KIB;
  }),
  supported(
    'txnLogSizeLimitInKb',
    kibibytes,
    '-1',
    'Longest log file; 0 or less = until a snapshot',
    (draft, value) => {
      draft.core.logBytesMax = value <= 0 ? -1 : value * KIB;
    },
  ),
  supported(
    'forceSync',
    kinds.yesOrNo,
    'yes',
    'Sync before a write is answered; with `no` a crash of the machine loses acknowledged writes',
    (draft, value) => {
      draft.core.forceSync = value;
    },
  ),
  supported(
    'fsync.warningthresholdms',
    kinds.integer({ min: 0, unit: 'ms' }),
    '1000',
    'Log syncs that take longer',
    (draft, value) => {
      draft.core.syncWarningMs = value;
    },
  ),
  supported(
    'snapshot.compression.method',
    kinds.compression,
    '',
    'Compress new snapshots; both are always read',
    (draft, value) => {
      draft.core.snapshotCompression = value === '' ? null : value;
    },
  ),
  supported('snapshot.trust.empty', kinds.boolean, 'false', 'Start with a log and no snapshot', (draft, value) => {
    draft.core.trustEmptySnapshot = value;
  }),
  supported(
    'db.autocreate',
    kinds.boolean,
    'true',
    'With false an empty directory is a lost disk: a member does not vote until a leader has sent it everything, a single server does not start; unless `dataLogDir` has a file `initialize` (zkServer-initialize.sh)',
    (draft, value) => {
      draft.core.createsDatabase = value;
    },
  ),
  supported(
    'autopurge.snapRetainCount',
    kinds.integer({ min: INT_MIN }),
    '3',
    'Snapshots that a purge keeps; at least 3',
    (draft, value) => {
      draft.core.purgeRetainCount = atLeast(draft, value, 3);
    },
  ),
  supported(
    'autopurge.purgeInterval',
    kinds.intervalInHours,
    '0',
    'Time between two purges; 0 = never',
    (draft, value) => {
      draft.core.purgeIntervalMs = value;
    },
  ),
];

/** @returns false when it is a class that is not known */
function takeProvider(value: string, draft: Draft): boolean {
  if (value === kinds.SASL_PROVIDER) draft.sasl.isScheme = true;
  else if (value === kinds.ENSEMBLE_PROVIDER) draft.hasEnsembleScheme = true;
  else if (value === kinds.KEY_PROVIDER) draft.auth.keyEnabled = true;
  else if (kinds.isModulePath(value)) draft.auth.providerModules = [...draft.auth.providerModules, value];
  else return false;
  return true;
}

/** Raises a number to the least that makes sense, as ZooKeeper does, and says so. */
function atLeast(draft: Draft, value: number, min: number): number {
  if (value < min) draft.notes.push(`${value} is too small; ${min} is used`);
  return Math.max(value, min);
}
