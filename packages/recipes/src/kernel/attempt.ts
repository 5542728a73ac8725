import {
  AbortedError,
  type About,
  Budget,
  type CallOptions,
  type Client,
  type Outcome,
  onAbort,
  type RetryClass,
  retryClassOf,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';
import { asDoubtful, asHarmless } from './doubt.ts';

/** What else ends a wait. */
export interface WakeOptions {
  /** Of the session that what we wait with depends on. */
  readonly lost?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly delayMs?: number | undefined;
}

/** What an attempt goes through, besides lost connections and a service that is busy. */
export interface AttemptOptions {
  /** Continues in the next session when this one is over. Default true. */
  readonly acrossSessions?: boolean | undefined;
  /** Waits for a server with a quorum where the one that answers has none. Default false: the call rejects. */
  readonly awaitsQuorum?: boolean | undefined;
  /** What it waits for continues without it: when the caller gives up, it may have been applied. Default false. */
  readonly isUnderWay?: boolean | undefined;
}

/**
 * One call of a recipe: its signal and its time limit, dealt out to requests and pauses; what it goes through; and whether
 * anything of it may have been applied, for the error that ends it.
 *
 * @example
 * const attempt = new Attempt(client, options, { operation: 'Barrier.wait', path });
 * const { stat, changed } = await attempt.through((call) => client.exists(path, { ...call, watch: true }));
 * if (stat !== null) await attempt.any([changed]);
 */
export class Attempt {
  readonly client: Client;
  readonly about: About;
  /** What keeps the caller waiting, as long as there is a connection; stands in the TimeoutError. */
  obstacle: string | undefined = undefined;
  readonly #options: CallOptions;
  readonly #budget: Budget;
  readonly #passing: ReadonlySet<RetryClass>;
  /** By the client's monotonic clock. */
  readonly #endMs: number;
  #isDoubtful: boolean;
  /** In a row. */
  #failures = 0;

  /** @throws RangeError for a `timeoutMs` that is no number */
  constructor(
    client: Client,
    options: CallOptions,
    about: About,
    { acrossSessions = true, awaitsQuorum = false, isUnderWay = false }: AttemptOptions = {},
  ) {
    const { timeoutMs = Number.POSITIVE_INFINITY } = options;
    this.client = client;
    this.about = about;
    this.#options = options;
    this.#isDoubtful = isUnderWay;
    this.#budget = new Budget(options, client.surroundings, about);
    this.#passing = new Set([
      'connection',
      'pause',
      ...(acrossSessions ? (['session'] as const) : []),
      ...(awaitsQuorum ? (['quorum'] as const) : []),
    ]);
    this.#endMs = client.surroundings.clock.monotonicMs() + timeoutMs;
  }

  /* ------------------------------------------------------------------------------------------- the outcome ---- */

  /** Something of it may have been applied although the reply was lost. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  get #outcome(): Outcome {
    return this.#isDoubtful ? 'unknown' : 'not-applied';
  }

  /** Remembers whether what has failed may have been applied. @returns it, to be thrown on */
  noted(error: unknown): unknown {
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return error;
  }

  /** From now on something of it may have been applied, or has been. */
  doubt(): void {
    this.#isDoubtful = true;
  }

  /** What was in doubt is known by now not to have been applied. */
  settle(): void {
    this.#isDoubtful = false;
  }

  /** Does all of the call. @throws what ended it, as an error of the call and with its outcome */
  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.told(error);
    }
  }

  /** The error for the caller, who knows of all requests only what this says. */
  told(error: unknown): unknown {
    const { about } = this;
    const details = { ...about, outcome: this.#outcome };
    const { signal, timeoutMs } = this.#options;
    if (error instanceof AbortedError && signal?.aborted === true) {
      return new AbortedError({ ...details, cause: signal.reason });
    }
    if (error instanceof TimeoutError && timeoutMs !== undefined) {
      return new TimeoutError({ ...details, detail: this.#describeObstacle() });
    }
    return this.#isDoubtful ? asDoubtful(error, about) : asHarmless(error, about);
  }

  /** Without a connection no client knows of anything else. */
  #describeObstacle(): string | undefined {
    const { state } = this.client;
    return state === 'connected' ? this.obstacle : `the client is ${state}`;
  }

  /* ------------------------------------------------------------------------------------------ the requests ---- */

  /** Signal and remaining time for the next request. @throws AbortedError or TimeoutError when there is no time left */
  next(): CallOptions {
    return this.#budget.next(this.#outcome);
  }

  /**
   * Does what may be repeated without harm, a read say, until it is answered.
   *
   * @throws what the service refuses, what ends the client, AbortedError and TimeoutError
   */
  async through<T>(request: (call: CallOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await request(this.next());
        this.answered();
        return result;
      } catch (error) {
        await this.recover(error);
      }
    }
  }

  /** The same for what comes before that which the caller wants, such as the making of parents: the error says so. */
  async prepare<T>(request: (call: CallOptions) => Promise<T>): Promise<T> {
    try {
      return await this.through(request);
    } catch (error) {
      throw asHarmless(error, this.about);
    }
  }

  /** The same for what the caller wants to be done: remembers whether it may have been. */
  apply<T>(write: (call: CallOptions) => Promise<T>): Promise<T> {
    return this.through(async (call) => {
      try {
        return await write(call);
      } catch (error) {
        throw this.noted(error);
      }
    });
  }

  /** The service does answer: the next failure is the first one. */
  answered(): void {
    this.#failures = 0;
  }

  /** Whether trying again may help, and this attempt does. */
  passes(error: unknown): error is ZooKeeperError {
    return this.#passing.has(retryClassOf(error));
  }

  /** Resolves when there is a connection and it makes sense to try again. @throws the failure itself when it does not */
  async recover(failure: unknown): Promise<void> {
    if (!this.passes(failure)) throw failure;
    await this.reconnect();
  }

  /** Resolves when there is a connection, and not at once: what fails on a connection that stands is not hammered on. */
  async reconnect(): Promise<void> {
    await this.pause(Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** this.#failures++));
    await this.client.whenConnected(this.next());
  }

  /* --------------------------------------------------------------------------------------------- the waits ---- */

  /** Milliseconds. @throws AbortedError or TimeoutError when the caller gives up first */
  pause(delayMs: number): Promise<void> {
    return this.#budget.pause(delayMs, this.#outcome);
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
    const { clock } = this.client.surroundings;
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const releases: (() => void)[] = [];
      let isOver = false;
      const settle = (end: () => void): void => {
        if (isOver) return;
        isOver = true;
        for (const release of releases) release();
        end();
      };
      const wake = (): void => settle(resolve);
      // First of all, so that one that is rejected after no caller waits for it any more does not end the process.
      for (const promise of wakes) promise.then(wake, wake);
      const giveUp = (): void => settle(() => reject(this.told(new AbortedError(this.about))));
      releases.push(onAbort(signal, giveUp));
      if (!isOver) releases.push(onAbort(lost, wake));
      const leftMs = Math.max(0, this.#endMs - clock.monotonicMs());
      const timerMs = Math.min(leftMs, Math.max(0, delayMs));
      if (isOver || timerMs === Number.POSITIVE_INFINITY) return;
      const expire = (): void => settle(() => reject(this.told(new TimeoutError(this.about))));
      releases.push(clock.schedule(timerMs, leftMs <= delayMs ? expire : wake));
    });
  }

  /**
   * Waits for something that continues anyway.
   *
   * @param work or what begins it: its signal aborts when the caller has given up. What may be long in coming is to keep nothing
   *   of this then, as a promise keeps the client that has waited for it until it settles
   * @throws AbortedError, TimeoutError: nothing has been undone then
   */
  async waitFor<T>(work: Promise<T> | ((givenUp: AbortSignal) => Promise<T>)): Promise<T> {
    const over = new AbortController();
    const done = typeof work === 'function' ? work(over.signal) : work;
    try {
      await this.any([done]);
    } catch (error) {
      over.abort(error);
      throw error;
    }
    return await done;
  }
}

/** Milliseconds between two tries: at first, and when nothing has been answered for several. */
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 500;
