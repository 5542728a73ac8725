import { Fifo, type Txn } from '@meerkat/protocol';
import type { PrepareSteps } from './prepare.ts';

/**
 * What is prepared, one after the other: a long request takes several turns, and whatever else is to be prepared waits
 * until it has its txn, because it must see what that does. Reads do not wait.
 */
export class Preparation {
  /** More than that takes several turns. */
  readonly stepsPerTurn: number;
  #steps: PrepareSteps | null = null;
  #done: (txn: Txn) => void = IGNORE;
  readonly #waiting: Fifo<() => void> = new Fifo();

  constructor(stepsPerTurn: number = STEPS_PER_TURN) {
    this.stepsPerTurn = stepsPerTurn;
  }

  /** True while a request is being prepared: others are to `wait`. */
  get isBusy(): boolean {
    return this.#steps !== null;
  }

  /** Requests that have no txn yet. */
  get length(): number {
    return this.#waiting.length + (this.#steps === null ? 0 : 1);
  }

  /** Prepares as much as fits into a turn, and tells the txn, now or in a later one. */
  begin(steps: PrepareSteps, done: (txn: Txn) => void): void {
    const txn = steps.goOn(this.stepsPerTurn);
    if (txn !== null) {
      done(txn);
      return;
    }
    this.#steps = steps;
    this.#done = done;
  }

  /** @param prepare is called once everything before is prepared; it may begin something long */
  wait(prepare: () => void): void {
    this.#waiting.push(prepare);
  }

  /** A turn ends: goes on. */
  goOn(): void {
    this.#goOn(this.stepsPerTurn);
  }

  /** Prepares all that has been asked, for whoever must come behind it. */
  finish(): void {
    while (this.isBusy) this.#goOn(Number.POSITIVE_INFINITY);
  }

  #goOn(count: number): void {
    const steps = this.#steps;
    if (steps === null) return;
    const txn = steps.goOn(count);
    if (txn === null) return;
    const done = this.#done;
    this.#steps = null;
    this.#done = IGNORE;
    done(txn);
    while (this.#steps === null && this.#waiting.length > 0) this.#waiting.shift()!();
  }

  drop(): void {
    this.#steps = null;
    this.#done = IGNORE;
    this.#waiting.takeAll();
  }
}

/** Operations of a multi, or ephemerals of a session that ends, which are prepared in a turn: a millisecond or two. */
const STEPS_PER_TURN = 1024;

const IGNORE = (): void => {};
