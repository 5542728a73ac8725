import type { LearnerPacket, TxnEntry, UnknownPacket, Zxid } from '@meerkat/protocol';
import type { Committed } from './committed.ts';

/** What a follower or observer asks of its host. An effect returns at once; what comes of it is an event. */
export interface LearnerEffects {
  send(packet: Exclude<LearnerPacket, UnknownPacket>): void;
  /** No packets until `resumeLink`: they wait in the network. */
  pauseLink(): void;
  resumeLink(): void;
  /** Durable under its name once `onEpochDurable` is told. */
  writeEpoch(name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void;
  /** Into the log; durable once `onLogSynced` is told. */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** Forgets what follows `zxid`, on the disk and in memory; `onReady` follows. */
  truncate(zxid: Zxid): void;
  /** Makes the snapshot that the link has received the whole history, durably; `onReady` follows. */
  installSnapshot(): void;
  /** Uses the history as it was recovered; `onReady` follows. */
  keepHistory(): void;
  /** A txn that will be applied once it is committed; in the order of the zxids. */
  proposed(entry: TxnEntry): void;
  /** Everything up to here is committed, and durable here: it may be applied and answered. */
  committed(watermark: Committed<Zxid>): void;
  /** Synchronized: clients may be served. */
  serve(epoch: number): void;
  /** So many of this learner's syncs are answered, from the beginning of the role. */
  synced(count: number): void;
  revalidated(sessionId: bigint, isValid: boolean): void;
  /** A ping is to be answered: sends PING with this zxid and the sessions that were heard of since the last one. */
  pinged(zxid: Zxid): void;
  /** The leader steps down and wants this server as its successor. */
  handedOver(): void;
  /** The role is over. Told once, as the last effect. */
  stop(reason: string): void;
}
