import { checkRange } from './bounds.ts';
import { AbortedError } from './errors.ts';
import { retryClassOf } from './make-error.ts';
import { Budget, type Surroundings } from './surroundings.ts';
import { ZooKeeperError } from './zookeeper-error.ts';

/** When, and how often, something is retried. Times are milliseconds. */
export interface RetryPolicy {
  /** Maximum of attempts, including the first, at least 1. May be infinite. */
  readonly attemptsMax: number;
  /** Delay before the second attempt; each following delay is twice as long. */
  readonly pauseMinMs: number;
  /** Maximum delay. */
  readonly pauseMaxMs: number;
  /** No attempt starts when this much time has passed since the first one started. May be infinite. */
  readonly elapsedMaxMs: number;
  /**
   * Continues when the session is lost or has expired. Right for what does not depend on the session: not for anything
   * that a lock, a leadership or an ephemeral znode of this session protects.
   */
  readonly acrossSessions: boolean;
}

export interface RetryOptions {
  /** Also ends delays. Pass it to the requests inside as well. */
  readonly signal?: AbortSignal | undefined;
  /** The operation may be applied twice without harm: it is also retried when the outcome is unknown. Default false. */
  readonly idempotent?: boolean | undefined;
}

/**
 * Retry policies. All delays are random between one half and the whole of their nominal length, so that clients that
 * fail together do not retry together.
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
  /** A second attempt after a delay, 100 ms by default. */
  once(pauseMs?: number): RetryPolicy;
  /** By default up to 4 attempts with delays that double from 100 ms to 10 s. */
  exponential(options?: Partial<RetryPolicy>): RetryPolicy;
  /** Without a limit, but only as long as the session lives; `elapsedMaxMs` and a signal may end it earlier. */
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
 * Retries an operation until it succeeds, as long as a retry is safe and may help: the error says that nothing was
 * applied (or the caller that it is idempotent), and that it is transient. Otherwise rejects with the last error.
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

/** Whether a retry after this error is safe and may help. */
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
