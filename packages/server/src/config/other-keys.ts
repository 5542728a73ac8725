import { accepted, type Key, security } from './key.ts';
import * as kinds from './kinds.ts';

const nonNegative = kinds.integer({ min: 0 });
const positive = kinds.integer({ min: 1 });

/** The keys that have no effect in this version, and what becomes of them. */
export const OTHER_KEYS: readonly Key[] = [
  // ---- what has nothing to decide here
  accepted('serverCnxnFactory', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('flushDelay', nonNegative, '0', 'Writes of a turn are synced together anyway'),
  accepted('maxWriteQueuePollTime', nonNegative, '0', 'Writes of a turn are synced together anyway'),
  accepted('maxBatchSize', nonNegative, '1000', 'Writes of a turn are synced together anyway'),
  accepted('maxResponseCacheSize', kinds.integer({ min: -1 }), '400', "Apache's threads, queues and caches"),
  accepted('maxGetChildrenResponseCacheSize', kinds.integer({ min: -1 }), '400', "Apache's threads, queues and caches"),
  accepted('commitProcessor.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('nio.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('netty.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('intBufferStartingSizeBytes', positive, '1024', "Apache's threads, queues and caches"),
  accepted('watchManagerName', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('watcherClean*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('maxInProcessingDeadWatchers', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('bitHashCacheSize', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('pathStats.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('messageTracker.*', kinds.anything, '', "Apache's threads, queues and caches"),
  accepted('jvm.pause.monitor', kinds.boolean, 'false', 'There is no JVM'),
  accepted('jvm.pause.*', kinds.anything, '', 'There is no JVM'),
  accepted('closeSessionTxn.enabled', kinds.boolean, 'true', 'The end of a session lists its ephemerals, as since 3.6'),
  accepted(
    'serializeLastProcessedZxid.enabled',
    kinds.boolean,
    'true',
    'A snapshot ends with its zxid; ignored before 3.9',
  ),
  accepted('enableEagerACLCheck', kinds.boolean, 'false', 'Permissions are checked where the txn is made'),
  accepted('request_throttle_stall_time', positive, '100', 'Clients are read again as soon as there is room'),
  accepted(
    'request_stale_connection_check',
    kinds.boolean,
    'true',
    'What waits of a connection that is closed is never carried out',
  ),
  accepted('request_throttler.shutdownTimeout', nonNegative, '10000', 'A stop finishes what is in progress'),
  // ---- security
  security('ssl.*', [], 'A key about TLS that is not known'),
  security('X509AuthenticationProvider.*', [], 'A key about certificates that is not known'),
  security('quorum.auth.*', ['false'], 'Authentication between servers'),
  security('kinit', [], 'Kerberos'),
];
