import type { Clock } from '../base/ports.ts';
import { isUpToDate, type LearnerPhase, waitsForDisk } from './learner-phase.ts';
import type { ZabOptions } from './zab-options.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * How long a learner waits for its leader.
 *
 * `initLimit` ticks of silence until UPTODATE, then `syncLimit`. Apache's learner allows only `syncLimit` from
 * NEWLEADER on, but the leader is silent until it has a quorum. UPTODATE must arrive within the sum of both limits
 * after the ACK of NEWLEADER, even if the leader is not silent.
 */
export class LeaderSilence {
  readonly #options: Pick<ZabOptions, 'initLimit' | 'syncLimit' | 'tickTimeMs'>;
  readonly #clock: Clock;
  #phase: LearnerPhase = 'connecting';
  #silentAtMs: number;
  #upToDateAtMs: number = NEVER;

  /** Starts the timeout for connecting. */
  constructor(options: Pick<ZabOptions, 'initLimit' | 'syncLimit' | 'tickTimeMs'>, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#silentAtMs = clock.monotonicMs() + this.#silenceMs;
  }

  /** Milliseconds of the monotonic clock; Infinity while only this server's own disk is waited for. */
  get nextDeadlineMs(): number {
    return Math.min(this.#silentAtMs, this.#upToDateAtMs);
  }

  /** Restarts the timeout. There is none while this server waits for its own disk: the leader may be silent then. */
  begin(phase: LearnerPhase): void {
    this.#phase = phase;
    this.#silentAtMs = waitsForDisk(phase) ? NEVER : this.#clock.monotonicMs() + this.#silenceMs;
  }

  expectUpToDate(): void {
    const { initLimit, syncLimit, tickTimeMs } = this.#options;
    this.#upToDateAtMs = this.#clock.monotonicMs() + (initLimit + syncLimit) * tickTimeMs;
  }

  onUpToDate(): void {
    this.#upToDateAtMs = NEVER;
  }

  /** Cancels all timeouts. */
  end(): void {
    this.#silentAtMs = NEVER;
    this.#upToDateAtMs = NEVER;
  }

  /** @returns what the leader has failed to do in time, human-readable; null when no deadline has passed */
  findFault(): string | null {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#silentAtMs) {
      if (this.#phase === 'connecting') return 'the leader could not be reached in time';
      return `the leader has said nothing for ${this.#silenceMs} ms`;
    }
    return nowMs >= this.#upToDateAtMs ? 'the leader has not brought a quorum together in time' : null;
  }

  get #silenceMs(): number {
    const { initLimit, syncLimit, tickTimeMs } = this.#options;
    return (isUpToDate(this.#phase) ? syncLimit : initLimit) * tickTimeMs;
  }
}
