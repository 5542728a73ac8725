import { JuteChunks, putInt, StatOffset, type Zxid } from '@meerkat/protocol';
import type { TreeObserver } from './tree-observer.ts';
import type { TreeState } from './tree-state.ts';
import { VisitedZnodes } from './visited-znodes.ts';
import { ZnodeKind } from './znode-kind.ts';
import type { ZnodeNumber } from './znode-rows.ts';

/**
 * The paths of a session's ephemerals with a prefix at the time of construction, a vector<ustring>; collected in steps,
 * as in `ChildNames`.
 */
export class EphemeralNames implements TreeObserver {
  readonly chunks: JuteChunks = new JuteChunks();
  readonly #state: TreeState;
  readonly #sessionId: bigint;
  readonly #prefix: Uint8Array;
  readonly #zxid: Zxid;
  readonly #visited: VisitedZnodes = new VisitedZnodes();
  /** A live iterator: it includes znodes added meanwhile, and skips deleted ones. */
  readonly #owned: IterableIterator<ZnodeNumber>;
  #count = 0;

  /** @param prefix '' for all */
  constructor(state: TreeState, sessionId: bigint, prefix: string, zxid: Zxid) {
    this.#state = state;
    this.#sessionId = sessionId;
    this.#prefix = ENCODER.encode(prefix);
    this.#zxid = zxid;
    this.#owned = state.ephemerals.of(sessionId).values();
    this.chunks.writer.int(0);
    state.observers.add(this);
  }

  /** Visits up to `count` of them. @returns true when all have been written */
  advance(count: number): boolean {
    for (let i = 0; i < count; i++) {
      const next = this.#owned.next();
      if (next.done === true) {
        putInt(this.chunks.pieces[0]!, 0, this.#count);
        this.drop();
        return true;
      }
      if (this.#isNew(next.value)) continue;
      this.#visited.add(next.value);
      this.#write(next.value);
    }
    return false;
  }

  drop(): void {
    this.#state.observers.delete(this);
  }

  onRemoving(z: ZnodeNumber): void {
    const state = this.#state;
    if (state.table.kindOf(z) !== ZnodeKind.ephemeral || state.sessionOf(z) !== this.#sessionId) return;
    if (!this.#isNew(z) && !this.#visited.has(z)) this.#write(z);
  }

  onChanging(): void {}

  #isNew(z: ZnodeNumber): boolean {
    return this.#state.table.getStatLong(z, StatOffset.czxid) > this.#zxid;
  }

  #write(z: ZnodeNumber): void {
    const { table } = this.#state;
    if (!table.hasPathPrefix(z, this.#prefix)) return;
    this.#count++;
    table.writePath(z, 0, this.chunks.writer);
  }
}

const ENCODER = new TextEncoder();
