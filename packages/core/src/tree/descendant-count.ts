import { StatOffset, type Zxid } from '@meerkat/protocol';
import { nextInSubtree } from './subtree.ts';
import type { TreeObserver } from './tree-observer.ts';
import type { TreeState } from './tree-state.ts';
import { VisitedZnodes } from './visited-znodes.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/**
 * The number of a znode's descendants at the time of construction, counted in steps, as `ChildNames` collects names. A
 * count stored in each znode would cost memory, and each create as many updates as its path is deep.
 */
export class DescendantCount implements TreeObserver {
  readonly #state: TreeState;
  readonly #top: ZnodeNumber;
  readonly #zxid: Zxid;
  readonly #visited: VisitedZnodes = new VisitedZnodes();
  #next: ZnodeNumber;
  #count = 0;

  constructor(state: TreeState, top: ZnodeNumber, zxid: Zxid) {
    this.#state = state;
    this.#top = top;
    this.#zxid = zxid;
    this.#next = state.table.firstChildOf(top);
    state.observers.add(this);
  }

  get count(): number {
    return this.#count;
  }

  /** Visits up to `count` znodes. @returns true when all have been counted */
  advance(count: number): boolean {
    const { table } = this.#state;
    for (let i = 0; i < count && this.#next !== NO_ZNODE; i++) {
      const z = this.#next;
      this.#next = nextInSubtree(table, z, this.#top);
      if (this.#isNew(z)) continue;
      this.#visited.add(z);
      this.#count++;
    }
    if (this.#next !== NO_ZNODE) return false;
    this.drop();
    return true;
  }

  drop(): void {
    this.#state.observers.delete(this);
  }

  onRemoving(z: ZnodeNumber): void {
    const { table } = this.#state;
    if (z === this.#next) this.#next = nextInSubtree(table, z, this.#top);
    if (!this.#isNew(z) && !this.#visited.has(z) && this.#isBelow(z)) this.#count++;
  }

  onChanging(): void {}

  #isNew(z: ZnodeNumber): boolean {
    return this.#state.table.getStatLong(z, StatOffset.czxid) > this.#zxid;
  }

  #isBelow(z: ZnodeNumber): boolean {
    const { table } = this.#state;
    for (let at = table.parentOf(z); at !== ROOT; at = table.parentOf(at)) if (at === this.#top) return true;
    return false;
  }
}
