/**
 * What is known of many paths over time, and the newest moment at which all of them are known.
 *
 *            published                                 limit: all events up to here have arrived
 *               │                                        │
 *     /a   v────┼───────────v───────────?────────v───────┼     ?: it changed here, and the value was not seen
 *     /b   v────┼─────────────────────────────v──────────┼
 *     /c   v────┼──────────────────────────────────?─────┼     still to be read
 *               │                                  │
 *               └──────── zxids ───────────────► here all three are known: this is published next
 *
 * A zxid names the tree as it was after that txn, and all before it, had been applied. A value that was overwritten
 * before it was read leaves zxids that can never be published; the image skips them, from one known moment to a later
 * one.
 */

/** A change of one path between two published moments. */
export interface Difference<T> {
  readonly path: string;
  /** null: there was nothing. */
  readonly before: T | null;
  /** null: there is nothing now. */
  readonly after: T | null;
}

/** The value from `zxid` on, until the next version: null for nothing, undefined for "not known". */
interface Version<T> {
  readonly zxid: bigint;
  value: T | null | undefined;
}

export class Timeline<T> {
  readonly #sinceOf: (value: T) => bigint;
  #zxid = -1n;
  readonly #published: Map<string, T> = new Map();
  /** What is known of the time after `#zxid`, oldest first, at most one entry per zxid. No path has an empty list. */
  readonly #later: Map<string, Version<T>[]> = new Map();
  /** The range of zxids in which changes may have gone unreported; the end is null while it is not known. */
  #blind: { readonly from: bigint; readonly to: bigint | null } | null = null;

  /** @param sinceOf the zxid since which a value has been there */
  constructor(sinceOf: (value: T) => bigint) {
    this.#sinceOf = sinceOf;
  }

  /** Of what is published; −1 before the first publication. */
  get zxid(): bigint {
    return this.#zxid;
  }

  /** Published, by path. */
  get values(): ReadonlyMap<string, T> {
    return this.#published;
  }

  /** Everything known is published. */
  get isSettled(): boolean {
    return this.#later.size === 0 && this.#blind === null;
  }

  /** Paths that have, or may have, a value. */
  paths(): Set<string> {
    return new Set([...this.#published.keys(), ...this.#later.keys()]);
  }

  /** The newest known state of a path: null for nothing, undefined when it has to be read. */
  newest(path: string): T | null | undefined {
    const versions = this.#later.get(path);
    if (versions !== undefined) return versions[versions.length - 1]!.value;
    return this.#published.get(path) ?? null;
  }

  /** The newest value that was read there; null when it is gone, or never existed. */
  newestSeen(path: string): T | null {
    const versions = this.#later.get(path) ?? [];
    for (let i = versions.length - 1; i >= 0; i--) {
      const { value } = versions[i]!;
      if (value !== undefined) return value;
    }
    return this.#published.get(path) ?? null;
  }

  /** It was written at `zxid`, and has to be read. */
  onChanged(path: string, zxid: bigint): void {
    this.#put(path, zxid, undefined);
  }

  /** It was written after the newest known state, at an unknown zxid, and has to be read. */
  onOutdated(path: string): void {
    if (this.newest(path) === undefined) return;
    this.#put(path, (this.#later.get(path)?.at(-1)?.zxid ?? this.#zxid) + 1n, undefined);
  }

  onDeleted(path: string, zxid: bigint): void {
    this.#put(path, zxid, null);
  }

  /** From `from` on changes may have been missed: the current state is no longer known. */
  onBlind(from: bigint): void {
    this.#blind = { from: this.#blind === null || this.#blind.from > from ? from : this.#blind.from, to: null };
    for (const path of this.paths()) if (this.newest(path) !== null) this.#put(path, from, undefined);
  }

  /** Changes from `to` on are reported again. */
  onSight(to: bigint): void {
    if (this.#blind?.to === null) this.#blind = { from: this.#blind.from, to };
  }

  /**
   * A value was found at a path.
   *
   * @param now the zxid up to which it is certain that no other change of this path has been reported since the request
   *   was sent; null when one has, so that the value says nothing of the present
   */
  onFound(path: string, value: T, now: bigint | null): void {
    const since = this.#sinceOf(value);
    const published = this.#published.get(path);
    const isPublished = published !== undefined && this.#sinceOf(published) === since;
    // It existed already at the published moment, and is not in the image: it becomes part of the next one.
    if (!isPublished) this.#put(path, since > this.#zxid ? since : this.#zxid + 1n, value);
    if (now === null) return;
    // It has been there since `since`: the later marks stand for this value.
    for (const version of this.#later.get(path) ?? []) {
      if (version.value === undefined && version.zxid >= since) version.value = value;
    }
  }

  /** Nothing was found at a path. When it was deleted is not known unless a deletion was reported. */
  onMissing(path: string, now: bigint | null): void {
    if (now === null || this.newest(path) === null) return;
    this.#put(path, now, null);
    // There is nothing until a change is reported, also where a mark already stands for something after `now`.
    for (const version of this.#later.get(path) ?? []) {
      if (version.value === undefined && version.zxid > now) version.value = null;
    }
  }

  /**
   * Advances to the newest known moment, at most `limit`.
   *
   * @returns the differences from the last one; null when there is no newer moment
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

  /** Walks back from the limit over every interval in which something is unknown. */
  #newestKnown(limit: bigint): bigint {
    const unknown: { readonly from: bigint; readonly to: bigint | null }[] = [];
    if (this.#blind !== null) unknown.push(this.#blind);
    for (const versions of this.#later.values()) {
      for (const [i, { zxid, value }] of versions.entries()) {
        if (value === undefined) unknown.push({ from: zxid, to: versions[i + 1]?.zxid ?? null });
      }
    }
    // Latest end first: once an interval ends before the candidate moment, so do all that follow.
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

/** The number of versions up to `zxid`. There are few, and the result is usually near the end. */
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
