/**
 * The newest txns that a start replays, as bytes: a leader sends them to learners that are only slightly behind.
 *
 *     ring of entries ─► { zxid, block, start, end }          blocks of 64 KiB, filled one after the other
 *
 * A million replayed txns pass through here and 500 remain, so an entry costs only a copy and four numbers; views are
 * created for the remaining ones only.
 */
import type { JuteReader, Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from '../zab/history.ts';

const BLOCK_BYTES = 64 * 1024;

/** Total payload bytes above which the oldest entries are dropped. */
export const TAIL_BYTES_MAX: number = 4 * 1024 * 1024;

interface Slot {
  zxid: Zxid;
  block: Uint8Array;
  start: number;
  end: number;
}

export class HistoryTail {
  readonly countMax: number;
  readonly #bytesMax: number;
  readonly #slots: Slot[] = [];
  /** Index of the oldest slot in use. */
  #first = 0;
  #count = 0;
  #bytes = 0;
  #block: Uint8Array = new Uint8Array(0);
  #used = 0;

  /** @param countMax entries that are kept; 0 keeps none and costs nothing */
  constructor(countMax: number, bytesMax: number = TAIL_BYTES_MAX) {
    this.countMax = countMax;
    this.#bytesMax = bytesMax;
  }

  /** Copies the bytes between the reader's position and its end. */
  add(zxid: Zxid, payload: Pick<JuteReader, 'bytes' | 'position' | 'end'>): void {
    if (this.countMax <= 0) return;
    const { bytes, position, end } = payload;
    const length = end - position;
    if (this.#used + length > this.#block.length) {
      this.#block = new Uint8Array(Math.max(BLOCK_BYTES, length));
      this.#used = 0;
    }
    this.#block.set(bytes.subarray(position, end), this.#used);
    if (this.#count === this.countMax) this.#dropOldest();
    const index = (this.#first + this.#count) % this.countMax;
    const start = this.#used;
    this.#used += length;
    const slot = this.#slots[index];
    if (slot === undefined) {
      this.#slots[index] = { zxid, block: this.#block, start, end: this.#used };
    } else {
      slot.zxid = zxid;
      slot.block = this.#block;
      slot.start = start;
      slot.end = this.#used;
    }
    this.#count++;
    this.#bytes += length;
    while (this.#bytes > this.#bytesMax) this.#dropOldest();
  }

  /** The kept entries, oldest first. */
  entries(): HistoryEntry[] {
    return Array.from({ length: this.#count }, (_, i) => {
      const { zxid, block, start, end } = this.#slots[(this.#first + i) % this.countMax]!;
      return { zxid, payload: block.subarray(start, end) };
    });
  }

  #dropOldest(): void {
    const slot = this.#slots[this.#first]!;
    this.#bytes -= slot.end - slot.start;
    slot.block = NOTHING;
    slot.start = 0;
    slot.end = 0;
    this.#first = (this.#first + 1) % this.countMax;
    this.#count--;
  }
}

const NOTHING = new Uint8Array(0);
