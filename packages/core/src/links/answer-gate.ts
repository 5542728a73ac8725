import type { Clock } from '../base/ports.ts';
import { type AnswerLease, UNLIMITED } from '../zab/answer-lease.ts';

/**
 * Whether what was answered to clients may leave: as long as the lease of this server's role lasts, by a clock that is read
 * after everything that is answered has come. It stays that of the last role until the next one serves.
 */
export class AnswerGate {
  readonly #clock: Clock;
  #lease: AnswerLease = UNLIMITED;
  #isShut = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A role serves from now on. */
  begin(lease: AnswerLease): void {
    this.#lease = lease;
    this.look();
  }

  /** What the last look has found: answers do not leave, so that it is of no use to make more of them. */
  get isShut(): boolean {
    return this.#isShut;
  }

  /** @returns true when answers may leave now */
  look(): boolean {
    const { untilMs } = this.#lease;
    this.#isShut = untilMs !== Number.POSITIVE_INFINITY && this.#clock.monotonicMs() > untilMs;
    return !this.#isShut;
  }
}
