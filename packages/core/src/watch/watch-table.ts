import { AncestorIndex } from '../tree/ancestor-index.ts';
import { ShardedMap } from '../tree/sharded-map.ts';
import { NO_ROW, WatchRows } from './watch-rows.ts';

/** How long a watch lasts and what it covers; a connection may have several of them on one path. */
export const WatchMode = { standard: 1, persistent: 2, recursive: 4 } as const;

/** The watchers of an event, without duplicates, in the order of their watches. */
export interface WatcherSet<W> {
  readonly size: number;
  keys(): Iterable<W>;
  has(watcher: W): boolean;
}

/** A watcher and all its watches. */
class Owner<W> {
  readonly watcher: W;
  /** A row of `WatchRows`. */
  first: number = NO_ROW;
  count = 0;
  /** It gets no more events; its remaining watches are being swept. */
  isGone = false;

  constructor(watcher: W) {
    this.watcher = watcher;
  }
}

/** The watches on a path, as rows of `WatchRows`; usually one. */
type AtPath<W> = number | Map<W, number>;

/**
 * One of the two tables of the watch manager: watches by path and by watcher (WatchManager, WatchStats).
 *
 *     paths:  '/a' ─► row ◄─┐        '/b' ─► { watcher: row, watcher: row ◄─┐ }
 *     owners: watcher ──────┴───────────────────────────────────────────────┴─ …
 *
 * An entry is (path, watcher) with a set of modes. Adding is a union, an event removes only `standard`, and an entry
 * without modes is deleted.
 *
 * A removed watcher may have a million watches. It gets no more events and no longer counts, but its watches are
 * removed step by step (`sweep`).
 */
export class WatchTable<W> {
  readonly #rows: WatchRows<Owner<W>> = new WatchRows();
  readonly #paths: ShardedMap<AtPath<W>> = new ShardedMap();
  readonly #owners = new Map<W, Owner<W>>();
  /** Removed watchers that still have watches here. */
  readonly #gone: Owner<W>[] = [];
  readonly #recursive = new AncestorIndex<Owner<W>>();
  #count = 0;
  #watcherCount = 0;
  #goneCount = 0;

  /** Number of entries, regardless of their modes. */
  get count(): number {
    return this.#count;
  }

  /** Watched paths, including those with only removed watchers that are not yet swept. */
  get pathCount(): number {
    return this.#paths.size;
  }

  get watcherCount(): number {
    return this.#watcherCount;
  }

  /** Entries of removed watchers. */
  get goneCount(): number {
    return this.#goneCount;
  }

  /** Paths with a recursive watch. */
  get recursiveCount(): number {
    return this.#recursive.size;
  }

  /** True while there are entries to sweep. */
  get hasGone(): boolean {
    return this.#gone.length > 0;
  }

