import { nextInSubtree } from './subtree.ts';
import type { TreeObserver } from './tree-observer.ts';
import type { TreeState } from './tree-state.ts';
import { VisitedZnodes } from './visited-znodes.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/**
 * The usage of a subtree: its znodes, including the top, and the bytes of their data. Counted in steps while the tree
 * changes; the result is the usage at the time of the last step.
 *
 * It must be notified of every created znode and of every change of data.
 */
export class UsageCount implements TreeObserver {
  count = 0;
  bytes = 0;
  readonly #state: TreeState;
  readonly #top: ZnodeNumber;
  readonly #visited: VisitedZnodes = new VisitedZnodes();
  #next: ZnodeNumber;

  /** @param top NO_ZNODE for a missing znode: the usage is zero */
  constructor(state: TreeState, top: ZnodeNumber) {
    this.#state = state;
    this.#top = top;
    this.#next = top;
    state.observers.add(this);
  }

  get isDone(): boolean {
    return this.#next === NO_ZNODE;
  }

  /** Visits up to `steps` znodes. @returns how many of these steps are left */
  advance(steps: number): number {
    const { table } = this.#state;
    let left = steps;
    for (; left > 0 && this.#next !== NO_ZNODE; left--) {
      const z = this.#next;
      this.#next = nextInSubtree(table, z, this.#top);
      if (!this.#visited.has(z)) this.#visit(z);
    }
    if (this.#next === NO_ZNODE) this.drop();
    return left;
  }

  drop(): void {
    this.#state.observers.delete(this);
  }

  onCreated(z: ZnodeNumber): void {
    // Its number may have been that of another znode that was visited.
    if (this.#isWithin(z)) this.#visit(z);
  }

  onDataChanged(z: ZnodeNumber, bytesDelta: number): void {
    if (this.#visited.has(z) && this.#isWithin(z)) this.bytes += bytesDelta;
  }

  onRemoving(z: ZnodeNumber): void {
    const { table } = this.#state;
    if (z === this.#next) this.#next = nextInSubtree(table, z, this.#top);
    if (!this.#visited.has(z) || !this.#isWithin(z)) return;
    this.count--;
    this.bytes -= Math.max(0, table.dataLengthOf(z));
  }

  onChanging(): void {}

  #visit(z: ZnodeNumber): void {
    this.#visited.add(z);
    this.count++;
    this.bytes += Math.max(0, this.#state.table.dataLengthOf(z));
  }

  #isWithin(z: ZnodeNumber): boolean {
    const { table } = this.#state;
    let at = z;
    while (at !== this.#top && at !== ROOT) at = table.parentOf(at);
    return at === this.#top;
  }
}
