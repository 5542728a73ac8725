/** How long a watch lasts and what it covers; a connection may hold several at one path. */
export const WatchMode = { standard: 1, persistent: 2, recursive: 4 } as const;

/** Who is told of an event, each once, in the order of their watches. */
export interface Told<W> {
  keys(): IterableIterator<W>;
  has(watcher: W): boolean;
}

/**
 * Who watches which path: one of the two tables of the watch manager (WatchManager, WatchStats).
 *
 * An entry is (path, watcher) with a set of modes; adding is a union, an event takes away only `standard`, and the
 * entry goes when no mode is left.
 */
export class WatchTable<W> {
  readonly #watchersOf = new Map<string, Map<W, number>>();
  /** Without a set as long as it is one path: most clients that wait for something watch one znode. */
  readonly #pathsOf = new Map<W, string | Set<string>>();
  #recursiveCount = 0;
  #count = 0;

  /** Entries, counted once however many modes they have. */
  get count(): number {
    return this.#count;
  }

  get pathCount(): number {
    return this.#watchersOf.size;
  }

  get watcherCount(): number {
    return this.#pathsOf.size;
  }

  add(path: string, watcher: W, mode: number): void {
    let watchers = this.#watchersOf.get(path);
    if (watchers === undefined) {
      watchers = new Map();
      this.#watchersOf.set(path, watchers);
    }
    const before = watchers.get(watcher) ?? 0;
    if ((before | mode) === before) return;
    watchers.set(watcher, before | mode);
    if (((before ^ mode) & mode & WatchMode.recursive) !== 0) this.#recursiveCount++;
    if (before !== 0) return;
    this.#count++;
    const paths = this.#pathsOf.get(watcher);
    if (paths === undefined) this.#pathsOf.set(watcher, path);
    else if (typeof paths === 'string') this.#pathsOf.set(watcher, new Set([paths, path]));
    else paths.add(path);
  }

  /** @returns true when one of the modes was there */
  remove(path: string, watcher: W, modes: number): boolean {
    const watchers = this.#watchersOf.get(path);
    const before = watchers?.get(watcher) ?? 0;
    if (watchers === undefined || (before & modes) === 0) return false;
    this.#keep(path, watchers, watcher, before, before & ~modes);
    return true;
  }

  has(path: string, watcher: W, modes: number): boolean {
    return ((this.#watchersOf.get(path)?.get(watcher) ?? 0) & modes) !== 0;
  }

  /** The connection is gone, and its watches with it. */
  removeWatcher(watcher: W): void {
    for (const path of pathsIn(this.#pathsOf.get(watcher))) {
      const watchers = this.#watchersOf.get(path);
      const modes = watchers?.get(watcher) ?? 0;
      if (watchers !== undefined && modes !== 0) this.#keep(path, watchers, watcher, modes, 0);
    }
  }

  /**
   * Finds who must be told of an event at `path` and uses up their one-shot watches.
   *
   * Watchers of the path itself are told whatever their mode, those of its ancestors when their watch is recursive;
   * each once. Ancestors are looked at only while there is a recursive watch.
   *
   * @returns the watchers, or null when there are none; it stays as it is, whatever watches come and go meanwhile
   */
  trigger(path: string): Told<W> | null {
    const own = this.#watchersOf.get(path);
    if (own !== undefined) this.#useUp(path, own);
    if (this.#recursiveCount === 0) return own ?? null;
    const told = new Set<W>(own?.keys());
    for (let slash = path.lastIndexOf('/'); slash >= 0 && path !== '/'; slash = path.lastIndexOf('/', slash - 1)) {
      const ancestor = slash === 0 ? '/' : path.slice(0, slash);
      for (const [watcher, modes] of this.#watchersOf.get(ancestor) ?? []) {
        if ((modes & WatchMode.recursive) !== 0) told.add(watcher);
      }
      if (slash === 0) break;
    }
    return told.size === 0 ? null : told;
  }

  paths(): IterableIterator<[string, ReadonlyMap<W, number>]> {
    return this.#watchersOf.entries();
  }

  *watchers(): IterableIterator<[W, Iterable<string>]> {
    for (const [watcher, paths] of this.#pathsOf) yield [watcher, pathsIn(paths)];
  }

  /** The path gets a map anew, with those who stay; the old one is for the caller. */
  #useUp(path: string, watchers: ReadonlyMap<W, number>): void {
    let staying: Map<W, number> | null = null;
    for (const [watcher, modes] of watchers) {
      if (modes === WatchMode.standard) {
        this.#count--;
        this.#forget(path, watcher);
        continue;
      }
      staying ??= new Map();
      staying.set(watcher, modes & ~WatchMode.standard);
    }
    if (staying === null) this.#watchersOf.delete(path);
    else this.#watchersOf.set(path, staying);
  }

  #keep(path: string, watchers: Map<W, number>, watcher: W, before: number, after: number): void {
    if ((before & ~after & WatchMode.recursive) !== 0) this.#recursiveCount--;
    if (after !== 0) {
      watchers.set(watcher, after);
      return;
    }
    this.#count--;
    watchers.delete(watcher);
    if (watchers.size === 0) this.#watchersOf.delete(path);
    this.#forget(path, watcher);
  }

  #forget(path: string, watcher: W): void {
    const paths = this.#pathsOf.get(watcher);
    if (paths === path) {
      this.#pathsOf.delete(watcher);
    } else if (paths instanceof Set) {
      paths.delete(path);
      if (paths.size === 0) this.#pathsOf.delete(watcher);
    }
  }
}

function pathsIn(paths: string | ReadonlySet<string> | undefined): Iterable<string> {
  return typeof paths === 'string' ? [paths] : (paths ?? []);
}
