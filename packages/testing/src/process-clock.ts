import { performance } from 'node:perf_hooks';
import { clearInterval, setInterval } from 'node:timers';
import type { Clock } from '@meerkat/core';

type Timers = Pick<typeof globalThis, 'setInterval' | 'clearInterval'>;

/**
 * The clocks of this process, but that no time passes while the process stands still: when a test blocks it, or the machine has
 * other work. The servers of an ensemble stand still together then, so none of them was silent, and neither were
 * clients beside them.
 *
 * A timer that fires every `BEAT_MS` shows that the process works. Of a gap in which it did not, `GAP_MS_MAX` count.
 * Timers and time are imported: tests put others in the place of the global ones.
 */
export class ProcessClock implements Clock {
  readonly #now: () => number;
  readonly #timers: Timers;
  /** null: the clock is not read. */
  #beat: NodeJS.Timeout | null = null;
  #beatsUnread = 0;
  #seenMs = 0;
  #stoodStillMs = 0;

  /** @param now milliseconds; while it goes back, no time passes */
  constructor(now: () => number = () => performance.now(), timers: Timers = { setInterval, clearInterval }) {
    this.#now = now;
    this.#timers = timers;
  }

  monotonicMs(): number {
    const nowMs = this.#look();
    this.#beatsUnread = 0;
    if (this.#beat === null) this.#beat = this.#timers.setInterval(() => this.#onBeat(), BEAT_MS).unref();
    return nowMs - this.#stoodStillMs;
  }

  wallMs(): number {
    return Date.now();
  }

  #look(): number {
    const nowMs = this.#now();
    const gapMs = nowMs - this.#seenMs;
    if (gapMs < 0) this.#stoodStillMs += gapMs;
    else if (this.#beat !== null && gapMs > GAP_MS_MAX) this.#stoodStillMs += gapMs - GAP_MS_MAX;
    this.#seenMs = nowMs;
    return nowMs;
  }

  #onBeat(): void {
    this.#look();
    if (++this.#beatsUnread < BEATS_UNREAD_MAX) return;
    if (this.#beat !== null) this.#timers.clearInterval(this.#beat);
    this.#beat = null;
  }
}

const BEAT_MS = 20;
const GAP_MS_MAX = 40;
/** Beats without a reader after which the timer stops, as there is no server left. */
const BEATS_UNREAD_MAX = 500;
