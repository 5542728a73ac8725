import { AbortedError, Budget, type CallOptions, type Client, TimeoutError, ZooKeeperError } from '@meerkat/client';
import { onAbort } from './abort.ts';
import { asHarmless } from './doubt.ts';

/** What a waiting call of a recipe is about, for its errors. */
export interface Waiting {
  readonly operation: string;
  readonly path: string;
}

/** What else ends a wait. */
export interface WakeOptions {
  /** Of the session that what we wait with depends on. */
  readonly lost?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly delayMs?: number | undefined;
}

/**
 * One call that waits: its signal and its time limit, dealt out to requests and pauses, on through lost connections and
 * lost sessions.
 *
 * @example
 * const wait = new Wait(client, options, { operation: 'Barrier.wait', path });
 * const { stat, changed } = await wait.through((call) => client.exists(path, { ...call, watch: true }));
 * if (stat !== null) await wait.any([changed]);
 */
export class Wait {
  readonly #client: Client;
  readonly #options: CallOptions;
  readonly about: Waiting;
  readonly #budget: Budget;
  /** By the client's monotonic clock; null for no limit. */
  readonly #endMs: number | null;

  constructor(client: Client, options: CallOptions, about: Waiting) {
    const { timeoutMs } = options;
    this.#client = client;
    this.#options = options;
    this.about = about;
    this.#budget = new Budget(options, client.surroundings, about);
    this.#endMs = timeoutMs === undefined ? null : client.surroundings.clock.monotonicMs() + timeoutMs;
  }

  /** Signal and remaining time for the next request. @throws AbortedError or TimeoutError when there is no time left */
  next(): CallOptions {
    return this.#budget.next();
  }

  /**
   * Does what may be repeated without harm, a read say, until it is answered: on the next connection, and in the next
   * session if this one is lost.
   *
   * @throws what the service answers, what ends the client, AbortedError and TimeoutError
   */
  async through<T>(attempt: (call: CallOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt(this.next());
      } catch (error) {
        if (!isPassing(error)) throw error;
        await this.recover();
      }
    }
  }

  /** The same for what comes before the effect that the caller wants, such as the making of parents: the error says so. */
  async prepare<T>(attempt: (call: CallOptions) => Promise<T>): Promise<T> {
    try {
      return await this.through(attempt);
    } catch (error) {
      throw asHarmless(error, this.about);
    }
  }

  /** Resolves when there is a connection again, and not at once: what has failed for another reason is not hammered on. */
  async recover(): Promise<void> {
    await this.#budget.pause(RECOVERY_PAUSE_MS);
    await this.#client.whenConnected(this.next());
  }

  /**
   * Resolves when one of the promises has settled, either way, `lost` is aborted, or `delayMs` have passed.
   *
   * @param lost a signal and not a promise, which would keep every wait that it has ever been part of
   * @throws AbortedError or TimeoutError when the caller gives up first
   */
  any(
    wakes: readonly Promise<unknown>[],
    { lost, delayMs = Number.POSITIVE_INFINITY }: WakeOptions = {},
  ): Promise<void> {
    const { clock } = this.#client.surroundings;
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      let cancelTimer: (() => void) | null = null;
      const releases: (() => void)[] = [];
      let isOver = false;
      const settle = (error: Error | null): void => {
        if (isOver) return;
        isOver = true;
        cancelTimer?.();
        for (const release of releases) release();
        if (error === null) resolve();
        else reject(error);
      };
      const wake = (): void => settle(null);
      const abort = (): void => settle(new AbortedError({ ...this.about, cause: signal?.reason }));
      // First of all, so that one that is rejected after nobody waits for it any more does not end the process.
      for (const promise of wakes) promise.then(wake, wake);
      if (signal?.aborted === true) {
        abort();
        return;
      }
      if (signal !== undefined) releases.push(onAbort(signal, abort));
      if (lost?.aborted === true) wake();
      else if (lost !== undefined) releases.push(onAbort(lost, wake));
      const leftMs = this.#endMs === null ? Number.POSITIVE_INFINITY : Math.max(0, this.#endMs - clock.monotonicMs());
      const isTheEnd = leftMs <= delayMs;
      const timerMs = Math.min(leftMs, Math.max(0, delayMs));
      if (isOver || timerMs === Number.POSITIVE_INFINITY) return;
      cancelTimer = clock.schedule(timerMs, () => {
        settle(isTheEnd ? new TimeoutError(this.about) : null);
      });
    });
  }

  /** The same where nothing is under way that the caller could have changed by: the error says so. */
  async idle(wakes: readonly Promise<unknown>[], options?: WakeOptions): Promise<void> {
    try {
      await this.any(wakes, options);
    } catch (error) {
      throw asHarmless(error, this.about);
    }
  }
}

/** The connection was lost on the way, or the session: on the next connection the truth can be found out. */
export function isPassing(error: unknown): error is ZooKeeperError {
  return isLoss(error) || isSessionEnd(error);
}

/** The connection was lost, and perhaps not the session. */
export function isLoss(error: unknown): error is ZooKeeperError {
  return error instanceof ZooKeeperError && LOSSES.has(error.code);
}

/** The session is over, or was given up for lost. */
export function isSessionEnd(error: unknown): error is ZooKeeperError {
  return error instanceof ZooKeeperError && SESSION_ENDS.has(error.code);
}

/** Milliseconds. */
const RECOVERY_PAUSE_MS = 20;
const LOSSES: ReadonlySet<string> = new Set([
  'CONNECTIONLOSS',
  'SESSIONMOVED',
  'OPERATIONTIMEOUT',
  'REQUESTTIMEOUT',
  'THROTTLEDOP',
]);
const SESSION_ENDS: ReadonlySet<string> = new Set(['SESSIONLOST', 'SESSIONEXPIRED', 'UNKNOWNSESSION']);
