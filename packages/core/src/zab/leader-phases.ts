import type { Clock } from '../base/ports.ts';

export type LeaderPhase = 'idle' | 'discovery' | 'epoch' | 'synchronization' | 'broadcast' | 'over';

const NEVER = Number.POSITIVE_INFINITY;

/** Why each phase before broadcast did not complete, human-readable. */
const WAITED_FOR: Partial<Record<LeaderPhase, string>> = {
  discovery: 'too few said which epoch they have accepted',
  epoch: 'too few have accepted the epoch',
  synchronization: 'too few have acknowledged NEWLEADER',
};

/** The phase of a leader, when it began, and its deadline. */
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

  /** Milliseconds since the epoch was established; null in phases other than broadcast. */
  get ledMs(): number | null {
    return this.#current === 'broadcast' ? this.ageMs : null;
  }

  /** Deadline of the phases before broadcast, when the leader steps down; Infinity in the others. */
  get endsMs(): number {
    return this.#current in WAITED_FOR ? this.#sinceMs + this.#initMs : NEVER;
  }

  /** Why a phase has timed out, human-readable. */
  describeTimeout(): string {
    return `no quorum of learners within initLimit: ${WAITED_FOR[this.#current] ?? ''}`;
  }
}
