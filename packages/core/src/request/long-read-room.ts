/** Who waits for room. */
export interface RoomGuest {
  /** Wants to be asked in one of the next turns whether it can go on. */
  awaitTurn(): void;
}

/**
 * Room for the replies that are being built over several turns, those of all connections together: what they hold in
 * memory, and how many look at each change of the tree meanwhile.
 *
 *     enter ──► room? ──► inside ──► goes on while all hold little, or as the one that has been inside for longest ──► leave
 *        └────► waits, first come first served ──┘
 *
 * Who is inside longest always goes on, so that all come to their end.
 */
export class LongReadRoom {
  readonly #guestsMax: number;
  readonly #bytesMax: number;
  /** Those inside, and what they hold; the longest first. */
  readonly #inside: Map<RoomGuest, number> = new Map();
  readonly #waiting: Set<RoomGuest> = new Set();
  #bytes = 0;

  constructor(guestsMax: number = GUESTS_MAX, bytesMax: number = BYTES_MAX) {
    this.#guestsMax = guestsMax;
    this.#bytesMax = bytesMax;
  }

  /** @returns true when it is inside; otherwise it waits, and is told when there is room */
  enter(guest: RoomGuest): boolean {
    if (this.#inside.has(guest)) return true;
    const isFull = this.#inside.size >= this.#guestsMax || this.#bytes >= this.#bytesMax || this.#waiting.size > 0;
    if (isFull) this.#waiting.add(guest);
    else this.#inside.set(guest, 0);
    return !isFull;
  }

  /** True when it is inside. */
  has(guest: RoomGuest): boolean {
    return this.#inside.size > 0 && this.#inside.has(guest);
  }

  /** Whether one that is inside may make its reply longer now. */
  mayGoOn(guest: RoomGuest): boolean {
    if (this.#bytes < this.#bytesMax) return true;
    const [oldest] = this.#inside.keys();
    return oldest === guest;
  }

  /** @param bytes that its reply has now */
  hold(guest: RoomGuest, bytes: number): void {
    const before = this.#inside.get(guest);
    if (before === undefined) return;
    this.#bytes += bytes - before;
    this.#inside.set(guest, bytes);
  }

  /** It has its reply, or wants none any more. */
  leave(guest: RoomGuest): void {
    // Nearly always: short reads ask, too.
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
      next.awaitTurn();
    }
  }
}

/** It waits, and has not begun. */
export const NO_ROOM: unique symbol = Symbol('no room');

/** Reads that go on at the same time; each is a multiRead of `multiRead.maxReplyBytes` at most, or the names of one znode. */
const GUESTS_MAX = 16;
/** Bytes of unfinished replies from which on only the oldest goes on. */
const BYTES_MAX = 64 * 1024 * 1024;
