import { ShardedMap } from './sharded-map.ts';

/**
 * What is kept at some paths, and what of it stands above a given one: found in one pass over its names, however deep it is,
 * which ends where none of these paths goes on.
 *
 *     /  ──"app"──►  /app/locks  ──"a"──►  /app/locks/a        nothing is kept at "/app": there is one way down only
 *                                ──"b"──►  /app/locks/b/c
 *
 * A place is a path with something, or one where two of them part. It is found by the first name of what it adds to the
 * place above. The root is above all but itself.
 */
export class AncestorIndex<T extends object> {
  readonly #root = new Place<T>('/', 1);
  #size = 0;

  /** Paths with something. */
  get size(): number {
    return this.#size;
  }

  /** At what can be no znode's path nothing is kept. */
  add(path: string, item: T): void {
    if (!isPath(path)) return;
    let place = this.#root;
    while (place.path.length < path.length) {
      const name = nameAt(path, place.end);
      const next = place.below?.get(name);
      if (next === undefined) {
        place = place.add(name, new Place(path, place.end));
      } else {
        const shared = sharedLength(path, next);
        place = shared === next.path.length ? next : place.add(name, split(next, shared));
      }
    }
    if (place.items === null) this.#size++;
    place.items = withItem(place.items, item);
  }

  delete(path: string, item: T): void {
    if (!isPath(path)) return;
    const places: Place<T>[] = [];
    for (let at: Place<T> | null = this.#root; at !== null; at = nextOnWay(at, path)) places.push(at);
    const place = places.pop();
    if (place === undefined || place.path !== path || place.items === null) return;
    place.items = withoutItem(place.items, item);
    if (place.items !== null) return;
    this.#size--;
    const above = places.pop();
    if (above === undefined) return;
    unite(above, place);
    const highest = places.pop();
    if (highest !== undefined && above.items === null) unite(highest, above);
  }

  /** The path itself if something is kept there, else the nearest such path above it; null when there is none. */
  nearest(path: string): string | null {
    let nearest: Place<T> | null = null;
    for (let place: Place<T> | null = this.#root; place !== null; place = nextOnWay(place, path)) {
      if (place.items !== null) nearest = place;
    }
    return nearest === null ? null : nearest.path;
  }

  /** How much is kept above a path. */
  countAbove(path: string): number {
    let count = 0;
    if (this.#size === 0) return count;
    for (let place: Place<T> | null = this.#root; place !== null; place = nextOnWay(place, path)) {
      if (place.items === null || place.path.length === path.length) continue;
      count += place.items instanceof Set ? place.items.size : 1;
    }
    return count;
  }

  /** What is kept above a path, of the nearest first. */
  above(path: string): readonly T[] {
    if (this.#size === 0) return [];
    const found: (T | Set<T>)[] = [];
    for (let place: Place<T> | null = this.#root; place !== null; place = nextOnWay(place, path)) {
      if (place.items !== null && place.path.length < path.length) found.push(place.items);
    }
    const above: T[] = [];
    for (let items = found.pop(); items !== undefined; items = found.pop()) {
      if (items instanceof Set) for (const item of items) above.push(item);
      else above.push(items);
    }
    return above;
  }
}

class Place<T extends object> {
  readonly path: string;
  /** Most often it is one. null for nothing: the place is there because others part. */
  items: T | Set<T> | null = null;
  /** By the name that follows; null for none. */
  below: ShardedMap<Place<T>> | null = null;
  /** The place below, where there is only one: no name has to be looked for, which on a way of many places is most of the work. */
  only: Place<T> | null = null;
  /** What the path adds to that of the place above. */
  #added: string;

  constructor(path: string, start: number) {
    this.path = path;
    this.#added = path.slice(start);
  }

  /** Where the names of paths below begin. */
  get end(): number {
    return this.path === '/' ? 1 : this.path.length + 1;
  }

  get added(): string {
    return this.#added;
  }

  /** It stands below another place now. */
  moveTo(start: number): this {
    this.#added = this.path.slice(start);
    return this;
  }

  add(name: string, place: Place<T>): Place<T> {
    this.below ??= new ShardedMap();
    this.below.set(name, place);
    this.only = this.below.size === 1 ? place : null;
    return place;
  }

  remove(name: string): void {
    const { below } = this;
    if (below === null) return;
    below.delete(name);
    this.only = null;
    if (below.size === 1) for (const [, last] of below.entries()) this.only = last;
  }
}

const SLASH = 0x2f;

function withItem<T extends object>(items: T | Set<T> | null, item: T): T | Set<T> {
  if (items === null || items === item) return item;
  return items instanceof Set ? items.add(item) : new Set([items, item]);
}

function withoutItem<T extends object>(items: T | Set<T>, item: T): T | Set<T> | null {
  if (!(items instanceof Set)) return items === item ? null : items;
  items.delete(item);
  return items.size === 0 ? null : items;
}

function isPath(path: string): boolean {
  return path === '/' || (path.startsWith('/') && !path.endsWith('/') && !path.includes('//'));
}

function nameAt(path: string, start: number): string {
  const slash = path.indexOf('/', start);
  return path.slice(start, slash < 0 ? path.length : slash);
}

/** The place below that is `path` or an ancestor of it. */
function nextOnWay<T extends object>(place: Place<T>, path: string): Place<T> | null {
  const start = place.end;
  if (place.below === null || path.length <= start) return null;
  const next = place.only ?? place.below.get(nameAt(path, start));
  if (next === undefined) return null;
  const { length } = next.path;
  const isEnd = path.length === length || path.charCodeAt(length) === SLASH;
  return isEnd && path.startsWith(next.added, start) ? next : null;
}

/** Characters of the longest path that is `path` or an ancestor of it, and `place` or an ancestor of that. */
function sharedLength(path: string, place: Place<object>): number {
  const other = place.path;
  let shared = 0;
  for (let i = other.length - place.added.length; i <= path.length && i <= other.length; i++) {
    const isEnd = i === path.length || path.charCodeAt(i) === SLASH;
    const isOtherEnd = i === other.length || other.charCodeAt(i) === SLASH;
    if (isEnd && isOtherEnd) shared = i;
    if (path.charCodeAt(i) !== other.charCodeAt(i)) break;
  }
  return shared;
}

/** @returns a place above `place`, in its stead, whose path is the beginning of its path */
function split<T extends object>(place: Place<T>, length: number): Place<T> {
  const above = new Place<T>(place.path.slice(0, length), place.path.length - place.added.length);
  above.add(nameAt(place.path, above.end), place.moveTo(above.end));
  return above;
}

/** Takes away a place at which nothing is kept any more, unless two others part there. */
function unite<T extends object>(above: Place<T>, place: Place<T>): void {
  const { below } = place;
  if (below !== null && below.size > 1) return;
  const name = nameAt(place.path, above.end);
  if (below === null || below.size === 0) above.remove(name);
  else for (const [, next] of below.entries()) above.add(name, next.moveTo(above.end));
}
