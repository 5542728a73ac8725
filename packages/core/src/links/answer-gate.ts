import type { Clock } from '../base/ports.ts';
import { type AnswerLease, UNLIMITED } from '../zab/answer-lease.ts';

/**
 * Decides whether replies to clients may leave: while the lease of this server's role lasts, by a clock that is read
 * after everything that is answered has arrived. Keeps the lease of the last role until the next one serves.
 */
export class AnswerGate {
  readonly #clock: Clock;
  #lease: AnswerLease = UNLIMITED;
  #isShut = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A role starts serving. */
  begin(lease: AnswerLease): void {
    this.#lease = lease;
    this.look();
  }

  /** Result of the last `look`: replies may not leave, so there is no point in producing more. */
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
