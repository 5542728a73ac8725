import type { ChildInfo, ChildrenPage, Failure } from '../../api/messages.ts';

/** Rows per page: the number of names per request. */
export const PAGE_ROWS = 200;

/** A displayed line of the tree. */
export interface TreeRow {
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  /** null: its name is not loaded yet. */
  readonly info: ChildInfo | null;
  readonly parent: string | null;
  /** Its index among its siblings, from 0, and their number. */
  readonly index: number;
  readonly siblings: number;
  readonly isExpanded: boolean;
}

/** An expanded znode. */
interface OpenZnode {
  total: number;
  isLoaded: boolean;
  failure: Failure | null;
  /** Number of the newest displayed read: replies to earlier reads are out of date. */
  reading: number;
  /** Children by page, as far as they are loaded. */
  readonly pages: Map<number, readonly ChildInfo[]>;
  /** Expanded children, by name, with their indexes. */
  readonly open: Map<string, number>;
}

/** The source of children. */
export type ReadChildren = (
  path: string,
  from: number,
  find: readonly string[],
  isFresh: boolean,
) => Promise<ChildrenPage>;

/**
 * The expanded part of the tree, without a line per znode: a million children are a number and the pages that were
 * viewed. A row is found by descending from the root, past the expanded children.
 */
export class TreeModel {
  readonly #read: ReadChildren;
  readonly #failureOf: (error: unknown) => Failure;
  readonly #open: Map<string, OpenZnode> = new Map();
  readonly #listeners: Set<() => void> = new Set();
  readonly #asked: Set<string> = new Set();
  #revision = 0;
  #readings = 0;

  constructor(read: ReadChildren, failureOf: (error: unknown) => Failure) {
    this.#read = read;
    this.#failureOf = failureOf;
  }

  readonly listen = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Changes when something has to be rendered again. */
  readonly revision = (): number => this.#revision;

  get rowCount(): number {
    return 1 + this.#rowsBelow('/');
  }

