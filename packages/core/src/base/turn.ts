import { assert } from './assert.ts';
import { Meters } from './meters/meters.ts';
import type { Clock } from './ports.ts';

/** Collects output during a turn. */
export interface Flushable {
  /** Hands the turn's output to the stream, in one write. */
  flush(): void;
}

/** When a request of this turn was received. */
export interface Received {
  /** For its latency: monotonic milliseconds with fraction. */
  readonly receivedMs: number;
  readonly wallMs: number;
}

/**
 * The current turn of the host: the events between two calls of `ServerCore.onTurnEnd`.
 *
 * All events of a turn share one time, which is read when it is first needed. Deferred actions run at the end of the
 * turn, each as a separate event; then the collected output of the links to other servers is sent.
 */
export class Turn {
  /** Counters of this server. */
  readonly meters: Meters;
  readonly #clock: Clock;
  #number = 0;
  /** −1 until it is first needed. */
  #nowMs = -1;
  #wallMs = -1;
  #received: Received | null = null;
  #deferred: (() => void)[] = [];
  #withOutput: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.meters = new Meters(clock);
  }

  /** Number of earlier turns. */
  get number(): number {
    return this.#number;
  }

  /** Whole milliseconds of the monotonic clock. */
  nowMs(): number {
    if (this.#nowMs < 0) this.#nowMs = Math.floor(this.meters.onTurnStart());
    return this.#nowMs;
  }

  /** The same as monotonic milliseconds with fraction. */
  startedMs(): number {
    this.nowMs();
    return this.meters.turnStartedMs;
  }

  wallMs(): number {
    if (this.#wallMs < 0) this.#wallMs = this.#clock.wallMs();
    return this.#wallMs;
  }

  /** One object for everything received in this turn. */
  received(): Received {
    this.#received ??= { receivedMs: this.meters.turnStartedMs, wallMs: this.wallMs() };
    return this.#received;
  }

  /**
   * Runs an action as a separate event within this turn; the consequences of an effect are always reported like this.
   */
  defer(action: () => void): void {
    this.#deferred.push(action);
  }

  /** The link has output; `flush` is called at the end of the turn. */
  onOutput(link: Flushable): void {
    this.#withOutput.push(link);
  }

  /** True while something waits for the end of the turn. */
  get hasWork(): boolean {
    return this.#withOutput.length > 0 || this.#deferred.length > 0;
  }

  runDeferred(): void {
    for (let round = 0; this.#deferred.length > 0; round++) {
      assert(round < DEFERRED_ROUNDS_MAX, 'deferred actions terminate');
      const actions = this.#deferred;
      this.#deferred = [];
      for (const action of actions) action();
    }
  }

  flushLinks(): void {
    const links = this.#withOutput;
    this.#withOutput = [];
    for (const link of links) link.flush();
  }

  /** Later events belong to the next turn. */
  end(): void {
    this.meters.onTurnEnd();
    this.#number++;
    this.#nowMs = -1;
    this.#wallMs = -1;
    this.#received = null;
  }
}

const DEFERRED_ROUNDS_MAX = 1000;
