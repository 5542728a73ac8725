/**
 * The content of a file of the memory disk, twice: the current one, and the one after a power cut.
 *
 *     write ─► pages (what a read returns) ──sync──► durable pages (what a power cut leaves)
 *                  └ dirty units of 512 bytes: each may or may not survive a power cut
 *
 * Pages that were never written are not stored and read as zeros, so a file grown by 64 MiB costs nothing.
 */
import type { Random } from '../base/ports.ts';

const PAGE_BYTES = 4096;
/** A device writes this much atomically. */
const UNIT_BYTES = 512;

/** What a power cut leaves of unsynced changes: nothing, everything, or a random part. */
export type Survivors = 'nothing' | 'everything' | Random;

export function survives(survivors: Survivors): boolean {
  if (survivors === 'nothing') return false;
  return survivors === 'everything' || (survivors.uint32() & 1) === 1;
}

export class MemoryFile {
  size = 0;
  /** The size once every requested effect has been performed. */
  plannedSize = 0;
  readonly #pages: Map<number, Uint8Array> = new Map();
  readonly #durablePages: Map<number, Uint8Array> = new Map();
  #durableSize = 0;
  /** Bits of the dirty units of each page. */
  readonly #dirty: Map<number, number> = new Map();
  /** The smallest size since the last sync: what is durable beyond it is removed by the next one. */
  #cutTo: number = Number.POSITIVE_INFINITY;

  read(position: number, length: number): Uint8Array {
    const end = Math.min(position + length, this.size);
    const bytes = new Uint8Array(Math.max(0, end - position));
    forEachPage(position, end, (page, from, to, at) => {
      const content = this.#pages.get(page);
      if (content !== undefined) bytes.set(content.subarray(from, to), at);
    });
    return bytes;
  }

  write(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    forEachPage(position, end, (page, from, to, at) => {
      let content = this.#pages.get(page);
      if (content === undefined) {
        content = new Uint8Array(PAGE_BYTES);
        this.#pages.set(page, content);
      }
      content.set(bytes.subarray(at, at + to - from), from);
      this.#markDirty(page, from, to);
    });
    this.size = Math.max(this.size, end);
  }

  grow(size: number): void {
    this.size = Math.max(this.size, size);
  }

  truncate(size: number): void {
    if (size < this.size) {
      this.#cutTo = Math.min(this.#cutTo, size);
      cut(this.#pages, size);
      for (const page of this.#dirty.keys()) if (page * PAGE_BYTES >= size) this.#dirty.delete(page);
    }
    this.size = size;
  }

  sync(): void {
    this.#settleSize(this.size);
    for (const page of this.#dirty.keys()) {
      const content = this.#pages.get(page)!;
      const durable = this.#durablePages.get(page);
      if (durable === undefined) this.#durablePages.set(page, content.slice());
      else durable.set(content);
    }
    this.#dirty.clear();
  }

  /**
   * A failed sync: the kernel marks the pages as clean but still returns their content, and a later successful sync
   * does not write them.
   */
  loseDirtyPages(): void {
    this.#dirty.clear();
  }

  /** Flips a bit in written data, in both contents. @returns false when nothing was written there */
  flipBit(position: number, bit: number): boolean {
    const page = Math.floor(position / PAGE_BYTES);
    const seen = this.#pages.get(page);
    if (seen === undefined) return false;
    const at = position - page * PAGE_BYTES;
    const mask = 1 << (bit & 7);
    seen[at] = (seen[at] ?? 0) ^ mask;
    const durable = this.#durablePages.get(page);
    if (durable !== undefined) durable[at] = (durable[at] ?? 0) ^ mask;
    return true;
  }

  /** A power cut: unsynced units survive or not, each on its own, and so does the size. */
  crash(survivors: Survivors): void {
    const cutTo = this.#cutTo;
    const isSizeKept = survives(survivors);
    if (isSizeKept) this.#settleSize(this.size);
    for (const [page, bits] of this.#dirty) {
      for (let unit = 0; unit < PAGE_BYTES / UNIT_BYTES; unit++) {
        if ((bits & (1 << unit)) === 0 || !survives(survivors)) continue;
        const from = unit * UNIT_BYTES;
        const position = page * PAGE_BYTES + from;
        // Data written after a truncation is in other places of the device than the old data.
        if (position >= this.#durableSize || (!isSizeKept && position >= cutTo)) continue;
        let content = this.#durablePages.get(page);
        if (content === undefined) {
          content = new Uint8Array(PAGE_BYTES);
          this.#durablePages.set(page, content);
        }
        content.set(this.#pages.get(page)!.subarray(from, from + UNIT_BYTES), from);
      }
    }
    cut(this.#durablePages, this.#durableSize);
    this.#pages.clear();
    for (const [page, content] of this.#durablePages) this.#pages.set(page, content.slice());
    this.size = this.#durableSize;
    this.plannedSize = this.size;
    this.#dirty.clear();
    this.#cutTo = Number.POSITIVE_INFINITY;
  }

  #settleSize(size: number): void {
    const kept = Math.min(this.#cutTo, size);
    // There is nothing to cut beyond the durable size.
    if (kept < this.#durableSize) cut(this.#durablePages, kept);
    this.#durableSize = size;
    this.#cutTo = Number.POSITIVE_INFINITY;
  }

  #markDirty(page: number, from: number, to: number): void {
    let bits = this.#dirty.get(page) ?? 0;
    for (let unit = Math.floor(from / UNIT_BYTES); unit * UNIT_BYTES < to; unit++) bits |= 1 << unit;
    this.#dirty.set(page, bits);
  }
}

/** Removes everything after `size`. */
function cut(pages: Map<number, Uint8Array>, size: number): void {
  for (const [page, content] of pages) {
    const start = page * PAGE_BYTES;
    if (start >= size) pages.delete(page);
    else if (start + PAGE_BYTES > size) content.fill(0, size - start);
  }
}

/** Visits the pages of a range: `from` and `to` inside the page, `at` inside the range. */
function forEachPage(
  start: number,
  end: number,
  visit: (page: number, from: number, to: number, at: number) => void,
): void {
  for (let at = start; at < end; ) {
    const page = Math.floor(at / PAGE_BYTES);
    const from = at - page * PAGE_BYTES;
    const to = Math.min(PAGE_BYTES, end - page * PAGE_BYTES);
    visit(page, from, to, at - start);
    at += to - from;
  }
}
