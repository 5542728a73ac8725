import type { PeerAddress } from '../base/ports.ts';

/**
 * Connections that have not identified themselves, grouped by the address that they come from.
 *
 * When there are too many, the oldest connection of the address with the most connections is closed. So a client that
 * keeps connecting from one address only replaces its own connections; if strangers come from many addresses, the
 * oldest are closed first. A new connection that identifies itself at once keeps its place either way.
 */
export class UnidentifiedConnections<T> implements Iterable<T> {
  /** The address of each; the oldest first. */
  readonly #placeOf = new Map<T, string>();
  readonly #ofPlace = new Map<string, Set<T>>();
  /**
   * Addresses by their number of strangers, if there are any. With equal counts, the address that reached the count
   * first comes first.
   */
  readonly #placesByCount = new Map<number, Set<string>>();
  /** The highest of those counts. */
  #most = 0;

  get size(): number {
    return this.#placeOf.size;
  }

  /** The oldest first. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#placeOf.keys();
  }

  has(stranger: T): boolean {
    return this.#placeOf.has(stranger);
  }

  add(stranger: T, from: PeerAddress): void {
    const place = placeOf(from);
    const others = this.#ofPlace.get(place) ?? new Set();
    this.#placeOf.set(stranger, place);
    this.#ofPlace.set(place, others.add(stranger));
    this.#move(place, others.size - 1, others.size);
  }

  /** @returns false when it was not in the set */
  delete(stranger: T): boolean {
    const place = this.#placeOf.get(stranger);
    if (place === undefined) return false;
    this.#placeOf.delete(stranger);
    const others = this.#ofPlace.get(place)!;
    others.delete(stranger);
    if (others.size === 0) this.#ofPlace.delete(place);
    this.#move(place, others.size + 1, others.size);
    return true;
  }

  /** @returns the one to close, which stays in the set; null when the set is empty */
  choose(): T | null {
    for (const place of this.#placesByCount.get(this.#most) ?? []) {
      for (const oldest of this.#ofPlace.get(place)!) return oldest;
    }
    return null;
  }

  #move(place: string, from: number, to: number): void {
    const left = this.#placesByCount.get(from);
    left?.delete(place);
    if (left?.size === 0) this.#placesByCount.delete(from);
    if (to > 0) this.#placesByCount.set(to, (this.#placesByCount.get(to) ?? new Set()).add(place));
    if (to > this.#most || (from === this.#most && !this.#placesByCount.has(from))) this.#most = to;
  }
}

/** A host with one IPv6 address controls all addresses with the same first 64 bits. */
function placeOf({ ip, host }: PeerAddress): string {
  return ip.length === 16 ? ip.subarray(0, 8).join('.') : host;
}
