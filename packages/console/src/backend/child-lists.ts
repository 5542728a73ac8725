import { type Client, joinPath, NoNodeError } from '@meerkat/client';
import type { ChildInfo, ChildrenPage } from '../api/messages.ts';

/** Sorted names of children, and their version. */
interface ChildList {
  readonly cversion: number;
  readonly names: readonly string[];
}

/**
 * The sorted children of displayed znodes, page by page. ZooKeeper returns all names at once or none, so they are
 * cached while the user scrolls: the lists of a session have at most 3,000,000 names together, and the least recently
 * used one is evicted first.
 */
export class ChildLists {
  readonly #client: Client;
  /** Least recently used first. */
  readonly #lists: Map<string, ChildList> = new Map();
  #names = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * @param find names whose indexes are requested as well
   * @param isFresh false: a cached list suffices, even if the znode has changed since
   * @throws NoNodeError, NoAuthError
   */
  async page(
    path: string,
    range: { readonly from: number; readonly count: number; readonly isFresh: boolean },
    find: readonly string[],
    call: { readonly timeoutMs: number },
  ): Promise<ChildrenPage> {
    const { cversion, names } = await this.#list(path, range.isFresh, call);
    const wanted = names.slice(range.from, range.from + Math.min(range.count, PAGE_MAX));
    const children = await Promise.all(wanted.map((name) => this.#describe(joinPath(path, name), name, call)));
    const places = Object.fromEntries(find.map((name) => [name, placeOf(names, name)]));
    return { path, total: names.length, cversion, from: range.from, children, places };
  }

  clear(): void {
    this.#lists.clear();
    this.#names = 0;
  }

  async #list(path: string, isFresh: boolean, call: { readonly timeoutMs: number }): Promise<ChildList> {
    const known = this.#lists.get(path);
    if (known !== undefined) {
      const stat = isFresh ? await this.#client.exists(path, call) : null;
      if (!isFresh || stat?.cversion === known.cversion) {
        this.#lists.delete(path);
        this.#lists.set(path, known);
        return known;
      }
      this.#drop(path);
    }
    const { children, stat } = await this.#client.children(path, call);
    const list = { cversion: stat.cversion, names: children.toSorted(compareNames) };
    this.#drop(path);
    this.#lists.set(path, list);
    this.#names += list.names.length;
    for (const oldest of this.#lists.keys()) {
      if (this.#names <= NAMES_MAX || oldest === path) break;
      this.#drop(oldest);
    }
    return list;
  }

  #drop(path: string): void {
    const list = this.#lists.get(path);
    if (list === undefined) return;
    this.#lists.delete(path);
    this.#names -= list.names.length;
  }

  async #describe(path: string, name: string, call: { readonly timeoutMs: number }): Promise<ChildInfo> {
    try {
      const stat = await this.#client.exists(path, call);
      if (stat === null) return { name, numChildren: null, dataLength: 0, isEphemeral: false };
      return { name, numChildren: stat.numChildren, dataLength: stat.dataLength, isEphemeral: stat.isEphemeral };
    } catch (error) {
      if (error instanceof NoNodeError) return { name, numChildren: null, dataLength: 0, isEphemeral: false };
      throw error;
    }
  }
}

/** By code units, as required by binary search and paging. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** -1: not found. */
export function placeOf(names: readonly string[], name: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (names[middle]! < name) low = middle + 1;
    else high = middle;
  }
  return names[low] === name ? low : -1;
}

export const PAGE_MAX = 500;
const NAMES_MAX = 3_000_000;
