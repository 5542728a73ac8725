import type { Clock } from '@meerkat/core';

/**
 * The clocks of this process, but that no time passes while the process stands still: when a test blocks it, or the machine has
 * other work. The servers of an ensemble stand still together then, so none of them was silent, and neither were
 * clients beside them.
 *
 * A timer that fires every `BEAT_MS` shows that the process works. Of a gap in which it did not, `GAP_MS_MAX` count.
 */
export class ProcessClock implements Clock {
  readonly #now: () => number;
  /** null: nobody reads the clock. */
  #beat: NodeJS.Timeout | null = null;
  #beatsUnread = 0;
  #seenMs = 0;
  #stoodStillMs = 0;

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  monotonicMs(): number {
    const nowMs = this.#look();
    this.#beatsUnread = 0;
    if (this.#beat === null) this.#beat = setInterval(() => this.#onBeat(), BEAT_MS).unref();
    return nowMs - this.#stoodStillMs;
  }

  wallMs(): number {
    return Date.now();
  }

  #look(): number {
    const nowMs = this.#now();
    const gapMs = nowMs - this.#seenMs;
    if (this.#beat !== null && gapMs > GAP_MS_MAX) this.#stoodStillMs += gapMs - GAP_MS_MAX;
    this.#seenMs = nowMs;
    return nowMs;
  }

  #onBeat(): void {
    this.#look();
    if (++this.#beatsUnread < BEATS_UNREAD_MAX) return;
    if (this.#beat !== null) clearInterval(this.#beat);
    this.#beat = null;
  }
}

const BEAT_MS = 20;
const GAP_MS_MAX = 40;
/** After so many without a reader the clock rests: there is no server any more. */
const BEATS_UNREAD_MAX = 500;
