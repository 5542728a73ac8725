import { makeZxid, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';

/**
 * Durability as a type: this value, or everything up to it, survives the end of the machine.
 *
 * The storage makes one when the disk has reported a sync, and when it recovers; a leader takes a learner's word for
 * what is on the learner's disk. Acknowledgements, votes of this server for its own txns and the adoption of an epoch
 * are made from durable values only (`zab/acknowledgement.ts`, `zab/committed.ts`), so what has merely been received
 * cannot be acknowledged: it does not compile.
 */
declare const durable: unique symbol;
export type Durable<T> = T & { readonly [durable]: true };

export type EpochFileName = 'acceptedEpoch' | 'currentEpoch';

/** What a storage reports to the role that owns it, and to nobody else. */
export interface DurabilityEvents {
  /** Everything that was appended up to here is on the disk. Ascending. */
  onLogSynced(durable: Durable<Zxid>): void;
  /** An epoch that was to be written is on the disk. */
  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void;
}

/** For the storage alone: the disk has it. */
export function onDisk<T extends number>(value: T): Durable<T> {
  return value as Durable<T>;
}

/** For a leader alone: a learner has said in ACK or ACKEPOCH that its disk has everything up to here. */
export function onDiskOfLearner(zxid: Zxid): Durable<Zxid> {
  return zxid as Durable<Zxid>;
}

/**
 * For an observer without a log alone (`syncEnabled=false`): nothing of what it has is durable, nothing it says is
 * counted, and it may apply what is committed at once.
 */
export function withoutLog(zxid: Zxid): Durable<Zxid> {
  return zxid as Durable<Zxid>;
}

/** An empty history is on every disk. */
export const EMPTY_HISTORY: Durable<Zxid> = ZXID_ZERO as Durable<Zxid>;
/** Of an empty directory that may have lost its history (`createsDatabase`): no vote counts it, and a leader sends it everything. */
export const UNTRUSTED_HISTORY: Durable<Zxid> = ZXID_NONE as Durable<Zxid>;

/** Below every history. */
export const NOTHING_DURABLE: Durable<Zxid> = ZXID_NONE as Durable<Zxid>;

/** @returns `zxid`, durable because everything up to `watermark` is; null when it lies behind that */
export function durableWithin(zxid: Zxid, watermark: Durable<Zxid>): Durable<Zxid> | null {
  return zxid <= watermark ? (zxid as Durable<Zxid>) : null;
}

/** The later of two. */
export function maxDurable(a: Durable<Zxid>, b: Durable<Zxid>): Durable<Zxid> {
  return a > b ? a : b;
}

/** (epoch, 0): all of the history that the epoch begins with. It was durable before currentEpoch was. */
export function historyOf(currentEpoch: Durable<number>): Durable<Zxid> {
  return makeZxid(currentEpoch, 0) as Durable<Zxid>;
}
