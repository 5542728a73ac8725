import type { Clock } from '../base/ports.ts';

export type LeaderPhase = 'idle' | 'discovery' | 'epoch' | 'synchronization' | 'broadcast' | 'over';

const NEVER = Number.POSITIVE_INFINITY;

/** What each phase before broadcast waits for, for people. */
const WAITED_FOR: Partial<Record<LeaderPhase, string>> = {
  discovery: 'too few said which epoch they have accepted',
  epoch: 'too few have accepted the epoch',
  synchronization: 'too few have acknowledged NEWLEADER',
};

/** The phase of a leader, since when, and until when at most. */
export class LeaderPhases {
  readonly #clock: Clock;
  readonly #initMs: number;
  #current: LeaderPhase = 'idle';
  #sinceMs = 0;

  /** @param initMs how long each phase before broadcast may take */
  constructor(clock: Clock, initMs: number) {
    this.#clock = clock;
    this.#initMs = initMs;
  }

  get current(): LeaderPhase {
    return this.#current;
  }

  enter(phase: LeaderPhase): void {
    this.#current = phase;
    this.#sinceMs = this.#clock.monotonicMs();
  }

  /** Milliseconds since the phase began. */
  get ageMs(): number {
    return this.#clock.monotonicMs() - this.#sinceMs;
  }

  /** Milliseconds since the epoch was established; null in another phase than broadcast. */
  get ledMs(): number | null {
    return this.#current === 'broadcast' ? this.ageMs : null;
  }

  /** The phases before broadcast end in time, or the leadership does; Infinity in the others. */
  get endsMs(): number {
    return this.#current in WAITED_FOR ? this.#sinceMs + this.#initMs : NEVER;
  }

  /** Why a phase that did not end in time is over, for people. */
  describeTimeout(): string {
    return `no quorum of learners within initLimit: ${WAITED_FOR[this.#current] ?? ''}`;
  }
}
