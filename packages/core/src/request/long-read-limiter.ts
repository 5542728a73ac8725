/** A client with a long read. */
export interface LongReader {
  /** Asks to be resumed in one of the next turns. */
  yieldTurn(): void;
}

/**
 * Limits the long reads of all connections together: the memory of their unfinished replies, and how many of them check
 * each change of the tree.
 *
 *     enter ──► room? ──► inside ──► continues while total memory is below the limit, or if it is the oldest ──► leave
 *        └────► waits, first come first served ──┘
 *
 * The oldest one inside can always continue, so every read finishes.
 */
export class LongReadLimiter {
  readonly #guestsMax: number;
  readonly #bytesMax: number;
  /** Those inside with the bytes that they hold; the oldest first. */
  readonly #inside: Map<LongReader, number> = new Map();
  readonly #waiting: Set<LongReader> = new Set();
  #bytes = 0;

  constructor(guestsMax: number = GUESTS_MAX, bytesMax: number = BYTES_MAX) {
    this.#guestsMax = guestsMax;
    this.#bytesMax = bytesMax;
  }

  /** @returns true when it is inside; otherwise it waits, and `yieldTurn` is called when there is room */
  enter(guest: LongReader): boolean {
    if (this.#inside.has(guest)) return true;
    const isFull = this.#inside.size >= this.#guestsMax || this.#bytes >= this.#bytesMax || this.#waiting.size > 0;
    if (isFull) this.#waiting.add(guest);
    else this.#inside.set(guest, 0);
    return !isFull;
  }

  /** True when it is inside. */
  has(guest: LongReader): boolean {
    return this.#inside.size > 0 && this.#inside.has(guest);
  }

  /** Whether a guest inside may extend its reply now. */
  mayContinue(guest: LongReader): boolean {
    if (this.#bytes < this.#bytesMax) return true;
    const [oldest] = this.#inside.keys();
    return oldest === guest;
  }

  /** @param bytes current size of its reply */
  hold(guest: LongReader, bytes: number): void {
    const before = this.#inside.get(guest);
    if (before === undefined) return;
    this.#bytes += bytes - before;
    this.#inside.set(guest, bytes);
  }

  /** Its read is answered or cancelled. */
  leave(guest: LongReader): void {
    // The common case: also called for short reads.
    if (this.#inside.size === 0) return;
    this.#waiting.delete(guest);
    const bytes = this.#inside.get(guest);
    if (bytes === undefined) return;
    this.#inside.delete(guest);
    this.#bytes -= bytes;
    for (const next of this.#waiting) {
      if (this.#inside.size >= this.#guestsMax || this.#bytes >= this.#bytesMax) return;
      this.#waiting.delete(next);
      this.#inside.set(next, 0);
      next.yieldTurn();
    }
  }
}

/** The read waits for room and has not begun. */
export const NO_ROOM: unique symbol = Symbol('no room');

/** Concurrent long reads; each is a multiRead of at most `multiRead.maxReplyBytes`, or the child names of one znode. */
const GUESTS_MAX = 16;
/** Bytes of unfinished replies at which only the oldest may continue. */
const BYTES_MAX = 64 * 1024 * 1024;
