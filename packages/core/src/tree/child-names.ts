import { JuteChunks, StatOffset, type Zxid } from '@meerkat/protocol';
import type { TreeObserver } from './tree-observer.ts';
import type { TreeState } from './tree-state.ts';
import { VisitedZnodes } from './visited-znodes.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/**
 * The names of a znode's children at the time of construction, a vector<ustring>, collected in steps between which the
 * tree may change:
 *
 * - a child created meanwhile has a higher czxid, and is skipped;
 * - a child deleted meanwhile is written just before, unless it was written already.
 *
 * So they are in no particular order. To abort before the end, call `drop`.
 */
export class ChildNames implements TreeObserver {
  readonly chunks: JuteChunks = new JuteChunks();
  readonly #state: TreeState;
  readonly #zxid: Zxid;
  readonly #parent: ZnodeNumber;
  readonly #visited: VisitedZnodes = new VisitedZnodes();
  /** Offset of the name in a child's path. */
  readonly #skippedBytes: number;
  #next: ZnodeNumber;

  /** @param zxid of the last txn that was applied */
  constructor(state: TreeState, parent: ZnodeNumber, zxid: Zxid) {
    const { table } = state;
    this.#state = state;
    this.#zxid = zxid;
    this.#parent = parent;
    this.#skippedBytes = parent === ROOT ? 1 : table.pathBytesOf(parent) + 1;
    this.#next = table.firstChildOf(parent);
    this.chunks.writer.int(table.childCountOf(parent));
    state.observers.add(this);
  }

  /** Visits up to `count` children. @returns true when all have been written */
  advance(count: number): boolean {
    const { table } = this.#state;
    for (let i = 0; i < count && this.#next !== NO_ZNODE; i++) {
      const child = this.#next;
      this.#next = table.nextSiblingOf(child);
      if (this.#isNew(child)) continue;
      this.#visited.add(child);
      this.#write(child);
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
    if (table.parentOf(z) !== this.#parent) return;
    if (z === this.#next) this.#next = table.nextSiblingOf(z);
    if (!this.#isNew(z) && !this.#visited.has(z)) this.#write(z);
  }

  onChanging(): void {}

  #isNew(z: ZnodeNumber): boolean {
    return this.#state.table.getStatLong(z, StatOffset.czxid) > this.#zxid;
  }

  #write(z: ZnodeNumber): void {
    const { table } = this.#state;
    table.writePath(z, this.#skippedBytes, this.chunks.writer);
  }
}
