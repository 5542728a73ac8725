import type { PeerAddress } from '../base/ports.ts';

/**
 * Connections that have not said who they are, by the address from which they come.
 *
 * When there are too many, one of the address that has the most of them has to go, its oldest. So whoever comes from one
 * address again and again takes the place of his own connections and of nobody else's; if strangers come from many
 * addresses, the oldest go first. A newcomer that says at once who it is keeps its place either way.
 */
export class Strangers<T> implements Iterable<T> {
  /** Where each comes from; the oldest first. */
  readonly #placeOf = new Map<T, string>();
  readonly #ofPlace = new Map<string, Set<T>>();
  /** Places that have so many strangers, where there are any. Of two the one is first that has had so many for longer. */
  readonly #placesByCount = new Map<number, Set<string>>();
  /** The greatest of those counts. */
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

  /** @returns false when it was none */
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

  /** @returns the one that has to go, which stays here; null when there is none */
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

/** Who has one address of IPv6 has all that share its first 64 bits. */
function placeOf({ ip, host }: PeerAddress): string {
  return ip.length === 16 ? ip.subarray(0, 8).join('.') : host;
}
