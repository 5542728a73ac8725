import type { PendingZnode } from './pending-znode.ts';

/**
 * The pending znodes by path: open addressing in one array; deleted entries are cleared at once.
 *
 * Not a Map: when a constantly changing Map rehashes, its old table keeps its entries alive until the old generation is
 * collected, and with them thousands of objects that would have died young. That cost a third of the time of a write.
 */
export class PendingIndex {
  /** The length is a power of two; linear probing from the low bits of the hash. */
  #slots: (PendingZnode | null)[] = new Array<PendingZnode | null>(SLOTS_MIN).fill(null);
  #size = 0;

  get(hash: number, path: string): PendingZnode | null {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const znode = slots[at]!;
      if (znode === null || (znode.hash === hash && znode.path === path)) return znode;
    }
  }

  /** @returns the replaced znode with the same path; null when there was none */
  set(znode: PendingZnode): PendingZnode | null {
    if ((this.#size + 1) * 2 > this.#slots.length) this.#grow();
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = znode.hash & mask;
    for (let there = slots[at]!; there !== null; there = slots[at]!) {
      if (there.hash === znode.hash && there.path === znode.path) break;
      at = (at + 1) & mask;
    }
    const before = slots[at]!;
    if (before === null) this.#size++;
    slots[at] = znode;
    return before;
  }

  /** Deletes this very object; one that has replaced it stays. */
  delete(znode: PendingZnode): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let hole = znode.hash & mask;
    while (slots[hole] !== znode) {
      if (slots[hole] === null) return;
      hole = (hole + 1) & mask;
    }
    // Entries after the hole move into it, unless that would put them before their first slot.
    for (let at = (hole + 1) & mask; slots[at] !== null; at = (at + 1) & mask) {
      const first = slots[at]!.hash & mask;
      if (((at - first) & mask) < ((at - hole) & mask)) continue;
      slots[hole] = slots[at]!;
      hole = at;
    }
    slots[hole] = null;
    this.#size--;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Array<PendingZnode | null>(old.length * 2).fill(null);
    this.#size = 0;
    for (const znode of old) if (znode !== null) this.set(znode);
    old.fill(null);
  }
}

const SLOTS_MIN = 256;
