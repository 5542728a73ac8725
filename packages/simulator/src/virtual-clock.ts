import { GRAIN_MS, type Timeline } from './timeline.ts';

/**
 * The clocks of one host: a monotonic one that runs a little too fast or too slow but never goes back, and a wall clock
 * that is wrong by an offset and may be set.
 */
export class VirtualClock {
  readonly #timeline: Timeline;
  /** Where the present rate began, in virtual and in this host's milliseconds. */
  #sinceMs: number;
  #monotonicSinceMs: number;
  #rate = 1;
  #wallOffsetMs = 0;

  /** @param bootMs what the monotonic clock shows now */
  constructor(timeline: Timeline, bootMs = 0) {
    this.#timeline = timeline;
    this.#sinceMs = timeline.nowMs;
    this.#monotonicSinceMs = bootMs;
  }

  monotonicMs(): number {
    return this.#monotonicSinceMs + (this.#timeline.nowMs - this.#sinceMs) * this.#rate;
  }

  wallMs(): number {
    return EPOCH_MS + Math.floor(this.#timeline.nowMs + this.#wallOffsetMs);
  }

  /** From now on it is fast by so many parts per million; a negative number makes it slow. Above −1,000,000. */
  setDrift(partsPerMillion: number): void {
    this.#monotonicSinceMs = this.monotonicMs();
    this.#sinceMs = this.#timeline.nowMs;
    this.#rate = 1 + partsPerMillion / 1e6;
  }

  /** The wall clock is set, forward or back. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Virtual milliseconds until the monotonic clock shows at least `deadlineMs`; 0 when it does. */
  delayUntil(deadlineMs: number): number {
    const leftMs = deadlineMs - this.monotonicMs();
    // Rounding must not cause a series of wakeups just before the deadline.
    return leftMs <= 0 ? 0 : Math.max(GRAIN_MS, leftMs / this.#rate);
  }

  /** So many milliseconds of this host in virtual ones. */
  virtualMs(ms: number): number {
    return ms / this.#rate;
  }
}

/** 2023-11-14, when virtual time begins. */
const EPOCH_MS = 1_700_000_000_000;
