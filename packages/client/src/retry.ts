import { checkRange } from './bounds.ts';
import { AbortedError } from './errors.ts';
import { retryClassOf } from './make-error.ts';
import { Budget, type Surroundings } from './surroundings.ts';
import { ZooKeeperError } from './zookeeper-error.ts';

/** When something is tried again, and how often. Times are milliseconds. */
export interface RetryPolicy {
  /** Attempts in all, the first included, at least 1. May be infinite. */
  readonly attemptsMax: number;
  /** Before the second attempt; each following pause is twice as long. */
  readonly pauseMinMs: number;
  /** No pause is longer. */
  readonly pauseMaxMs: number;
  /** No attempt begins when so much time has passed since the first one began. May be infinite. */
  readonly elapsedMaxMs: number;
  /**
   * Continues when the session is lost or has expired. Right for what does not depend on the session: not for whatever
   * a lock, a leadership or an ephemeral znode of this session protects.
   */
  readonly acrossSessions: boolean;
}

export interface RetryOptions {
  /** Ends the pauses too. Hand it to the requests inside as well. */
  readonly signal?: AbortSignal | undefined;
  /** What is tried does no harm when it is done twice: it is also repeated when the outcome is unknown. Default false. */
  readonly idempotent?: boolean | undefined;
}

/**
 * Policies. All pauses are drawn by chance between a half and the whole of what they would be, so that clients that
 * fail together do not come back together.
 *
 * @example
 * await client.retry(retry.exponential({ attemptsMax: 5 }), () => client.set('/config', 'on', { version: 3 }));
 */
export const retry: RetryPolicies = {
  never: {
    attemptsMax: 1,
    pauseMinMs: 0,
    pauseMaxMs: 0,
    elapsedMaxMs: Number.POSITIVE_INFINITY,
    acrossSessions: false,
  },
  once: (pauseMs = 100) => ({
    attemptsMax: 2,
    pauseMinMs: pauseMs,
    pauseMaxMs: pauseMs,
    elapsedMaxMs: Number.POSITIVE_INFINITY,
    acrossSessions: false,
  }),
  exponential: (options = {}) => ({ ...EXPONENTIAL, ...options }),
  forever: (options = {}) => ({ ...EXPONENTIAL, ...options, attemptsMax: Number.POSITIVE_INFINITY }),
};

export interface RetryPolicies {
  /** One attempt. */
  readonly never: RetryPolicy;
  /** A second attempt after a pause, 100 ms by default. */
  once(pauseMs?: number): RetryPolicy;
  /** By default up to 4 attempts with pauses that double from 100 ms to 10 s. */
  exponential(options?: Partial<RetryPolicy>): RetryPolicy;
  /** As often as it takes, but only as long as the session lives; `elapsedMaxMs` and a signal may end it earlier. */
  forever(options?: Partial<Omit<RetryPolicy, 'attemptsMax'>>): RetryPolicy;
}

const EXPONENTIAL: RetryPolicy = {
  attemptsMax: 4,
  pauseMinMs: 100,
  pauseMaxMs: 10_000,
  elapsedMaxMs: Number.POSITIVE_INFINITY,
  acrossSessions: false,
};

/**
 * Tries something until it succeeds, as long as repeating it is safe and may help: the error says that nothing was
 * applied (or the caller that doing it twice is harmless), and that it may pass. Rejects with the last error otherwise.
 *
 * @param attempt gets its number, from 1
 */
export async function withRetry<T>(
  policy: RetryPolicy,
  attempt: (number: number) => Promise<T>,
  surroundings: Surroundings,
  options: RetryOptions = {},
): Promise<T> {
  const { clock, random } = surroundings;
  checkRange('attemptsMax', policy.attemptsMax, 1);
  checkRange('pauseMinMs', policy.pauseMinMs, 0);
  checkRange('pauseMaxMs', policy.pauseMaxMs, 0);
  checkRange('elapsedMaxMs', policy.elapsedMaxMs, 0);
  const startedMs = clock.monotonicMs();
  const budget = new Budget({ signal: options.signal }, surroundings, { operation: 'retry', path: null });
  budget.next();
  for (let number = 1; ; number++) {
    try {
      return await attempt(number);
    } catch (error) {
      if (number >= policy.attemptsMax || !isWorthRepeating(error, policy, options)) throw error;
      const pauseMs = pauseBefore(number + 1, policy, random.uint32());
      if (clock.monotonicMs() - startedMs + pauseMs >= policy.elapsedMaxMs) throw error;
      await budget.pause(pauseMs, error.outcome);
    }
  }
}

/** Repeating what failed with this error is safe and may help. */
export function isWorthRepeating(error: unknown, policy: RetryPolicy, options: RetryOptions): error is ZooKeeperError {
  if (!(error instanceof ZooKeeperError) || error instanceof AbortedError) return false;
  if (error.outcome === 'unknown' && options.idempotent !== true) return false;
  if (error.isRetryable) return true;
  return policy.acrossSessions && retryClassOf(error) === 'session';
}

/** @param random 32 random bits */
function pauseBefore(number: number, policy: RetryPolicy, random: number): number {
  const wholeMs = Math.min(policy.pauseMaxMs, policy.pauseMinMs * 2 ** (number - 2));
  return (wholeMs / 2) * (1 + random / 2 ** 32);
}
