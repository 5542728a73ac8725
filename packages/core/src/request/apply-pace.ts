import { Fifo, OpCode, type ReadRequest, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import type { ApplyResult } from '../tree/apply-result.ts';
import { weightOf, weightOfAll } from '../tree/change-weight.ts';
import type { Prepared } from '../tree/prepared.ts';
import type { TxnSteps } from '../tree/txn-steps.ts';
import type { Committed } from '../zab/committed.ts';
import { ChangedPaths } from './changed-paths.ts';
import type { WaitingWrite } from './client.ts';
import type { WorkMeter } from './work-meter.ts';

/** A committed txn, ready to be applied. */
export interface CommittedTxn {
  readonly header: TxnHeader;
  readonly txn: Txn;
  /** The local write that it answers; null for a write of another server. */
  readonly write: WaitingWrite | null;
  /** As in `DataTree.apply`. */
  readonly prepared: Prepared;
}

/** The txns that wait to be applied, in zxid order. */
export interface CommittedTxns<T extends CommittedTxn = CommittedTxn> {
  /** Removes and returns the oldest; null when it is not committed. */
  take(watermark: Committed<Zxid>): T | null;
  onApplied(txn: T, result: ApplyResult): void;
}

/** How much is applied per turn. */
export interface PaceLimits {
  readonly unitsPerTurn: number;
  /** Changes that are made without checking their cost. */
  readonly changesAtOnce: number;
  /** As in `Preparation`. */
  readonly preparedPerTurn?: number;
}

/** Applies a txn and answers what waits for it. */
export interface TxnHost {
  apply(next: CommittedTxn, nowMs: number): ApplyResult;
  /** Applies it over several turns; `end` follows. null when that is not possible. */
  begin(next: CommittedTxn): TxnSteps | null;
  end(next: CommittedTxn, result: ApplyResult, nowMs: number): void;
  /** Znodes that the end of a session will delete. */
  ephemeralCountOf(sessionId: bigint): number;
  /** Reads that `hides` held back can be executed now. */
  onTxnCompleted(): void;
}

/**
 * Applies committed txns, but no more in a turn than other clients can wait for.
 *
 *     committed:  ✓ ✓ ✓ ✓ ◐ · · · ·  watermark        ✓ applied and answered    ◐ some of its changes are made
 *                         └─ this turn's budget is spent: the rest waits for the next turns
 *
 * 1. Txns are applied in zxid order, one after the other.
 * 2. A txn with many changes may take several turns. Until it is done, the paths that it changes cannot be read
 *    (`hides`), so that readers see all of it or nothing. Other reads see the state and the zxid of the txn before it.
 * 3. Replies that require the tree to be at the watermark wait for that (`whenApplied`).
 *
 * Until the first turn has ended everything is applied at once: no clients are served yet.
 */
export class ApplyPace {
  readonly #committed: CommittedTxns;
  readonly #host: TxnHost;
  readonly #work: WorkMeter;
  readonly #limits: PaceLimits;
  #watermark: Committed<Zxid> | null = null;
  #isBehind = false;
  #unitsLeft = Number.POSITIVE_INFINITY;
  /** The partly applied txn. */
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

  /** True while a committed txn is not yet applied. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** True while a txn is partly applied. */
  get isUnfinished(): boolean {
    return this.#unfinished !== null;
  }

  /** The last committed zxid; before the first commit, the last applied one. */
  get committedZxid(): Zxid {
    return this.#watermark ?? this.#applied;
  }

  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.#watermark = watermark;
    this.#isBehind = true;
    this.#advance(nowMs);
  }

  /** Spends what is left of this turn's budget; the next turn has a full one. */
  onTurnEnd(nowMs: number): void {
    if (this.#isBehind) this.#advance(nowMs);
    this.#unitsLeft = this.#limits.unitsPerTurn;
  }

  /** Applies everything that is committed now. */
  applyAll(nowMs: number): void {
    if (!this.#isBehind) return;
    const left = this.#unitsLeft;
    this.#unitsLeft = Number.POSITIVE_INFINITY;
    this.#advance(nowMs);
    this.#unitsLeft = left;
  }

  /** Runs `act` once everything committed so far is applied, possibly at once. */
  whenApplied(act: () => void): void {
    if (this.#isBehind) this.#after.push({ watermark: this.committedZxid, act });
    else act();
  }

  /** Whether a read must wait for the partly applied txn, for instance because it would see part of its changes. */
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
      // Set in the middle, a watch would miss changes later than the zxid of the reply.
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

  /** The role is over: drops what is not applied, but completes a partly applied txn so that the tree is consistent. */
  drop(): void {
    const unfinished = this.#unfinished;
    this.#unfinished = null;
    this.#isBehind = false;
    this.#after.takeAll();
    unfinished?.steps.advance(Number.POSITIVE_INFINITY);
  }

  #advance(nowMs: number): void {
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
      const result = steps.advance(changesAtOnce);
      this.#unitsLeft -= this.#work.charge(changesAtOnce * UNITS_PER_CHANGE);
      if (result === null) continue;
      const wasHidden = this.#unfinished !== null;
      this.#unfinished = null;
      const before = this.#work.turnUnits;
      this.#host.end(next, result, nowMs);
      // The reply has a result for each change.
      this.#unitsLeft -= this.#work.turnUnits - before;
      this.#onApplied(next, result);
      if (wasHidden) this.#host.onTxnCompleted();
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
    this.#host.onTxnCompleted();
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

/** About two milliseconds per turn, in steps of about fifty microseconds. */
const LIMITS: PaceLimits = { unitsPerTurn: 32_768, changesAtOnce: 64 };
/** Cost of a change, without its watch events. */
const UNITS_PER_CHANGE = 16;
