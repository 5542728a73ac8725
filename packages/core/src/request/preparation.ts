import { Fifo, type Txn } from '@meerkat/protocol';
import type { PrepareSteps } from './prepare-steps.ts';

/**
 * What is prepared, one after the other: a long request takes several turns, and whatever else is to be prepared waits
 * until it has its txn, because it must see what that does. So does what comes when many of them have used up a turn: multis
 * of many learners' clients, sessions that end together. Reads do not wait.
 */
export class Preparation {
  /** More than that takes several turns. */
  readonly stepsPerTurn: number;
  readonly #stepsMax: number;
  /** Of multis and ends of sessions, in this turn. Others have one each and are not counted: their clients' shares of the turn bound them. */
  #stepsOfTurn = 0;
  #steps: PrepareSteps | null = null;
  #done: (txn: Txn) => void = IGNORE;
  readonly #waiting: Fifo<() => void> = new Fifo();

  constructor(stepsPerTurn: number = STEPS_PER_TURN) {
    this.stepsPerTurn = stepsPerTurn;
    this.#stepsMax = REQUESTS_PER_TURN * stepsPerTurn;
  }

  /** True while a request is being prepared, others wait, or this turn has prepared as much as it may: others are to `wait`. */
  get isBusy(): boolean {
    return this.hasWork || this.#stepsOfTurn >= this.#stepsMax;
  }

  /** True while `goOn` has something to do. */
  get hasWork(): boolean {
    return this.#steps !== null || this.#waiting.length > 0;
  }

  /** Requests that have no txn yet. */
  get length(): number {
    return this.#waiting.length + (this.#steps === null ? 0 : 1);
  }

  /** Prepares as much as fits into a turn, and tells the txn, now or in a later one. */
  begin(steps: PrepareSteps, done: (txn: Txn) => void): void {
    this.#stepsOfTurn += Math.min(steps.size, this.stepsPerTurn);
    const txn = steps.goOn(this.stepsPerTurn);
    if (txn !== null) {
      done(txn);
      return;
    }
    this.#steps = steps;
    this.#done = done;
  }

  /** So many changes of a multi, or other work of that size, are prepared without `begin`. */
  count(steps: number): void {
    this.#stepsOfTurn += steps;
  }

  /** @param prepare is called once everything before is prepared; it may begin something long, and must not `wait` again */
  wait(prepare: () => void): void {
    this.#waiting.push(prepare);
  }

  /** A turn ends: goes on. */
  goOn(): void {
    this.#stepsOfTurn = 0;
    if (this.#goOn(this.stepsPerTurn)) this.#prepareWaiting();
  }

  /** @returns true when the request in progress, if there was one, has its txn */
  #goOn(count: number): boolean {
    const steps = this.#steps;
    if (steps === null) return true;
    this.#stepsOfTurn += Math.min(steps.size, count);
    const txn = steps.goOn(count);
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

/** Operations of a multi, or ephemerals of a session that ends, which are prepared in a turn: a millisecond or two. */
const STEPS_PER_TURN = 1024;

/** As much as so many requests of `stepsPerTurn` each; a turn that has prepared more leaves the rest to the next one. */
const REQUESTS_PER_TURN = 4;

const IGNORE = (): void => {};
