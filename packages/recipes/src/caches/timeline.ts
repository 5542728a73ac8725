/**
 * What is known of many things over time, and the newest moment at which all of them are known.
 *
 *            published                                 limit: all events up to here have come
 *               │                                        │
 *     /a   v────┼───────────v───────────?────────v───────┼     ?: it changed here, and no client has seen the value
 *     /b   v────┼─────────────────────────────v──────────┼
 *     /c   v────┼──────────────────────────────────?─────┼     still to be read
 *               │                                  │
 *               └──────── zxids ───────────────► here all three are known: this is published next
 *
 * A zxid names the tree as it was when that txn, and all before it, had been applied. A value that was overwritten
 * before any client read it leaves zxids that can never be named; the picture goes past them, from one moment that is known
 * to a later one.
 */

/** A change of one path between two published moments. */
export interface Difference<T> {
  readonly path: string;
  /** null: there was nothing. */
  readonly before: T | null;
  /** null: there is nothing any more. */
  readonly after: T | null;
}

/** From `zxid` on it was this: a value, null for nothing, undefined for "not known". Until the next version. */
interface Version<T> {
  readonly zxid: bigint;
  value: T | null | undefined;
}

export class Timeline<T> {
  readonly #sinceOf: (value: T) => bigint;
  #zxid = -1n;
  readonly #published: Map<string, T> = new Map();
  /** What is known of the time after `#zxid`, oldest first, no two of one zxid. No path without any. */
  readonly #later: Map<string, Version<T>[]> = new Map();
  /** From and up to where changes may have happened that were not reported; the end is null while it is not known. */
  #blind: { readonly from: bigint; readonly to: bigint | null } | null = null;

  /** @param sinceOf the zxid from which on a value was there */
  constructor(sinceOf: (value: T) => bigint) {
    this.#sinceOf = sinceOf;
  }

  /** Of what is published; −1 before the first time. */
  get zxid(): bigint {
    return this.#zxid;
  }

  /** Published, by path. */
  get values(): ReadonlyMap<string, T> {
    return this.#published;
  }

  /** Nothing is known that is not published. */
  get isSettled(): boolean {
    return this.#later.size === 0 && this.#blind === null;
  }

