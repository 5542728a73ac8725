import { assert } from './assert.ts';
import { Meters } from './meters/meters.ts';
import type { Clock } from './ports.ts';

/** What has collected output during a turn. */
export interface Flushable {
  /** Hands the turn's output to the stream, in one write. */
  flush(): void;
}

/** When something came that is received in a turn. */
export interface Received {
  /** For its latency: monotonic milliseconds with their fraction. */
  readonly receivedMs: number;
  readonly wallMs: number;
}

/**
 * One turn of the host after the other: the events between two calls of `ServerCore.onTurnEnd`.
 *
 * All of a turn happens at one time, which is read when it is asked for first. Actions that are deferred run at its end,
 * each as an event of its own; then what the links to other servers have collected leaves.
 */
export class Turn {
  /** What is counted in this server's turns. */
  readonly meters: Meters;
  readonly #clock: Clock;
  #number = 0;
  /** −1 until it is asked for. */
  #nowMs = -1;
  #wallMs = -1;
  #received: Received | null = null;
  #deferred: (() => void)[] = [];
  #withOutput: Flushable[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.meters = new Meters(clock);
  }

  /** How many there have been before this one. */
  get number(): number {
    return this.#number;
  }

  /** Whole milliseconds of the monotonic clock. */
  nowMs(): number {
    if (this.#nowMs < 0) this.#nowMs = Math.floor(this.meters.onTurnStart());
    return this.#nowMs;
  }

  /** The same as monotonic milliseconds with their fraction. */
  startedMs(): number {
    this.nowMs();
    return this.meters.turnStartedMs;
  }

  wallMs(): number {
    if (this.#wallMs < 0) this.#wallMs = this.#clock.wallMs();
    return this.#wallMs;
  }

  /** One object for all that is received in this turn. */
  received(): Received {
    this.#received ??= { receivedMs: this.meters.turnStartedMs, wallMs: this.wallMs() };
    return this.#received;
  }

  /** Runs an action as an event of its own, within this turn: what an effect brings about is told by no other way. */
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
      assert(round < DEFERRED_ROUNDS_MAX, 'what is deferred comes to an end');
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

  /** What comes now is of the next one. */
  end(): void {
    this.meters.onTurnEnd();
    this.#number++;
    this.#nowMs = -1;
    this.#wallMs = -1;
    this.#received = null;
  }
}

const DEFERRED_ROUNDS_MAX = 1000;
