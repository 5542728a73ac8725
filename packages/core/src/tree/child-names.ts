import { JuteChunks, StatOffset, type Zxid } from '@meerkat/protocol';
import type { TreeObserver } from './tree-observer.ts';
import type { TreeState } from './tree-state.ts';
import { VisitedZnodes } from './visited-znodes.ts';
import { NO_ZNODE, ROOT, type ZnodeNumber } from './znode-rows.ts';

/**
 * The names of a znode's children as they are when this begins, a vector<ustring>, collected in steps between which the
 * tree may change:
 *
 * - a child that is created meanwhile has a higher czxid, and is passed over;
 * - a child that is deleted meanwhile is written just before, if its turn has not come yet.
 *
 * So their order is none. `drop` must follow when the names are not wanted any more before the end.
 */
export class ChildNames implements TreeObserver {
  readonly chunks: JuteChunks = new JuteChunks();
  readonly #state: TreeState;
  readonly #zxid: Zxid;
  readonly #parent: ZnodeNumber;
  readonly #visited: VisitedZnodes = new VisitedZnodes();
  /** Where the name begins in a child's path. */
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

  /** Looks at so many children. @returns true when all have been written */
  goOn(count: number): boolean {
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
