import { AncestorIndex } from '../tree/ancestor-index.ts';
import { ShardedMap } from '../tree/sharded-map.ts';

/** How long a watch lasts and what it covers; a connection may hold several at one path. */
export const WatchMode = { standard: 1, persistent: 2, recursive: 4 } as const;

/** Who is told of an event, each once, in the order of their watches. */
export interface Told<W> {
  readonly size: number;
  keys(): Iterable<W>;
  has(watcher: W): boolean;
}

/** What one watcher watches at one path. */
interface Watch<W> {
  readonly path: string;
  readonly owner: Owner<W>;
  modes: number;
  /** The watches of the same owner, a list without an order. */
  next: Watch<W> | null;
  previous: Watch<W> | null;
}

/** A watcher and all its watches. */
class Owner<W> {
  readonly watcher: W;
  first: Watch<W> | null = null;
  count = 0;
  /** It is told nothing any more; what is left of its watches is swept away. */
  isGone = false;

  constructor(watcher: W) {
    this.watcher = watcher;
  }
}

/** The watches at a path: most often one. */
type AtPath<W> = Watch<W> | Map<W, Watch<W>>;

/**
 * Who watches which path: one of the two tables of the watch manager (WatchManager, WatchStats).
 *
 *     paths:  '/a' ─► watch ◄─┐        '/b' ─► { watcher: watch, watcher: watch ◄─┐ }
 *     owners: watcher ────────┴─────────────────────────────────────────────────┴─ …
 *
 * An entry is (path, watcher) with a set of modes; adding is a union, an event takes away only `standard`, and the
 * entry goes when no mode is left.
 *
 * A watcher that goes may have a million watches. It is told nothing from then on and counts no more, but its watches go
 * step by step (`sweep`).
 */
export class WatchTable<W> {
  readonly #paths: ShardedMap<AtPath<W>> = new ShardedMap();
  readonly #owners = new Map<W, Owner<W>>();
  /** Those that are gone, and still have watches here. */
  readonly #gone: Owner<W>[] = [];
  readonly #recursive = new AncestorIndex<Watch<W>>();
  #count = 0;
  #watcherCount = 0;
  #goneCount = 0;

  /** Entries, counted once however many modes they have. */
  get count(): number {
    return this.#count;
  }

  /** Paths that are watched, those included whose watchers are gone and not swept away yet. */
  get pathCount(): number {
    return this.#paths.size;
  }

  get watcherCount(): number {
    return this.#watcherCount;
  }

  /** Entries of watchers that are gone. */
  get goneCount(): number {
    return this.#goneCount;
  }

  /** Paths with a recursive watch. */
  get recursiveCount(): number {
    return this.#recursive.size;
  }

  /** True while there is something to sweep away. */
  get hasGone(): boolean {
    return this.#gone.length > 0;
  }

