import { OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import { ChangeAllowance, weightOf } from '../tree/change-weight.ts';
import type { DataTree, ZnodeNumber } from '../tree/data-tree.ts';
import { pathsWithin } from './close-session-paths.ts';
import type { PendingTree } from './pending.ts';
import type { PrepareSteps } from './prepare-steps.ts';

/**
 * Prepares the closeSession of a session that may have very many ephemerals.
 *
 *     ephemerals of the tree ──► listed, and counted by parent         the overlay only records that their session ends
 *     changed in flight      ──► listed, and deleted one by one
 *
 * Nothing else is prepared until it is done. Txns that are applied meanwhile were in flight when it began, so their
 * ephemerals are handled as changed in flight.
 */
export class SessionEnd implements PrepareSteps {
  readonly size: number;
  readonly #pending: PendingTree;
  readonly #tree: DataTree;
  readonly #sessionId: bigint;
  readonly #zxid: Zxid;
  readonly #txnBytesMax: number;
  readonly #owned: IterableIterator<ZnodeNumber>;
  /** The next ephemeral of the tree, unless it has been deleted. */
  #next: IteratorResult<ZnodeNumber>;
  readonly #inFlight: ReadonlySet<string>;
  /** The ones not yet processed, newest first. */
  readonly #inFlightLeft: string[];
  readonly #paths: string[] = [];
  readonly #allowance: ChangeAllowance = new ChangeAllowance();
  /** How many children each parent loses. */
  readonly #lost: Map<ZnodeNumber, number> = new Map();

  constructor(pending: PendingTree, sessionId: bigint, zxid: Zxid, txnBytesMax: number) {
    const { tree } = pending;
    this.#pending = pending;
    this.#tree = tree;
    this.#sessionId = sessionId;
    this.#zxid = zxid;
    this.#txnBytesMax = txnBytesMax;
    this.#inFlight = pending.changedEphemeralsOf(sessionId);
    this.#inFlightLeft = [...this.#inFlight].reverse();
    const owned = pending.isEnding(sessionId) ? NONE : tree.state.ephemerals.of(sessionId);
    this.size = Math.ceil(owned.size / PER_STEP) + this.#inFlight.size;
    this.#owned = owned.values();
    this.#next = this.#owned.next();
  }

  advance(count: number): Txn | null {
    // A txn applied since the last turn may have deleted the next one; within a turn none is applied.
    const owned = this.#tree.state.ephemerals.of(this.#sessionId);
    while (this.#next.done !== true && !owned.has(this.#next.value)) this.#next = this.#owned.next();
    const allowance = this.#allowance;
    allowance.renew(count * PER_STEP);
    for (; this.#next.done !== true; this.#next = this.#owned.next()) {
      if (allowance.isUsed) return null;
      this.#take(this.#next.value);
    }
    while (this.#inFlightLeft.length > 0) {
      if (allowance.isUsed) return null;
      const path = this.#inFlightLeft.pop()!;
      allowance.spend(PER_STEP * weightOf(path));
      if (this.#pending.deleteEphemeral(path, this.#sessionId, this.#zxid)) this.#paths.push(path);
    }
    this.#pending.endSession(this.#sessionId, this.#zxid, this.#lost);
    return { type: OpCode.closeSession, paths: pathsWithin(this.#paths, this.#txnBytesMax) };
  }

  #take(z: ZnodeNumber): void {
    const { znodes } = this.#tree;
    const path = znodes.pathOf(z);
    this.#allowance.spend(weightOf(path));
    if (this.#inFlight.has(path)) return;
    this.#paths.push(path);
    const parent = znodes.parentOf(z);
    this.#lost.set(parent, (this.#lost.get(parent) ?? 0) + 1);
    this.#pending.forgetDigest(z);
  }
}

const NONE: ReadonlySet<ZnodeNumber> = new Set();

/** Ephemerals of the tree that cost as much as one change. */
const PER_STEP = 4;
