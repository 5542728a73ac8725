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
  /** Tokens of a new session and of one that is resumed; 1 each without weights. */
  readonly newSessionTokens: number;
  readonly renewedSessionTokens: number;
}

export const DEFAULT_LIMIT_OPTIONS: LimitOptions = {
  sessionsMax: 0,
  watchesMax: 0,
  sessionRequestsMax: 0,
  requestsMax: 0,
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
    newSessionTokens: 1,
    renewedSessionTokens: 1,
  },
};
