import { ShardedMap } from './sharded-map.ts';

/**
 * Items stored at paths, and a lookup of all items at or above a given path, in a single pass over the path's names
 * that stops where no stored path continues.
 *
 *     /  ──"app"──►  /app/locks  ──"a"──►  /app/locks/a        no place at "/app": only one path continues below it
 *                                ──"b"──►  /app/locks/b/c
 *
 * A place is a path with items, or one below which stored paths branch. It is found by the first name of what it adds
 * to the place above. The root counts as above every path but itself.
 */
export class AncestorIndex<T extends object> {
  readonly #root = new Place<T>('/', 1);
  #size = 0;

  /** Number of paths with items. */
  get size(): number {
    return this.#size;
  }

  /** Ignored for an invalid znode path. */
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

  /** The path itself if it has items, else its nearest ancestor with items; null without any. */
  nearest(path: string): string | null {
    let nearest: Place<T> | null = null;
    for (let place: Place<T> | null = this.#root; place !== null; place = nextOnWay(place, path)) {
      if (place.items !== null) nearest = place;
    }
    return nearest === null ? null : nearest.path;
  }

  /** Number of items above a path. */
  countAbove(path: string): number {
    let count = 0;
    if (this.#size === 0) return count;
    for (let place: Place<T> | null = this.#root; place !== null; place = nextOnWay(place, path)) {
      if (place.items === null || place.path.length === path.length) continue;
      count += place.items instanceof Set ? place.items.size : 1;
    }
    return count;
  }

  /** Items above a path, nearest first. */
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
  /** Usually a single item. null for none: the place exists because paths branch here. */
  items: T | Set<T> | null = null;
  /** By the next name; null for none. */
  below: ShardedMap<Place<T>> | null = null;
  /**
   * The only place below, if there is exactly one: it needs no lookup by name, which dominates the cost on a long way.
   */
  only: Place<T> | null = null;
  /** What the path adds to that of the place above. */
  #added: string;

  constructor(path: string, start: number) {
    this.path = path;
    this.#added = path.slice(start);
  }

  /** Offset at which the names of the paths below begin. */
  get end(): number {
    return this.path === '/' ? 1 : this.path.length + 1;
  }

  get added(): string {
    return this.#added;
  }

  /** The place now is below another one. */
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

/** The place directly below that is `path` or an ancestor of it. */
function nextOnWay<T extends object>(place: Place<T>, path: string): Place<T> | null {
  const start = place.end;
  if (place.below === null || path.length <= start) return null;
  const next = place.only ?? place.below.get(nameAt(path, start));
  if (next === undefined) return null;
  const { length } = next.path;
  const isEnd = path.length === length || path.charCodeAt(length) === SLASH;
  return isEnd && path.startsWith(next.added, start) ? next : null;
}

/** Length of the longest path that is `path` or an ancestor of it, and `place` or an ancestor of that. */
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

/** @returns a new place that replaces `place` and has it below; its path is a prefix of that of `place` */
function split<T extends object>(place: Place<T>, length: number): Place<T> {
  const above = new Place<T>(place.path.slice(0, length), place.path.length - place.added.length);
  above.add(nameAt(place.path, above.end), place.moveTo(above.end));
  return above;
}

/** Removes a place that no longer has items, unless paths branch there. */
function unite<T extends object>(above: Place<T>, place: Place<T>): void {
  const { below } = place;
  if (below !== null && below.size > 1) return;
  const name = nameAt(place.path, above.end);
  if (below === null || below.size === 0) above.remove(name);
  else for (const [, next] of below.entries()) above.add(name, next.moveTo(above.end));
}
