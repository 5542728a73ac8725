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
import { asDoubtful, asNotApplied } from './doubt.ts';

/** Other reasons that end a wait. */
export interface WakeOptions {
  /** The signal of the session that the wait depends on. */
  readonly lost?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly delayMs?: number | undefined;
}

/** What an attempt survives, besides lost connections and a busy service. */
export interface AttemptOptions {
  /** Continues in the next session after session loss. Default true. */
  readonly acrossSessions?: boolean | undefined;
  /** Waits for a server with a quorum when connected to one without. Default false: the call rejects. */
  readonly awaitsQuorum?: boolean | undefined;
  /** The awaited work continues in the background: when the caller cancels, it may have been applied. Default false. */
  readonly isUnderWay?: boolean | undefined;
}

/**
 * One call of a recipe: its signal and deadline, shared by all its requests and pauses; the failures that it survives;
 * and whether anything may have been applied, for the error that ends it.
 *
 * @example
 * const attempt = new Attempt(client, options, { operation: 'Barrier.wait', path });
 * const { stat, changed } = await attempt.through((call) => client.exists(path, { ...call, watch: true }));
 * if (stat !== null) await attempt.any([changed]);
 */
export class Attempt {
  readonly client: Client;
  readonly about: About;
  /** What blocks the caller while there is a connection; included in the TimeoutError. */
  obstacle: string | undefined = undefined;
  readonly #options: CallOptions;
  readonly #budget: Budget;
  readonly #passing: ReadonlySet<RetryClass>;
  /** By the client's monotonic clock. */
  readonly #endMs: number;
  #isDoubtful: boolean;
  /** Consecutive. */
  #failures = 0;

  /** @throws RangeError for a `timeoutMs` that is not a number */
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

  /** Whether something may have been applied although the reply was lost. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  get #outcome(): Outcome {
    return this.#isDoubtful ? 'unknown' : 'not-applied';
  }

  /** Records whether the failed request may have been applied. @returns the error, to be rethrown */
  noted(error: unknown): unknown {
    this.#isDoubtful ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
    return error;
  }

  /** From now on something has, or may have, been applied. */
  doubt(): void {
    this.#isDoubtful = true;
  }

  /** The doubtful requests are now known not to have been applied. */
  settle(): void {
    this.#isDoubtful = false;
  }

  /** Runs the whole call. @throws what ended it, as an error of the call and with its outcome */
  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.toCallerError(error);
    }
  }

  /** The error for the caller, who learns the outcome of all requests from it. */
  toCallerError(error: unknown): unknown {
    const { about } = this;
    const details = { ...about, outcome: this.#outcome };
    const { signal, timeoutMs } = this.#options;
    if (error instanceof AbortedError && signal?.aborted === true) {
      return new AbortedError({ ...details, cause: signal.reason });
    }
    if (error instanceof TimeoutError && timeoutMs !== undefined) {
      return new TimeoutError({ ...details, detail: this.#describeObstacle() });
    }
    return this.#isDoubtful ? asDoubtful(error, about) : asNotApplied(error, about);
  }

  /** Without a connection nothing else is known. */
  #describeObstacle(): string | undefined {
    const { state } = this.client;
    return state === 'connected' ? this.obstacle : `the client is ${state}`;
  }

  /* ------------------------------------------------------------------------------------------ the requests ---- */

  /** Signal and remaining time for the next request. @throws AbortedError or TimeoutError when the call has ended */
  next(): CallOptions {
    return this.#budget.next(this.#outcome);
  }

  /**
   * Retries an idempotent request, such as a read, until there is a reply.
   *
   * @throws refusals of the service, the end of the client, AbortedError and TimeoutError
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

  /** Like `through`, for preparations of the call, such as creating parents: the error says so. */
  async prepare<T>(request: (call: CallOptions) => Promise<T>): Promise<T> {
    try {
      return await this.through(request);
    } catch (error) {
      throw asNotApplied(error, this.about);
    }
  }

  /** Like `through`, for a write that the caller requested: records whether it may have been applied. */
  apply<T>(write: (call: CallOptions) => Promise<T>): Promise<T> {
    return this.through(async (call) => {
      try {
        return await write(call);
      } catch (error) {
        throw this.noted(error);
      }
    });
  }

  /** Resets the backoff, as the service replies. */
  answered(): void {
    this.#failures = 0;
  }

  /** Whether a retry may help, and this attempt survives the error. */
  passes(error: unknown): error is ZooKeeperError {
    return this.#passing.has(retryClassOf(error));
  }

  /** Resolves when there is a connection and a retry makes sense. @throws the failure itself when it does not */
  async recover(failure: unknown): Promise<void> {
    if (!this.passes(failure)) throw failure;
    await this.reconnect();
  }

  /** Resolves when there is a connection, after a delay, so that a failing service is not hammered. */
  async reconnect(): Promise<void> {
    await this.pause(Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** this.#failures++));
    await this.client.whenConnected(this.next());
  }

  /* --------------------------------------------------------------------------------------------- the waits ---- */

  /** Milliseconds. @throws AbortedError or TimeoutError when the caller cancels first */
  pause(delayMs: number): Promise<void> {
    return this.#budget.pause(delayMs, this.#outcome);
  }

  /**
   * Resolves when one of the promises has settled, either way, `lost` is aborted, or `delayMs` have passed.
   *
   * @param lost a signal, because a promise would retain every wait that ever used it
   * @throws AbortedError or TimeoutError when the caller cancels first
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
      // First of all, so that a later rejection without a waiter does not end the process.
      for (const promise of wakes) promise.then(wake, wake);
      const abandon = (): void => settle(() => reject(this.toCallerError(new AbortedError(this.about))));
      releases.push(onAbort(signal, abandon));
      if (!isOver) releases.push(onAbort(lost, wake));
      const leftMs = Math.max(0, this.#endMs - clock.monotonicMs());
      const timerMs = Math.min(leftMs, Math.max(0, delayMs));
      if (isOver || timerMs === Number.POSITIVE_INFINITY) return;
      const expire = (): void => settle(() => reject(this.toCallerError(new TimeoutError(this.about))));
      releases.push(clock.schedule(timerMs, leftMs <= delayMs ? expire : wake));
    });
  }

  /**
   * Waits for work that continues anyway.
   *
   * @param work or a function that starts it: its signal aborts when the caller cancels. Work that may take long must
   *   then release this wait, which a promise would retain until it settles
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

/** Milliseconds between attempts: the minimum, and the maximum after several without a reply. */
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 500;
