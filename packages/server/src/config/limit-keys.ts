import type { ConnectThrottleOptions, LimitOptions } from '@meerkat/core';
import { type Key, supported } from './key.ts';
import * as kinds from './kinds.ts';

const count = kinds.integer({ min: 0 });
const bytes = kinds.integer({ min: 0, max: 2 ** 50, unit: 'bytes' });
const positive = kinds.integer({ min: 1 });

/** Keys of what is refused for the sake of others; those for connections stand with the ports. */
export const LIMIT_KEYS: readonly Key[] = [
  limit(
    'sessions.max',
    count,
    '0',
    'Sessions of the service, beyond which this server creates none; 0 = unlimited (Meerkat)',
    (value) => ({
      sessionsMax: value,
    }),
  ),
  limit(
    'watches.max',
    count,
    '0',
    'Watches at this server, beyond which more are refused; 0 = unlimited (Meerkat)',
    (value) => ({
      watchesMax: value,
    }),
  ),
  limit(
    'session.maxRequestsInFlight',
    count,
    '0',
    'Unanswered requests of a session, beyond which it is not read; 0 = bounded by bytes (Meerkat)',
    (value) => ({
      sessionRequestsMax: value,
    }),
  ),
  limit(
    'request_throttle_max_requests',
    count,
    '0',
    'Unanswered requests in all, beyond which no client is read; 0 = unlimited',
    (value) => ({
      requestsMax: value,
    }),
  ),
  limit(
    'throttled_op_wait_time',
    kinds.integer({ min: 0, unit: 'ms' }),
    '0',
    'Longest wait for that, else THROTTLEDOP; 0 = any',
    (value) => ({
      requestWaitMaxMs: value,
    }),
  ),
  limit(
    'request_stale_latency_check',
    kinds.boolean,
    'false',
    'Requests that have waited longer than the timeout of their session are stale',
    (value) => ({
      countsStale: value,
    }),
  ),
  limit(
    'request_throttle_drop_stale',
    kinds.boolean,
    'true',
    'Connections with stale requests are closed',
    (value) => ({
      dropsStale: value,
    }),
  ),
  limit(
    'largeRequestThreshold',
    kinds.integer({ min: -1, unit: 'bytes' }),
    '-1',
    'Size from which a request is large; -1 = none is',
    (value) => ({
      largeRequestBytes: value,
    }),
  ),
  limit(
    'largeRequestMaxBytes',
    kinds.integer({ min: 1, unit: 'bytes' }),
    '104857600',
    "Large requests in progress, beyond which the next one's connection is closed",
    (value) => ({
      largeRequestsBytesMax: value,
    }),
  ),
  throttle(
    'connection_throttle_tokens',
    count,
    '0',
    'Bucket that connect requests take tokens from; 0 = not throttled',
    (value) => ({
      tokens: value,
    }),
  ),
  throttle(
    'connection_throttle_fill_time',
    kinds.integer({ min: 1, unit: 'ms' }),
    '1',
    'Time in which `…_fill_count` tokens come',
    (value) => ({
      fillTimeMs: value,
    }),
  ),
  throttle('connection_throttle_fill_count', count, '1', 'Tokens that come in that time', (value) => ({
    fillCount: value,
  })),
  throttle(
    'connection_throttle_freeze_time',
    kinds.integer({ min: -1, unit: 'ms' }),
    '-1',
    'Time between two changes of the chance of being dropped; -1 = none is',
    (value) => ({
      freezeTimeMs: value,
    }),
  ),
  throttle(
    'connection_throttle_drop_increase',
    kinds.decimal,
    '0.02',
    'Rise of the chance of being dropped while the bucket is empty',
    (value) => ({
      dropIncrease: value,
    }),
  ),
  throttle('connection_throttle_drop_decrease', kinds.decimal, '0.002', 'Its fall while little is used', (value) => ({
    dropDecrease: value,
  })),
  throttle('connection_throttle_decrease_ratio', kinds.decimal, '0', 'What part of the bucket is little', (value) => ({
    decreaseRatio: value,
  })),
  throttle(
    'connection_throttle_weight_enabled',
    kinds.boolean,
    'false',
    'Sessions take as many tokens as the next keys say',
    (value) => ({
      hasWeights: value,
    }),
  ),
  throttle('connection_throttle_global_session_weight', positive, '3', 'Of a new session', (value) => ({
    newSessionTokens: value,
  })),
  throttle('connection_throttle_renew_session_weight', positive, '2', 'Of a resumed session', (value) => ({
    renewedSessionTokens: value,
  })),
  throttle('connection_throttle_local_session_weight', positive, '1', 'Of a new local session', (value) => ({
    localSessionTokens: value,
  })),
  supported(
    'memory.residentBytesMax',
    bytes,
    '0',
    'Memory beyond which creates and sets are refused; 0 = unlimited (Meerkat)',
    (draft, value) => {
      draft.server.residentBytesMax = value;
    },
  ),
  supported(
    'disk.freeBytesMin',
    bytes,
    '67108864',
    'Free disk space of `dataDir` and `dataLogDir`, below which creates and sets are refused; 0 = never (Meerkat)',
    (draft, value) => {
      draft.server.diskFreeBytesMin = value;
    },
  ),
];

function limit<T>(
  name: string,
  kind: kinds.Kind<T>,
  text: string,
  meaning: string,
  change: (value: T) => Partial<LimitOptions>,
): Key {
  return supported(name, kind, text, meaning, (draft, value) => {
    draft.core.limits = { ...draft.core.limits, ...change(value) };
  });
}

function throttle<T>(
  name: string,
  kind: kinds.Kind<T>,
  text: string,
  meaning: string,
  change: (value: T) => Partial<ConnectThrottleOptions>,
): Key {
  return supported(name, kind, text, meaning, (draft, value) => {
    const { limits } = draft.core;
    draft.core.limits = { ...limits, connecting: { ...limits.connecting, ...change(value) } };
  });
}
