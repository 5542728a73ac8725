import { makeZxid, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';

/**
 * Durability as a type: this value, or everything up to it, survives a crash of the machine.
 *
 * The storage creates one when the disk has reported a sync, and during recovery; a leader relies on what a learner
 * reports about its own disk. Acknowledgements, a server's votes for its own txns and the adoption of an epoch are made
 * from durable values only (`zab/acknowledgement.ts`, `zab/committed.ts`), so acknowledging what has merely been
 * received does not compile.
 */
declare const durable: unique symbol;
export type Durable<T> = T & { readonly [durable]: true };

export type EpochFileName = 'acceptedEpoch' | 'currentEpoch';

/** What a storage reports to the role that owns it, and to no other. */
export interface DurabilityEvents {
  /** Everything appended up to here is on disk. Ascending. */
  onLogSynced(durable: Durable<Zxid>): void;
  /** The epoch that was being written is on disk. */
  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void;
}

/** For the storage only: the value is on disk. */
export function onDisk<T extends number>(value: T): Durable<T> {
  return value as Durable<T>;
}

/** For a leader only: a learner has acknowledged (ACK or ACKEPOCH) that everything up to here is on its disk. */
export function onDiskOfLearner(zxid: Zxid): Durable<Zxid> {
  return zxid as Durable<Zxid>;
}

/**
 * For an observer without a log only (`syncEnabled=false`): nothing it has is durable, none of its acknowledgements
 * count, and it may apply committed txns at once.
 */
export function withoutLog(zxid: Zxid): Durable<Zxid> {
  return zxid as Durable<Zxid>;
}

/** An empty history is on every disk. */
export const EMPTY_HISTORY: Durable<Zxid> = ZXID_ZERO as Durable<Zxid>;
/**
 * The history of an empty directory that may have lost its data (`createsDatabase`): its server does not vote, and a
 * leader sends it everything.
 */
export const UNTRUSTED_HISTORY: Durable<Zxid> = ZXID_NONE as Durable<Zxid>;

/** Below every history. */
export const NOTHING_DURABLE: Durable<Zxid> = ZXID_NONE as Durable<Zxid>;

/** @returns `zxid`, durable because everything up to `watermark` is; null when it is above that */
export function durableWithin(zxid: Zxid, watermark: Durable<Zxid>): Durable<Zxid> | null {
  return zxid <= watermark ? (zxid as Durable<Zxid>) : null;
}

/** The later of two. */
export function maxDurable(a: Durable<Zxid>, b: Durable<Zxid>): Durable<Zxid> {
  return a > b ? a : b;
}

/** (epoch, 0): the history with which the epoch begins. It was durable before currentEpoch was. */
export function historyOf(currentEpoch: Durable<number>): Durable<Zxid> {
  return makeZxid(currentEpoch, 0) as Durable<Zxid>;
}
