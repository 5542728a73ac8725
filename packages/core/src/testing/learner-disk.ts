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
 * The disk of one learner, as zxids: the requested writes, and which of them are durable and so survive a crash of the
 * machine. Nothing becomes durable by itself: a test decides when, and in which order.
 */
export class LearnerDisk {
  /** Zxid before the oldest txn of the log: an empty database, or a snapshot. */
  base: Zxid;
  /** Zxids of the txns that are durable. */
  log: Zxid[];
  acceptedEpoch: number;
  currentEpoch: number;
  /** Appended and not synced. */
  unsynced: Zxid[] = [];
  epochWrites: { readonly name: EpochName; readonly epoch: number }[] = [];
  /** A pending change of the history: the resulting base and log. */
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

  /** The history that a starting server finds: the epoch of the log's end counts as adopted. */
  recover(): History {
    const lastZxid = onDisk(this.lastZxid);
    const currentEpoch = onDisk(Math.max(this.currentEpoch, epochOf(lastZxid)));
    return { lastZxid, currentEpoch, acceptedEpoch: onDisk(this.acceptedEpoch), tail: [] };
  }

  /** A power cut: what was not durable is lost. */
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