  /** Expanded znodes, parents before children. */
  get openPaths(): readonly string[] {
    return [...this.#open.keys()].filter((path) => this.isVisible(path)).sort();
  }

  isOpen(path: string): boolean {
    return this.#open.has(path);
  }

  failureAt(path: string): Failure | null {
    return this.#open.get(path)?.failure ?? null;
  }

  isLoading(path: string): boolean {
    return this.#open.get(path)?.isLoaded === false;
  }

  /** Whether all its ancestors are expanded. */
  isVisible(path: string): boolean {
    for (let at = path; at !== '/'; ) {
      const { parent, name } = split(at);
      if (this.#open.get(parent)?.open.has(name) !== true) return false;
      at = parent;
    }
    return true;
  }

  row(number: number): TreeRow | null {
    if (number === 0) return { ...ROOT, isExpanded: this.#open.has('/') };
    let rest = number - 1;
    let parent = '/';
    for (let depth = 1; ; depth++) {
      const znode = this.#open.get(parent);
      if (znode === undefined) return null;
      let index = 0;
      let into: string | null = null;
      // Expanded children in order; all rows in between are single ones.
      for (const [name, place] of [...znode.open].sort(([, a], [, b]) => a - b)) {
        const closedRows = place - index;
        if (rest < closedRows) break;
        rest -= closedRows;
        index = place;
        if (rest === 0) break;
        const below = this.#rowsBelow(join(parent, name));
        if (rest <= below) {
          rest -= 1;
          into = name;
          break;
        }
        rest -= below + 1;
        index = place + 1;
      }
      if (into === null) return this.#childRow(parent, znode, index + rest, depth);
      parent = join(parent, into);
    }
  }

  /** The row of a znode; null when it is not among those that are expanded and loaded. */
  rowOf(path: string): number | null {
    if (path === '/') return 0;
    const { parent, name } = split(path);
    const above = this.rowOf(parent);
    const znode = this.#open.get(parent);
    if (above === null || znode === undefined) return null;
    const place = znode.open.get(name) ?? this.#placeOf(znode, name);
    if (place === null) return null;
    let row = above + 1 + place;
    for (const [open, at] of znode.open) if (at < place) row += this.#rowsBelow(join(parent, open));
    return row;
  }

  /** Loads the names of visible rows. */
  want(parent: string, index: number): void {
    const page = Math.floor(index / PAGE_ROWS);
    const key = `${page} ${parent}`;
    if (this.#asked.has(key) || this.#open.get(parent)?.pages.has(page) === true) return;
    this.#asked.add(key);
    void this.#load(parent, page, [], false).finally(() => this.#asked.delete(key));
  }

  async expand(path: string, place: number | null = null): Promise<void> {
    if (this.#open.has(path)) return;
    const { parent, name } = split(path);
    if (path !== '/') {
      const above = this.#open.get(parent);
      const at = place ?? (above === undefined ? null : this.#placeOf(above, name));
      if (above === undefined || at === null) return;
      above.open.set(name, at);
    }
    this.#open.set(path, { total: 0, isLoaded: false, failure: null, reading: 0, pages: new Map(), open: new Map() });
    this.#changed();
    await this.#load(path, 0, [], true);
  }

  collapse(path: string): void {
    if (path === '/') return;
    const { parent, name } = split(path);
    this.#open.get(parent)?.open.delete(name);
    for (const open of [...this.#open.keys()])
      if (open === path || open.startsWith(`${path}/`)) this.#open.delete(open);
    this.#changed();
  }

  /** Expands all ancestors of a path, so that it has a row. @returns the row; null when it does not exist */
  async reveal(path: string): Promise<number | null> {
    await this.expand('/');
    let parent = '/';
    for (const name of path === '/' ? [] : path.slice(1).split('/')) {
      const znode = this.#open.get(parent);
      if (znode === undefined) return null;
      let place = this.#placeOf(znode, name);
      if (place === null) {
        place = (await this.#load(parent, null, [name], true))?.places[name] ?? -1;
        if (place < 0) return null;
        await this.#load(parent, Math.floor(place / PAGE_ROWS), [], false);
      }
      const child = join(parent, name);
      if (child === path) break;
      await this.expand(child, place);
      parent = child;
    }
    return this.rowOf(path);
  }

  /** Reads the displayed children of a znode again: some were created or deleted. */
  async refresh(path: string): Promise<void> {
    const znode = this.#open.get(path);
    if (znode === undefined) return;
    const pages = [...znode.pages.keys()].slice(-3);
    const answer = await this.#load(path, pages[0] ?? 0, [...znode.open.keys()], true);
    if (answer === null) return;
    for (const page of znode.pages.keys())
      if (page !== (pages[0] ?? 0) && !pages.includes(page)) znode.pages.delete(page);
    for (const page of pages.slice(1)) await this.#load(path, page, [], false);
  }

  async #load(
    path: string,
    page: number | null,
    find: readonly string[],
    isFresh: boolean,
  ): Promise<ChildrenPage | null> {
    const reading = ++this.#readings;
    try {
      const answer = await this.#read(path, page === null ? 0 : page * PAGE_ROWS, find, isFresh);
      const znode = this.#open.get(path);
      if (znode === undefined) return null;
      if (reading < znode.reading) {
        // Its page may be requested again.
        this.#changed();
        return answer;
      }
      if (isFresh) znode.reading = reading;
      znode.total = answer.total;
      znode.failure = null;
      znode.isLoaded = true;
      if (page !== null) znode.pages.set(page, answer.children);
      for (const [name, place] of Object.entries(answer.places)) {
        if (!znode.open.has(name)) continue;
        if (place >= 0) znode.open.set(name, place);
        else this.collapse(join(path, name));
      }
      this.#changed();
      return answer;
    } catch (error) {
      const znode = this.#open.get(path);
      if (znode === undefined) return null;
      const failure = this.#failureOf(error);
      znode.isLoaded = true;
      if (failure.code === 'NONODE') this.collapse(path);
      else if (failure.code !== 'offline' && failure.code !== 'away') znode.failure = failure;
      this.#changed();
      return null;
    }
  }

  #childRow(parent: string, znode: OpenZnode, index: number, depth: number): TreeRow | null {
    if (index >= znode.total) return null;
    const info = znode.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS] ?? null;
    const name = info?.name ?? '';
    const path = info === null ? '' : join(parent, name);
    return {
      path,
      name,
      depth,
      info,
      parent,
      index,
      siblings: znode.total,
      isExpanded: path !== '' && this.#open.has(path),
    };
  }

  #rowsBelow(path: string): number {
    const znode = this.#open.get(path);
    if (znode === undefined) return 0;
    let rows = znode.total;
    for (const name of znode.open.keys()) rows += this.#rowsBelow(join(path, name));
    return rows;
  }

  #placeOf(znode: OpenZnode, name: string): number | null {
    for (const [page, children] of znode.pages) {
      const at = children.findIndex((child) => child.name === name);
      if (at >= 0) return page * PAGE_ROWS + at;
    }
    return null;
  }

  #changed(): void {
    this.#revision++;
    for (const listener of this.#listeners) listener();
  }
}

const ROOT: Omit<TreeRow, 'isExpanded'> = {
  path: '/',
  name: '/',
  depth: 0,
  info: { name: '/', numChildren: 1, dataLength: 0, isEphemeral: false },
  parent: null,
  index: 0,
  siblings: 1,
};

export function join(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

export function split(path: string): { readonly parent: string; readonly name: string } {
  const at = path.lastIndexOf('/');
  return { parent: at <= 0 ? '/' : path.slice(0, at), name: path.slice(at + 1) };
}
