import { type CloseSessionTxn, ErrorCode, type MultiTxn, type Txn, type TxnHeader } from '@meerkat/protocol';
import { APPLIED, type ApplyResult, type PartResult } from './apply-result.ts';
import { ChangeAllowance, weightOf } from './change-weight.ts';
import { type Prepared, UNPREPARED } from './prepared.ts';
import type { TreeEvents } from './tree-events.ts';
import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';

/** A txn of many changes, applied a limited number at a time. Until all are made, the tree is not that of any zxid. */
export interface TxnSteps {
  /**
   * Makes up to `count` changes, weighted by the length of their paths.
   *
   * @returns the txn's result; null while changes remain
   */
  advance(count: number): ApplyResult | null;
}

/** Operations that the steps use. */
export interface ChangeApplier {
  apply(header: TxnHeader, part: Txn, events: TreeEvents, prepared: Prepared): ApplyResult;
  /** @returns a copy of the stat as of part number `part`; overwritten by the next multi */
  keepStat(z: ZnodeNumber, part: number): Uint8Array;
  delete(header: TxnHeader, path: string, events: TreeEvents, znode: ZnodeNumber): ApplyResult;
  /** What a session owns, in the order of creation. */
  ownedBy(sessionId: bigint): ReadonlySet<ZnodeNumber>;
  /** Paths of what a session still owns. */
  unlistedOf(sessionId: bigint): readonly string[];
  /** A znode that is about to be deleted by a txn that does not list it. */
  keepUnlisted(path: string, zxid: number): void;
}

/** The parts of a multi that has not failed. */
export class MultiSteps implements TxnSteps {
  readonly #applier: ChangeApplier;
  readonly #header: TxnHeader;
  readonly #txn: MultiTxn;
  readonly #events: TreeEvents;
  readonly #prepared: Prepared;
  readonly #parts: PartResult[] = [];
  #error: ErrorCode = ErrorCode.ok;
  readonly #allowance: ChangeAllowance = new ChangeAllowance();

  constructor(applier: ChangeApplier, header: TxnHeader, txn: MultiTxn, events: TreeEvents, prepared: Prepared) {
    this.#applier = applier;
    this.#header = header;
    this.#txn = txn;
    this.#events = events;
    this.#prepared = prepared;
  }

  advance(count: number): ApplyResult | null {
    const { txns } = this.#txn;
    const parts = this.#parts;
    const applier = this.#applier;
    const prepared = this.#prepared.parts;
    this.#allowance.renew(count);
    for (let i = parts.length; i < txns.length; i++) {
      if (this.#allowance.isUsed) return null;
      const part = txns[i]!;
      const { error, znode } = applier.apply(this.#header, part, this.#events, prepared?.[i] ?? UNPREPARED);
      if (this.#error === ErrorCode.ok) this.#error = error;
      const stat = znode === NO_ZNODE ? null : applier.keepStat(znode, i);
      const path = 'path' in part ? part.path : '';
      parts.push({ type: part.type, error, path, stat });
      this.#allowance.spend(weightOf(path));
    }
    return { error: this.#error, znode: NO_ZNODE, parts };
  }
}

/**
 * The ephemerals of a session that ends: those that its txn lists, then any others that the session owns.
 *
 * They are listed in the order of ownership, that of their creation: so the next listed path is usually that of the
 * next owned znode, and needs no lookup.
 */
export class CloseSessionSteps implements TxnSteps {
  readonly #applier: ChangeApplier;
  readonly #header: TxnHeader;
  readonly #events: TreeEvents;
  #paths: readonly string[];
  #isListed = true;
  /** Index of the next path. */
  #at = 0;
  readonly #owned: IterableIterator<ZnodeNumber>;
  readonly #allowance: ChangeAllowance = new ChangeAllowance();

  constructor(applier: ChangeApplier, header: TxnHeader, txn: CloseSessionTxn, events: TreeEvents) {
    this.#applier = applier;
    this.#header = header;
    this.#events = events;
    this.#paths = txn.paths ?? [];
    this.#owned = applier.ownedBy(header.sessionId).values();
  }

  advance(count: number): ApplyResult | null {
    this.#allowance.renew(count);
    for (;;) {
      if (this.#at === this.#paths.length) {
        if (!this.#isListed) return APPLIED;
        this.#isListed = false;
        this.#paths = this.#applier.unlistedOf(this.#header.sessionId);
        this.#at = 0;
        if (this.#paths.length === 0) return APPLIED;
      }
      if (this.#allowance.isUsed) return null;
      const path = this.#paths[this.#at++]!;
      this.#allowance.spend(weightOf(path));
      if (!this.#isListed) this.#applier.keepUnlisted(path, this.#header.zxid);
      const owned = this.#owned.next();
      this.#applier.delete(this.#header, path, this.#events, owned.done === true ? NO_ZNODE : owned.value);
    }
  }
}
