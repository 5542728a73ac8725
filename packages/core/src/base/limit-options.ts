/** What a server refuses for the sake of the others; 0 is no limit unless it says otherwise. */
export interface LimitOptions {
  /** Sessions of the whole service, beyond which this server creates none. */
  readonly sessionsMax: number;
  /** Watches at this server, beyond which no request may leave one. */
  readonly watchesMax: number;
  /** Requests of one session that wait for an answer, beyond which its connection is not read. */
  readonly sessionRequestsMax: number;
  /** Requests in all that wait for an answer, beyond which no connection is read (`request_throttle_max_requests`). */
  readonly requestsMax: number;
  /**
   * Milliseconds that a request may have waited for that, so that it is still carried out; pings and ends of sessions are
   * in any case (`throttled_op_wait_time`).
   */
  readonly requestWaitMaxMs: number;
  /** What has waited for longer than the timeout of its session counts as stale (`request_stale_latency_check`). */
  readonly countsStale: boolean;
  /** The connection of a stale request is closed while it still waits (`request_throttle_drop_stale`). */
  readonly dropsStale: boolean;
  /** Bytes from which a request counts as large; −1: none does (`largeRequestThreshold`). */
  readonly largeRequestBytes: number;
  /** Bytes of large requests that may be in progress at a time (`largeRequestMaxBytes`). */
  readonly largeRequestsBytesMax: number;
  readonly connecting: ConnectThrottleOptions;
}

/** Apache's bucket of tokens for new and resumed sessions (`connection_throttle_*`). */
export interface ConnectThrottleOptions {
  /** What the bucket holds; 0: nothing is throttled. */
  readonly tokens: number;
  /** `fillCount` tokens come every so many milliseconds. */
  readonly fillTimeMs: number;
  readonly fillCount: number;
  /** Milliseconds between two changes of the chance that a connect request is dropped; −1: none is dropped by chance. */
  readonly freezeTimeMs: number;
  readonly dropIncrease: number;
  readonly dropDecrease: number;
  /** The chance falls while less than this part of the bucket is used. */
  readonly decreaseRatio: number;
  /** False: each client takes one token. */
  readonly hasWeights: boolean;
  /** Tokens of a new session, of one that is resumed, and of a new one that only its server knows. */
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