  add(path: string, watcher: W, mode: number): void {
    const rows = this.#rows;
    const owner = this.#ownerOf(watcher);
    const there = this.#paths.get(path);
    const known = there === undefined ? NO_ROW : this.#rowOf(there, watcher);
    if (known !== NO_ROW) {
      const modes = rows.modesOf(known);
      if ((mode & ~modes & WatchMode.recursive) !== 0) this.#recursive.add(path, owner);
      rows.setModes(known, modes | mode);
      return;
    }
    const row = rows.add(path, owner, mode, owner.first);
    if (owner.first !== NO_ROW) rows.setPrevious(owner.first, row);
    owner.first = row;
    if (owner.count++ === 0) this.#watcherCount++;
    this.#count++;
    if ((mode & WatchMode.recursive) !== 0) this.#recursive.add(path, owner);
    if (there === undefined) this.#paths.set(path, row);
    else if (there instanceof Map) there.set(watcher, row);
    else
      this.#paths.set(
        path,
        new Map([
          [rows.ownerOf(there).watcher, there],
          [watcher, row],
        ]),
      );
  }

  /** @returns true when the watcher had one of the modes */
  remove(path: string, watcher: W, modes: number): boolean {
    const there = this.#paths.get(path);
    const row = there === undefined ? NO_ROW : this.#rowOf(there, watcher);
    if (there === undefined || row === NO_ROW) return false;
    const held = this.#rows.modesOf(row);
    if ((held & modes) === 0) return false;
    if ((held & modes & WatchMode.recursive) !== 0) this.#recursive.delete(path, this.#rows.ownerOf(row));
    const left = held & ~modes;
    this.#rows.setModes(row, left);
    if (left !== 0) return true;
    this.#take(path, watcher, there);
    this.#forget(row);
    return true;
  }

  has(path: string, watcher: W, modes: number): boolean {
    const there = this.#paths.get(path);
    if (there === undefined) return false;
    const row = this.#rowOf(there, watcher);
    return row !== NO_ROW && (this.#rows.modesOf(row) & modes) !== 0;
  }

  /** Approximate number of watchers of an event at a path: some may be removed or counted twice. */
  countOf(path: string): number {
    const there = this.#paths.get(path);
    const own = there === undefined ? 0 : there instanceof Map ? there.size : 1;
    return own + this.#recursive.countAbove(path);
  }

  /** Removes a watcher and all its watches: its connection is closed. */
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
    if (owner.first === NO_ROW) this.#gone.pop();
  }

  /** Deletes up to `count` watches of removed watchers. */
  sweep(count: number): void {
    for (let left = count; left > 0 && this.#gone.length > 0; ) {
      const owner = this.#gone[this.#gone.length - 1]!;
      left -= this.#sweepOwner(owner, left);
      if (owner.first === NO_ROW) this.#gone.pop();
    }
  }

  /**
   * Finds the watchers of an event at `path` and removes their one-shot watches.
   *
   * These are all watchers of the path itself and those with a recursive watch on an ancestor, without duplicates.
   *
   * @returns null when there are none; the result does not change when watches are added or removed meanwhile
   */
  trigger(path: string): WatcherSet<W> | null {
    const own = this.#useUp(path);
    if (this.#recursive.size === 0) return own;
    const above = this.#recursive.above(path);
    if (above.length === 0) return own;
    const notified = new Set<W>(own?.keys());
    for (const owner of above) if (!owner.isGone) notified.add(owner.watcher);
    return notified.size === 0 ? null : notified;
  }

  /** The watchers of each path. */
  *paths(): IterableIterator<[string, Iterable<W>]> {
    for (const [path, there] of this.#paths.entries()) {
      if (there instanceof Map) {
        const owners = [...there.values()].map((row) => this.#rows.ownerOf(row)).filter(({ isGone }) => !isGone);
        if (owners.length > 0) yield [path, owners.map(({ watcher }) => watcher)];
      } else {
        const owner = this.#rows.ownerOf(there);
        if (!owner.isGone) yield [path, [owner.watcher]];
      }
    }
  }

  *watchers(): IterableIterator<[W, Iterable<string>]> {
    for (const [watcher, owner] of this.#owners) if (owner.count > 0) yield [watcher, this.#pathsOf(owner)];
  }

  /** Removes the one-shot watches on a path. @returns all its watchers, including those that stay */
  #useUp(path: string): WatcherSet<W> | null {
    const there = this.#paths.get(path);
    if (there === undefined) return null;
    if (!(there instanceof Map)) {
      const owner = this.#rows.ownerOf(there);
      if (this.#useUpOne(there)) this.#paths.delete(path);
      return owner.isGone ? null : new OneWatcher(owner.watcher);
    }
    let staying: Map<W, number> | null = null;
    let gone: W[] | null = null;
    for (const [watcher, row] of there) {
      if (this.#rows.ownerOf(row).isGone) {
        gone ??= [];
        gone.push(watcher);
      }
      if (this.#useUpOne(row)) continue;
      staying ??= new Map();
      staying.set(watcher, row);
    }
    // The path gets a new map with the watchers that stay; the caller gets the old one.
    if (staying === null) this.#paths.delete(path);
    else this.#paths.set(path, staying);
    if (gone !== null) for (const watcher of gone) there.delete(watcher);
    return there.size === 0 ? null : there;
  }

  /** @returns true when the watch has no modes left */
  #useUpOne(row: number): boolean {
    const modes = this.#rows.modesOf(row);
    if (modes !== WatchMode.standard) {
      this.#rows.setModes(row, modes & ~WatchMode.standard);
      return false;
    }
    this.#forget(row);
    return true;
  }

  /** Deletes the row of a watch and removes it from its owner's list. */
  #forget(row: number): void {
    const rows = this.#rows;
    const owner = rows.ownerOf(row);
    const next = rows.nextOf(row);
    const previous = rows.previousOf(row);
    if (previous === NO_ROW) owner.first = next;
    else rows.setNext(previous, next);
    if (next !== NO_ROW) rows.setPrevious(next, previous);
    rows.delete(row);
    owner.count--;
    if (owner.isGone) {
      this.#goneCount--;
      return;
    }
    this.#count--;
    if (owner.count === 0) this.#watcherCount--;
  }

  /** Removes a watch from its path. */
  #take(path: string, watcher: W, there: AtPath<W>): void {
    if (!(there instanceof Map)) {
      this.#paths.delete(path);
      return;
    }
    there.delete(watcher);
    if (there.size === 0) this.#paths.delete(path);
  }

  /** @returns the number of deleted watches */
  #sweepOwner(owner: Owner<W>, count: number): number {
    let swept = 0;
    for (let row = owner.first; row !== NO_ROW && swept < count; row = owner.first) {
      const path = this.#rows.pathOf(row);
      if ((this.#rows.modesOf(row) & WatchMode.recursive) !== 0) this.#recursive.delete(path, owner);
      this.#forget(row);
      const there = this.#paths.get(path);
      if (there !== undefined) this.#take(path, owner.watcher, there);
      swept++;
    }
    return swept;
  }

  #rowOf(there: AtPath<W>, watcher: W): number {
    if (there instanceof Map) return there.get(watcher) ?? NO_ROW;
    return this.#rows.ownerOf(there).watcher === watcher ? there : NO_ROW;
  }

  *#pathsOf(owner: Owner<W>): IterableIterator<string> {
    for (let row = owner.first; row !== NO_ROW; row = this.#rows.nextOf(row)) yield this.#rows.pathOf(row);
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

/** A watcher with at most this many watches is swept at once. */
const SWEPT_AT_ONCE = 64;

class OneWatcher<W> implements WatcherSet<W> {
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
