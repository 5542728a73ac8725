import { Fifo, OpCode, type ReadRequest, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import type { ApplyResult } from '../tree/apply-result.ts';
import { weightOf, weightOfAll } from '../tree/change-weight.ts';
import type { Prepared } from '../tree/prepared.ts';
import type { TxnSteps } from '../tree/txn-steps.ts';
import type { Committed } from '../zab/committed.ts';
import { ChangedPaths } from './changed-paths.ts';
import type { WaitingWrite } from './client.ts';
import type { WorkMeter } from './work-meter.ts';

/** A txn that may be applied. */
export interface CommittedTxn {
  readonly header: TxnHeader;
  readonly txn: Txn;
  /** The write of this server's that it answers; null for one of another server's. */
  readonly write: WaitingWrite | null;
  /** As in `DataTree.apply`. */
  readonly prepared: Prepared;
}

/** Those that wait to be applied, in the order of their zxids. */
export interface CommittedTxns<T extends CommittedTxn = CommittedTxn> {
  /** @returns the oldest, which waits no more; null when it is not committed */
  take(watermark: Committed<Zxid>): T | null;
  onApplied(txn: T, result: ApplyResult): void;
}

/** How much is applied between two looks at what else there is to do. */
export interface PaceLimits {
  readonly unitsPerTurn: number;
  /** Changes that are made without a look at what they have cost. */
  readonly changesAtOnce: number;
  /** As in `Preparation`. */
  readonly preparedPerTurn?: number;
}

/** Who applies a txn and answers what waits for it. */
export interface TxnHost {
  apply(next: CommittedTxn, nowMs: number): ApplyResult;
  /** The same over several turns: `end` follows. null when it cannot be. */
  begin(next: CommittedTxn): TxnSteps | null;
  end(next: CommittedTxn, result: ApplyResult, nowMs: number): void;
  /** Znodes that the end of a session will delete. */
  ephemeralCountOf(sessionId: bigint): number;
  /** What `hides` has kept from being read can be read now. */
  onShown(): void;
}

/**
 * When what is committed is applied: as much of it in a turn as others can wait for.
 *
 *     committed:  ✓ ✓ ✓ ✓ ◐ · · · ·  watermark        ✓ applied and answered    ◐ some of its changes are made
 *                         └─ this turn's work is done: the rest waits for the next ones
 *
 * 1. Txns are applied in the order of their zxids, one after the other.
 * 2. A txn with many changes may take several turns. Until it is done nobody reads what it changes (`hides`), so that all
 *    of it is seen or nothing. Everything else reads as before it, with the zxid of the txn before it.
 * 3. What may be told only once the tree is that of the watermark waits for that (`whenApplied`).
 *
 * It applies everything at once until the first turn has ended: before it serves a server has nobody to keep waiting.
 */
export class ApplyPace {
  readonly #committed: CommittedTxns;
  readonly #host: TxnHost;
  readonly #work: WorkMeter;
  readonly #limits: PaceLimits;
  #watermark: Committed<Zxid> | null = null;
  #isBehind = false;
  #unitsLeft = Number.POSITIVE_INFINITY;
  /** The txn of which some changes are made. */
  #unfinished: { readonly next: CommittedTxn; readonly steps: TxnSteps; readonly changed: ChangedPaths } | null = null;
  readonly #after: Fifo<{ readonly watermark: Zxid; readonly act: () => void }> = new Fifo();
  #applied: Zxid;

  constructor(committed: CommittedTxns, host: TxnHost, work: WorkMeter, lastZxid: Zxid, limits: PaceLimits = LIMITS) {
    this.#limits = limits;
    this.#committed = committed;
    this.#host = host;
    this.#work = work;
    this.#applied = lastZxid;
  }

  /** True while something is committed that is not applied. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** True while some changes of a txn are made and others are not. */
  get isUnfinished(): boolean {
    return this.#unfinished !== null;
  }

  /** The last zxid that is committed, or was applied before there was any. */
  get committedZxid(): Zxid {
    return this.#watermark ?? this.#applied;
  }

  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.#watermark = watermark;
    this.#isBehind = true;
    this.#goOn(nowMs);
  }

  /** A turn ends: it may go on as far as its work was not done, and the next one has as much again. */
  onTurnEnd(nowMs: number): void {
    if (this.#isBehind) this.#goOn(nowMs);
    this.#unitsLeft = this.#limits.unitsPerTurn;
  }

  /** Applies everything that is committed now. */
  applyAll(nowMs: number): void {
    if (!this.#isBehind) return;
    const left = this.#unitsLeft;
    this.#unitsLeft = Number.POSITIVE_INFINITY;
    this.#goOn(nowMs);
    this.#unitsLeft = left;
  }

  /** Acts once all is applied that is committed now: at once, if it is. */
  whenApplied(act: () => void): void {
    if (this.#isBehind) this.#after.push({ watermark: this.committedZxid, act });
    else act();
  }

  /** Whether a read would show a part of a txn's changes, or must wait for other reasons until it is done. */
  hides(request: ReadRequest): boolean {
    if (this.#unfinished === null) return false;
    const { changed } = this.#unfinished;
    switch (request.op) {
      case OpCode.exists:
      case OpCode.getData:
      case OpCode.getACL:
      case OpCode.getChildren:
      case OpCode.getChildren2:
        return changed.has(request.path);
      case OpCode.multiRead:
        return request.ops.some(({ path }) => changed.has(path));
      case OpCode.getAllChildrenNumber:
      case OpCode.getEphemerals:
      // Armed in the middle, a watch would miss changes above the zxid of the reply.
      case OpCode.addWatch:
      case OpCode.setWatches:
      case OpCode.setWatches2:
        return true;
      case OpCode.checkWatches:
      case OpCode.removeWatches:
      case OpCode.whoAmI:
        return false;
    }
  }

  /** The role is over, and nobody is left to be answered: the tree must not stay as it is in the middle of a txn. */
  drop(): void {
    const unfinished = this.#unfinished;
    this.#unfinished = null;
    this.#isBehind = false;
    this.#after.takeAll();
    unfinished?.steps.goOn(Number.POSITIVE_INFINITY);
  }

  #goOn(nowMs: number): void {
    while (this.#unitsLeft > 0) {
      const unfinished = this.#unfinished;
      if (unfinished !== null) {
        if (!this.#makeChanges(unfinished.next, unfinished.steps, nowMs)) return;
        continue;
      }
      const next = this.#committed.take(this.#watermark!);
      if (next === null) {
        this.#onCaughtUp();
        return;
      }
      this.#apply(next, nowMs);
    }
  }

  #apply(next: CommittedTxn, nowMs: number): void {
    const changes = this.#changesOf(next);
    const isLong = changes > this.#limits.changesAtOnce;
    const steps = isLong ? this.#host.begin(next) : null;
    if (steps === null) {
      const before = this.#work.turnUnits;
      const result = this.#host.apply(next, nowMs);
      this.#unitsLeft -= this.#work.turnUnits - before;
      this.#onApplied(next, result);
    } else if (!this.#makeChanges(next, steps, nowMs)) {
      this.#unfinished = { next, steps, changed: new ChangedPaths(next.txn, changes) };
    }
  }

  /** @returns false when some are left for the next turn */
  #makeChanges(next: CommittedTxn, steps: TxnSteps, nowMs: number): boolean {
    const { changesAtOnce } = this.#limits;
    while (this.#unitsLeft > 0) {
      const result = steps.goOn(changesAtOnce);
      this.#unitsLeft -= this.#work.charge(changesAtOnce * UNITS_PER_CHANGE);
      if (result === null) continue;
      const wasHidden = this.#unfinished !== null;
      this.#unfinished = null;
      const before = this.#work.turnUnits;
      this.#host.end(next, result, nowMs);
      // The reply has a result for each change.
      this.#unitsLeft -= this.#work.turnUnits - before;
      this.#onApplied(next, result);
      if (wasHidden) this.#host.onShown();
      return true;
    }
    return false;
  }

  #onApplied(next: CommittedTxn, result: ApplyResult): void {
    this.#applied = next.header.zxid;
    this.#committed.onApplied(next, result);
    this.#actUpTo(this.#applied);
  }

  #onCaughtUp(): void {
    this.#isBehind = false;
    this.#actUpTo(this.committedZxid);
    this.#host.onShown();
  }

  #actUpTo(zxid: Zxid): void {
    for (
      let oldest = this.#after.peek();
      oldest !== undefined && oldest.watermark <= zxid;
      oldest = this.#after.peek()
    ) {
      this.#after.shift();
      oldest.act();
    }
  }

  #changesOf({ header, txn }: CommittedTxn): number {
    switch (txn.type) {
      case OpCode.multi:
        return weightOfAll(txn.txns);
      case OpCode.closeSession: {
        const listed = (txn.paths ?? []).reduce((sum, path) => sum + weightOf(path), 0);
        return Math.max(listed, this.#host.ephemeralCountOf(header.sessionId));
      }
      default:
        return 1;
    }
  }
}

/** Some two milliseconds of a turn, in steps of some fifty microseconds. */
const LIMITS: PaceLimits = { unitsPerTurn: 32_768, changesAtOnce: 64 };
/** What a change costs, without the events that it causes. */
const UNITS_PER_CHANGE = 16;