  add(path: string, watcher: W, mode: number): void {
    const owner = this.#ownerOf(watcher);
    const there = this.#paths.get(path);
    const known = there === undefined ? null : watchOf(there, watcher);
    if (known !== null) {
      if ((mode & ~known.modes & WatchMode.recursive) !== 0) this.#recursive.add(path, known);
      known.modes |= mode;
      return;
    }
    const watch: Watch<W> = { path, owner, modes: mode, next: owner.first, previous: null };
    if (owner.first !== null) owner.first.previous = watch;
    owner.first = watch;
    if (owner.count++ === 0) this.#watcherCount++;
    this.#count++;
    if ((mode & WatchMode.recursive) !== 0) this.#recursive.add(path, watch);
    if (there === undefined) this.#paths.set(path, watch);
    else if (there instanceof Map) there.set(watcher, watch);
    else
      this.#paths.set(
        path,
        new Map([
          [there.owner.watcher, there],
          [watcher, watch],
        ]),
      );
  }

  /** @returns true when one of the modes was there */
  remove(path: string, watcher: W, modes: number): boolean {
    const there = this.#paths.get(path);
    const watch = there === undefined ? null : watchOf(there, watcher);
    if (there === undefined || watch === null || (watch.modes & modes) === 0) return false;
    if ((watch.modes & modes & WatchMode.recursive) !== 0) this.#recursive.delete(path, watch);
    watch.modes &= ~modes;
    if (watch.modes !== 0) return true;
    this.#forget(watch);
    this.#take(watch, there);
    return true;
  }

  has(path: string, watcher: W, modes: number): boolean {
    const there = this.#paths.get(path);
    return there !== undefined && ((watchOf(there, watcher)?.modes ?? 0) & modes) !== 0;
  }

  /** The connection is gone, and its watches with it. */
  removeWatcher(watcher: W): void {
    const owner = this.#owners.get(watcher);
    if (owner === undefined) return;
    this.#owners.delete(watcher);
    owner.isGone = true;
    this.#count -= owner.count;
    this.#goneCount += owner.count;
    if (owner.count === 0) return;
    this.#watcherCount--;
    this.#gone.push(owner);
    if (owner.count <= SWEPT_AT_ONCE) this.#sweepOwner(owner, owner.count);
    if (owner.first === null) this.#gone.pop();
  }

  /** Takes away up to so many watches of watchers that are gone. */
  sweep(count: number): void {
    for (let left = count; left > 0 && this.#gone.length > 0; ) {
      const owner = this.#gone[this.#gone.length - 1]!;
      left -= this.#sweepOwner(owner, left);
      if (owner.first === null) this.#gone.pop();
    }
  }

  /**
   * Finds who must be told of an event at `path` and uses up their one-shot watches.
   *
   * Watchers of the path itself are told whatever their mode, those of its ancestors when their watch is recursive;
   * each once.
   *
   * @returns the watchers, or null when there are none; it stays as it is, whatever watches come and go meanwhile
   */
  trigger(path: string): Told<W> | null {
    const own = this.#useUp(path);
    if (this.#recursive.size === 0) return own;
    const above = this.#recursive.above(path);
    if (above.length === 0) return own;
    const told = new Set<W>(own?.keys());
    for (const { owner } of above) if (!owner.isGone) told.add(owner.watcher);
    return told.size === 0 ? null : told;
  }

  /** Who watches each path. */
  *paths(): IterableIterator<[string, Iterable<W>]> {
    for (const [path, there] of this.#paths.entries()) {
      if (there instanceof Map) {
        const watchers = [...there.values()].filter(({ owner }) => !owner.isGone).map(({ owner }) => owner.watcher);
        if (watchers.length > 0) yield [path, watchers];
      } else if (!there.owner.isGone) yield [path, [there.owner.watcher]];
    }
  }

  *watchers(): IterableIterator<[W, Iterable<string>]> {
    for (const [watcher, owner] of this.#owners) if (owner.count > 0) yield [watcher, pathsOf(owner)];
  }

  /** Takes the one-shot watches at a path away. @returns who watches it, those that stay included */
  #useUp(path: string): Told<W> | null {
    const there = this.#paths.get(path);
    if (there === undefined) return null;
    if (!(there instanceof Map)) {
      const { owner } = there;
      if (this.#useUpOne(there)) this.#paths.delete(path);
      return owner.isGone ? null : new OneTold(owner.watcher);
    }
    let staying: Map<W, Watch<W>> | null = null;
    let hasGone = false;
    for (const watch of there.values()) {
      if (watch.owner.isGone) hasGone = true;
      if (this.#useUpOne(watch)) continue;
      staying ??= new Map();
      staying.set(watch.owner.watcher, watch);
    }
    // The path gets a map anew, with those who stay; the old one is for the caller.
    if (staying === null) this.#paths.delete(path);
    else this.#paths.set(path, staying);
    if (hasGone) for (const [watcher, { owner }] of there) if (owner.isGone) there.delete(watcher);
    return there.size === 0 ? null : there;
  }

  /** @returns true when nothing is left of the watch */
  #useUpOne(watch: Watch<W>): boolean {
    if (watch.modes !== WatchMode.standard) {
      watch.modes &= ~WatchMode.standard;
      return false;
    }
    this.#forget(watch);
    return true;
  }

  /** Takes a watch out of the list of its owner. */
  #forget(watch: Watch<W>): void {
    const { owner, next, previous } = watch;
    if (previous === null) owner.first = next;
    else previous.next = next;
    if (next !== null) next.previous = previous;
    owner.count--;
    if (owner.isGone) {
      this.#goneCount--;
      return;
    }
    this.#count--;
    if (owner.count === 0) this.#watcherCount--;
  }

  /** Takes a watch out of what is there at its path. */
  #take(watch: Watch<W>, there: AtPath<W>): void {
    const { path, owner } = watch;
    if (!(there instanceof Map)) {
      this.#paths.delete(path);
      return;
    }
    there.delete(owner.watcher);
    if (there.size === 0) this.#paths.delete(path);
  }

  /** @returns how many it has taken away */
  #sweepOwner(owner: Owner<W>, count: number): number {
    let swept = 0;
    for (let watch = owner.first; watch !== null && swept < count; watch = owner.first) {
      if ((watch.modes & WatchMode.recursive) !== 0) this.#recursive.delete(watch.path, watch);
      this.#forget(watch);
      const there = this.#paths.get(watch.path);
      if (there !== undefined) this.#take(watch, there);
      swept++;
    }
    return swept;
  }

  #ownerOf(watcher: W): Owner<W> {
    let owner = this.#owners.get(watcher);
    if (owner === undefined) {
      owner = new Owner(watcher);
      this.#owners.set(watcher, owner);
    }
    return owner;
  }
}

/** Watches that go at once with their watcher. */
const SWEPT_AT_ONCE = 64;

class OneTold<W> implements Told<W> {
  readonly size = 1;
  readonly #watcher: W;

  constructor(watcher: W) {
    this.#watcher = watcher;
  }

  keys(): Iterable<W> {
    return [this.#watcher];
  }

  has(watcher: W): boolean {
    return watcher === this.#watcher;
  }
}

function watchOf<W>(there: AtPath<W>, watcher: W): Watch<W> | null {
  if (there instanceof Map) return there.get(watcher) ?? null;
  return there.owner.watcher === watcher ? there : null;
}

function* pathsOf<W>(owner: Owner<W>): IterableIterator<string> {
  for (let watch = owner.first; watch !== null; watch = watch.next) yield watch.path;
}
