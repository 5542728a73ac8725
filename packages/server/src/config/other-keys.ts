import { accepted, type Key, later, security } from './key.ts';
import * as kinds from './kinds.ts';

const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });

/** What Apache's throttler does with requests that wait in its threads for too long. */
const THROTTLES = ['request_throttle_*', 'request_stale_*', 'request_throttler.*', 'throttled_op_wait_time'] as const;
const NO_THROTTLE = 'Overload holds clients back and drops none of their requests: see [limits](limits.md)';

/** The keys that have no effect in this version, and what becomes of them. */
export const OTHER_KEYS: readonly Key[] = [
  // ---- what has nothing to decide here
  accepted('serverCnxnFactory', kinds.anything, '', "Apache's choice of a network layer; there is one here"),
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
  accepted(
    'closeSessionTxn.enabled',
    kinds.boolean,
    'true',
    'The end of a session lists its ephemerals, as every server since 3.6 expects',
  ),
  accepted(
    'serializeLastProcessedZxid.enabled',
    kinds.boolean,
    'true',
    'A snapshot ends with its zxid; servers before 3.9 ignore that part',
  ),
  accepted('enableEagerACLCheck', kinds.boolean, 'false', 'Permissions are checked once, where the txn is made'),
  ...THROTTLES.map((name) => accepted(name, kinds.anything, '', NO_THROTTLE)),
  // ---- known, not yet there
  later(
    'snapshot.compression.method',
    [''],
    'Packing of new snapshots. They are written plain: a member of an ensemble reads them again while it runs, in slices. Packed ones are read at the start; a file system that compresses saves the same room',
  ),
  later('emulate353TTLNodes', ['false'], 'TTL znodes as 3.5.3 wrote them, and no release since'),
  later(
    'IPAuthenticationProvider.usexforwardedfor',
    ['false'],
    'Addresses that an HTTP proxy claims: the address of the connection counts',
  ),
  // ---- security
  security('ssl.*', [], 'A key about TLS that is not known'),
  security('X509AuthenticationProvider.*', [], 'A key about certificates that is not known'),
  security('quorum.auth.*', ['false'], 'Authentication between servers'),
  security('kinit', [], 'Kerberos'),
];