  /** Paths at which there was something, or may be. */
  paths(): Set<string> {
    return new Set([...this.#published.keys(), ...this.#later.keys()]);
  }

  /** The newest that is known of a path: null when there is nothing, undefined when it has to be looked at. */
  newest(path: string): T | null | undefined {
    const versions = this.#later.get(path);
    if (versions !== undefined) return versions[versions.length - 1]!.value;
    return this.#published.get(path) ?? null;
  }

  /** The newest value that any client has seen there; null when it is gone, or never was. */
  newestSeen(path: string): T | null {
    const versions = this.#later.get(path) ?? [];
    for (let i = versions.length - 1; i >= 0; i--) {
      const { value } = versions[i]!;
      if (value !== undefined) return value;
    }
    return this.#published.get(path) ?? null;
  }

  /** It was written at `zxid`, and is to be looked at. */
  onChanged(path: string, zxid: bigint): void {
    this.#put(path, zxid, undefined);
  }

  /** It was written again after the newest that is known of it, at an unknown time, and is to be looked at. */
  onOutdated(path: string): void {
    if (this.newest(path) === undefined) return;
    this.#put(path, (this.#later.get(path)?.at(-1)?.zxid ?? this.#zxid) + 1n, undefined);
  }

  onDeleted(path: string, zxid: bigint): void {
    this.#put(path, zxid, null);
  }

  /** From `from` on changes may have been missed: nothing is known any more of what is there. */
  onBlind(from: bigint): void {
    this.#blind = { from: this.#blind === null || this.#blind.from > from ? from : this.#blind.from, to: null };
    for (const path of this.paths()) if (this.newest(path) !== null) this.#put(path, from, undefined);
  }

  /** Whatever happens from `to` on is reported again. */
  onSight(to: bigint): void {
    if (this.#blind?.to === null) this.#blind = { from: this.#blind.from, to };
  }

  /**
   * Something was found at a path.
   *
   * @param now the zxid up to which it is certain that no other change of this path has been reported since the server was
   *   asked; null when one has, so that this says nothing of the present
   */
  onFound(path: string, value: T, now: bigint | null): void {
    const since = this.#sinceOf(value);
    const published = this.#published.get(path);
    const isPublished = published !== undefined && this.#sinceOf(published) === since;
    // What was there already at the published moment, and is not in the picture: it becomes part of the next one.
    if (!isPublished) this.#put(path, since > this.#zxid ? since : this.#zxid + 1n, value);
    if (now === null) return;
    // It has been there since `since`: that is what the marks behind that stand for.
    for (const version of this.#later.get(path) ?? []) {
      if (version.value === undefined && version.zxid >= since) version.value = value;
    }
  }

  /** Nothing was found at a path. When it went is not known unless a deletion was reported. */
  onMissing(path: string, now: bigint | null): void {
    if (now === null || this.newest(path) === null) return;
    this.#put(path, now, null);
    // Nothing is there until something is reported, also where a mark stands already for what comes behind `now`.
    for (const version of this.#later.get(path) ?? []) {
      if (version.value === undefined && version.zxid > now) version.value = null;
    }
  }

  /**
   * Continues to the newest moment that is known, at most `limit`.
   *
   * @returns what is different since the last one; null when there is no newer moment
   */
  publish(limit: bigint): Difference<T>[] | null {
    const zxid = this.#newestKnown(limit);
    if (zxid <= this.#zxid) return null;
    const differences: Difference<T>[] = [];
    for (const [path, versions] of this.#later) {
      const count = countUpTo(versions, zxid);
      if (count === 0) continue;
      const after = versions[count - 1]!.value ?? null;
      const before = this.#published.get(path) ?? null;
      versions.splice(0, count);
      if (versions.length === 0) this.#later.delete(path);
      if (after === null) this.#published.delete(path);
      else this.#published.set(path, after);
      const isSame = before === null || after === null ? before === after : this.#isOneVersion(before, after);
      if (!isSame) differences.push({ path, before, after });
    }
    this.#zxid = zxid;
    if (this.#blind !== null && this.#blind.to !== null && zxid >= this.#blind.to) this.#blind = null;
    return differences;
  }

  #isOneVersion(a: T, b: T): boolean {
    return this.#sinceOf(a) === this.#sinceOf(b);
  }

  /** Walks back from the limit over every stretch of time of which something is not known. */
  #newestKnown(limit: bigint): bigint {
    const unknown: { readonly from: bigint; readonly to: bigint | null }[] = [];
    if (this.#blind !== null) unknown.push(this.#blind);
    for (const versions of this.#later.values()) {
      for (const [i, { zxid, value }] of versions.entries()) {
        if (value === undefined) unknown.push({ from: zxid, to: versions[i + 1]?.zxid ?? null });
      }
    }
    // Latest end first: what ends before the moment that was found, and all behind it in this order, is in its past.
    unknown.sort((a, b) => compareEnds(b.to, a.to));
    let zxid = limit;
    for (const { from, to } of unknown) {
      if (to !== null && to <= zxid) break;
      if (from <= zxid) zxid = from - 1n;
    }
    return zxid;
  }

  #put(path: string, zxid: bigint, value: T | null | undefined): void {
    if (zxid <= this.#zxid) return;
    const versions = this.#later.get(path);
    if (versions === undefined) {
      this.#later.set(path, [{ zxid, value }]);
      return;
    }
    const count = countUpTo(versions, zxid);
    const last = versions[count - 1];
    if (last !== undefined && last.zxid === zxid) last.value = value;
    else versions.splice(count, 0, { zxid, value });
  }
}

/** How many of the versions are not behind `zxid`. Few are there, and what is asked for is near the end. */
function countUpTo(versions: readonly Version<unknown>[], zxid: bigint): number {
  let count = versions.length;
  while (count > 0 && versions[count - 1]!.zxid > zxid) count--;
  return count;
}

/** null is the end of time. */
function compareEnds(a: bigint | null, b: bigint | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
