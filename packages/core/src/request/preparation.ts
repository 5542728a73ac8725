import { Fifo, type Txn } from '@meerkat/protocol';
import type { PrepareSteps } from './prepare-steps.ts';

/**
 * Prepares requests one after the other. A long request takes several turns; the requests after it wait for its txn,
 * because they must see its effects. They also wait when multis of learners' clients or sessions that end together have
 * used up the turn. Reads do not wait.
 */
export class Preparation {
  /** A request with more steps takes several turns. */
  readonly stepsPerTurn: number;
  readonly #stepsMax: number;
  /** Steps in this turn, of multis and closeSessions only: other requests are bounded by their clients' turn shares. */
  #stepsOfTurn = 0;
  #steps: PrepareSteps | null = null;
  #done: (txn: Txn) => void = IGNORE;
  readonly #waiting: Fifo<() => void> = new Fifo();

  constructor(stepsPerTurn: number = STEPS_PER_TURN) {
    this.stepsPerTurn = stepsPerTurn;
    this.#stepsMax = REQUESTS_PER_TURN * stepsPerTurn;
  }

  /** True while a request is being prepared, others wait or this turn's budget is used: callers must `wait`. */
  get isBusy(): boolean {
    return this.hasWork || this.#stepsOfTurn >= this.#stepsMax;
  }

  /** True while `advance` has something to do. */
  get hasWork(): boolean {
    return this.#steps !== null || this.#waiting.length > 0;
  }

  /** Requests that have no txn yet. */
  get length(): number {
    return this.#waiting.length + (this.#steps === null ? 0 : 1);
  }

  /** Prepares as much as fits into a turn; calls `done` with the txn, in this turn or a later one. */
  begin(steps: PrepareSteps, done: (txn: Txn) => void): void {
    this.#stepsOfTurn += Math.min(steps.size, this.stepsPerTurn);
    const txn = steps.advance(this.stepsPerTurn);
    if (txn !== null) {
      done(txn);
      return;
    }
    this.#steps = steps;
    this.#done = done;
  }

  /** Counts steps that were prepared without `begin`. */
  count(steps: number): void {
    this.#stepsOfTurn += steps;
  }

  /** @param prepare called once everything before is prepared; it may `begin` a request, but must not `wait` again */
  wait(prepare: () => void): void {
    this.#waiting.push(prepare);
  }

  /** Continues at the end of a turn. */
  advance(): void {
    this.#stepsOfTurn = 0;
    if (this.#advance(this.stepsPerTurn)) this.#prepareWaiting();
  }

  /** @returns true when the request in progress, if there was one, has its txn */
  #advance(count: number): boolean {
    const steps = this.#steps;
    if (steps === null) return true;
    this.#stepsOfTurn += Math.min(steps.size, count);
    const txn = steps.advance(count);
    if (txn === null) return false;
    const done = this.#done;
    this.#steps = null;
    this.#done = IGNORE;
    done(txn);
    return true;
  }

  #prepareWaiting(): void {
    while (this.#steps === null && this.#waiting.length > 0 && this.#stepsOfTurn < this.#stepsMax) {
      this.#waiting.shift()!();
    }
  }

  drop(): void {
    this.#steps = null;
    this.#done = IGNORE;
    this.#waiting.takeAll();
  }
}

/** Operations of a multi, or ephemerals of a closing session, prepared per turn: one or two milliseconds. */
const STEPS_PER_TURN = 1024;

/** Requests of `stepsPerTurn` each after which the remaining ones are left to the next turn. */
const REQUESTS_PER_TURN = 4;

const IGNORE = (): void => {};
