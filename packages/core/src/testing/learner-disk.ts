import { epochOf, type Zxid } from '@meerkat/protocol';
import { onDisk } from '../base/durable.ts';
import type { History } from '../zab/history.ts';
import type { Learner } from '../zab/learner.ts';

type EpochName = 'acceptedEpoch' | 'currentEpoch';

interface EndOfHistory {
  readonly lastZxid: Zxid;
  readonly currentEpoch: number;
  readonly acceptedEpoch: number;
}

/**
 * The disk of one learner, as zxids: what it was asked to write, and what of that is durable, which is what survives
 * the end of the machine. Nothing becomes durable by itself: a test says when, and in which order.
 */
export class LearnerDisk {
  /** Where the oldest txn of the log follows: an empty database, or a snapshot. */
  base: Zxid;
  /** Zxids of the txns that are durable. */
  log: Zxid[];
  acceptedEpoch: number;
  currentEpoch: number;
  /** Appended and not synced. */
  unsynced: Zxid[] = [];
  epochWrites: { readonly name: EpochName; readonly epoch: number }[] = [];
  /** A change of the history that is to be done: what it makes of base and log. */
  change: { readonly what: string; readonly base: Zxid; readonly log: Zxid[] } | null = null;

  constructor(history: EndOfHistory, log: readonly Zxid[] = []) {
    this.log = [...log];
    this.base = log.length === 0 ? history.lastZxid : ((log[0]! - 1) as Zxid);
    this.acceptedEpoch = history.acceptedEpoch;
    this.currentEpoch = history.currentEpoch;
  }

  get lastZxid(): Zxid {
    return this.log.at(-1) ?? this.base;
  }

  get isIdle(): boolean {
    return this.unsynced.length === 0 && this.epochWrites.length === 0 && this.change === null;
  }

  /** What a server finds that starts now: the epoch of the log's end counts as adopted. */
  recover(): History {
    const lastZxid = onDisk(this.lastZxid);
    const currentEpoch = onDisk(Math.max(this.currentEpoch, epochOf(lastZxid)));
    return { lastZxid, currentEpoch, acceptedEpoch: onDisk(this.acceptedEpoch), tail: [] };
  }

  /** The power fails: what was not durable is gone. */
  lose(): void {
    this.unsynced = [];
    this.epochWrites = [];
    this.change = null;
  }

  /** Makes the oldest `count` appended txns durable. */
  sync(learner: Learner, count: number = this.unsynced.length): void {
    const synced = this.unsynced.splice(0, count);
    this.log.push(...synced);
    if (synced.length > 0) learner.onLogSynced(onDisk(this.lastZxid));
  }

  finishEpoch(learner: Learner): void {
    const { name, epoch } = this.epochWrites.shift()!;
    this[name] = epoch;
    learner.onEpochDurable(name, onDisk(epoch));
  }

  finishChange(learner: Learner): void {
    const { base, log } = this.change!;
    this.change = null;
    this.base = base;
    this.log = log;
    learner.onReady(onDisk(this.lastZxid));
  }
}
