/** Limits that protect a server from overload; 0 is no limit unless stated otherwise. */
export interface LimitOptions {
  /** Sessions of the whole service; at this number this server creates no more. */
  readonly sessionsMax: number;
  /** Watches at this server; at this number no request may set one. */
  readonly watchesMax: number;
  /** Unanswered requests of one session; at this number its connection is not read. */
  readonly sessionRequestsMax: number;
  /** Unanswered requests in total; at this number no connection is read (`request_throttle_max_requests`). */
  readonly requestsMax: number;
  /**
   * Milliseconds that a request may have waited because of that limit and still be executed; pings and session closes
   * always are (`throttled_op_wait_time`).
   */
  readonly requestWaitMaxMs: number;
  /** A request that has waited longer than its session's timeout counts as stale (`request_stale_latency_check`). */
  readonly countsStale: boolean;
  /** The connection of a stale request is closed while the request waits (`request_throttle_drop_stale`). */
  readonly dropsStale: boolean;
  /** Size in bytes from which a request counts as large; −1: none does (`largeRequestThreshold`). */
  readonly largeRequestBytes: number;
  /** Total bytes of large requests in progress (`largeRequestMaxBytes`). */
  readonly largeRequestsBytesMax: number;
  readonly connecting: ConnectThrottleOptions;
}

/** Apache's token bucket for new and resumed sessions (`connection_throttle_*`). */
export interface ConnectThrottleOptions {
  /** Capacity of the bucket; 0: no throttling. */
  readonly tokens: number;
  /** Interval at which `fillCount` tokens are added. */
  readonly fillTimeMs: number;
  readonly fillCount: number;
  /**
   * Milliseconds between two changes of the probability that a connect request is dropped; −1: none is dropped at
   * random.
   */
  readonly freezeTimeMs: number;
  readonly dropIncrease: number;
  readonly dropDecrease: number;
  /** The probability decreases while less than this fraction of the bucket is used. */
  readonly decreaseRatio: number;
  /** False: each client takes one token. */
  readonly hasWeights: boolean;
  /** Tokens for a new session, a resumed one, and a new local one. */
  readonly newSessionTokens: number;
  readonly renewedSessionTokens: number;
  readonly localSessionTokens: number;
}

export const DEFAULT_LIMIT_OPTIONS: LimitOptions = {
  sessionsMax: 0,
  watchesMax: 0,
  sessionRequestsMax: 0,
  requestsMax: 0,
  requestWaitMaxMs: 0,
  countsStale: false,
  dropsStale: true,
  largeRequestBytes: -1,
  largeRequestsBytesMax: 100 * 1024 * 1024,
  connecting: {
    tokens: 0,
    fillTimeMs: 1,
    fillCount: 1,
    freezeTimeMs: -1,
    dropIncrease: 0.02,
    dropDecrease: 0.002,
    decreaseRatio: 0,
    hasWeights: false,
    newSessionTokens: 3,
    renewedSessionTokens: 2,
    localSessionTokens: 1,
  },
};
