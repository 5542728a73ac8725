import { accepted, type Key, later, security } from './key.ts';
import * as kinds from './kinds.ts';

const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });

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
  // ---- known, not yet there
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
  security('ssl.*', [], 'A key about TLS that is not known'),
  security('X509AuthenticationProvider.*', [], 'A key about certificates that is not known'),
  security('quorum.auth.*', ['false'], 'Authentication between servers'),
  security('kinit', [], 'Kerberos'),
];
