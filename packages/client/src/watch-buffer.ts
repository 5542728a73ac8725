import { Fifo } from '@meerkat/protocol';
import type { WatchEvent } from './machine/watch-listener.ts';
import type { GapReason } from './watch-sink.ts';

/** Changes may be missing here: a copy of the znodes must be read again. */
export interface WatchGap {
  readonly type: 'gap';
  /** 'overflow': the events were not consumed in time, and the oldest were dropped here. */
  readonly reason: GapReason | 'overflow';
  /** Events that were dropped; null when the number is unknown. */
  readonly missed: number | null;
}

export type WatchStreamEvent = WatchEvent | WatchGap;

/**
 * A bounded queue of events between server and consumer, in order.
 *
 *     taken ◄── [overflow] e4 e5 gap e6 … [gap] ◄── pushed
 *                    │                      └ consecutive gaps are merged
 *                    └ full: the oldest is dropped and counted here
 */
export class WatchBuffer {
  readonly #events: Fifo<WatchStreamEvent> = new Fifo();
  readonly #lengthMax: number;
  #hasOverflown = false;
  /** Number of events dropped since the last take. */
  #missed = 0;
  /** The gap after all events. */
  #gap: GapReason | null = null;

  /** @param lengthMax at least 1; the gaps at both ends are not counted */
  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** There is nothing to take. */
  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#gap === null && !this.#hasOverflown;
  }

  push(event: WatchEvent): void {
    if (this.#gap !== null) this.#append(makeGap(this.#gap));
    this.#gap = null;
    this.#append(event);
  }

  pushGap(reason: GapReason): void {
    if (this.#gap !== 'new-session') this.#gap = reason;
  }

  /** null when it is empty. */
  take(): WatchStreamEvent | null {
    if (this.#hasOverflown) {
      const gap = makeGap('overflow', this.#missed);
      this.#hasOverflown = false;
      this.#missed = 0;
      return gap;
    }
    const event = this.#events.shift();
    if (event !== undefined) return event;
    if (this.#gap === null) return null;
    const gap = makeGap(this.#gap);
    this.#gap = null;
    return gap;
  }

  clear(): void {
    this.#events.takeAll();
    this.#hasOverflown = false;
    this.#gap = null;
  }

  #append(event: WatchStreamEvent): void {
    if (this.#events.length >= this.#lengthMax) {
      this.#hasOverflown = true;
      // A dropped gap is represented by this one: both say that changes are missing before what follows.
      if (this.#events.shift()?.type !== 'gap') this.#missed++;
    }
    this.#events.push(event);
  }
}

function makeGap(reason: WatchGap['reason'], missed: number | null = null): WatchGap {
  return { type: 'gap', reason, missed };
}
