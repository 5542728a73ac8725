import { Fifo } from '@meerkat/protocol';
import type { WatchEvent } from './machine/watch-listener.ts';
import type { GapReason } from './watch-sink.ts';

/** Changes may be missing here: a copy of the znodes must be read again. */
export interface WatchGap {
  readonly type: 'gap';
  /** 'overflow': the events were not taken in time, and the oldest were dropped in this place. */
  readonly reason: GapReason | 'overflow';
  /** Events that were dropped; null when the number is unknown. */
  readonly missed: number | null;
}

export type WatchStreamEvent = WatchEvent | WatchGap;

/**
 * Events between a server that sends them and a consumer that takes them, in order, with an end to its size.
 *
 *     taken ◄── [overflow] e4 e5 gap e6 … [gap] ◄── pushed
 *                    │                      └ gaps in a row are one
 *                    └ full: the oldest is dropped, and this counts it
 */
export class WatchBuffer {
  readonly #events: Fifo<WatchStreamEvent> = new Fifo();
  readonly #lengthMax: number;
  #hasOverflown = false;
  /** Events that were dropped since something was taken. */
  #missed = 0;
  /** The gap behind all events. */
  #gap: GapReason | null = null;

  /** @param lengthMax at least 1; the gaps at both ends come on top */
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
      // A gap that is dropped is stood for by this one: both say that changes are missing before what follows.
      if (this.#events.shift()?.type !== 'gap') this.#missed++;
    }
    this.#events.push(event);
  }
}

function makeGap(reason: WatchGap['reason'], missed: number | null = null): WatchGap {
  return { type: 'gap', reason, missed };
}
