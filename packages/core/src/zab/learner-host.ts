import type { AckEpochPacket, AckPacket, LearnerPacket, TxnEntry, UnknownPacket, Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { Acknowledgement } from './acknowledgement.ts';
import type { Committed } from './committed.ts';
import type { ZabOptions } from './zab-options.ts';

export interface LearnerOptions extends ZabOptions {
  /** A follower acknowledges, and counts if it is a voter; an observer does neither. */
  readonly kind: 'follower' | 'observer';
  /** Version of the membership that this server follows. A leader with an older one refuses it. */
  readonly configVersion: Zxid;
  /**
   * Epoch of the leader's history according to the election: the one that it stood with, or its current epoch once that
   * is established.
   */
  readonly leaderHistoryEpoch: number;
  /** False: the leader accepts any promise that a learner reports, as Apache's leaders do. */
  readonly leaderChecksPromises: boolean;
  /** False: an observer that does not log txns (`syncEnabled=false`). Ignored for a follower. */
  readonly logsInforms: boolean;
  /**
   * False when this server has replaced a history that cannot be synchronized with the leader's by an empty one, and
   * the leader may lack txns of the replaced one: this server does not count before it has the leader's history.
   */
  readonly isCounted: boolean;
}

/**
 * What a follower or observer asks of its host. An effect returns at once and must not call the learner; its completion
 * is an event.
 */
export interface LearnerEffects {
  /** Packets leave in this order. */
  send(packet: Exclude<LearnerPacket, UnknownPacket | AckPacket | AckEpochPacket> | Acknowledgement): void;
  /**
   * No packets until `resumeLink`, not even those of a chunk that has arrived already: the link buffers them in order,
   * and backpressure holds the rest. Buffered packets are delivered by later events, never from within `resumeLink`.
   */
  pauseLink(): void;
  resumeLink(): void;
  /** Durable as acceptedEpoch once `onEpochDurable` is called. */
  acceptEpoch(epoch: number): void;
  /** Durable as currentEpoch once `onEpochDurable` is called. @param history end of the history adopted with it */
  adoptEpoch(epoch: number, history: Durable<Zxid>): void;
  /**
   * Appends to the log; durable once `onLogSynced` is called. `payload` is a read-only view into the received chunk.
   */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** The leader has chosen how this learner catches up, and named this zxid. Informational. */
  synchronizing(mode: 'diff' | 'trunc' | 'snap', zxid: Zxid): void;
  /** Discards what follows `zxid`, durably (log and snapshots) and in memory; `onReady` follows. */
  truncate(zxid: Zxid): void;
  /** Replaces the whole history by the received snapshot, durably; `onReady` follows. */
  installSnapshot(): void;
  /** Uses the history as it was recovered; `onReady` follows. */
  keepHistory(): void;
  /** A txn that will be applied once it is committed; called in the order of the zxids. */
  proposed(entry: TxnEntry): void;
  /** An Apache leader has skipped these zxids; placeholders were appended and proposed. Informational. */
  filled(first: Zxid, last: Zxid): void;
  /**
   * Everything up to here is committed, and durable here: it may be applied and answered. Ascending; also called during
   * synchronization, before clients are served.
   */
  committed(watermark: Committed<Zxid>): void;
  /** Synchronized, and `committed` has been called for everything committed at UPTODATE: clients may be served. */
  serve(epoch: number): void;
  /**
   * `count` of this learner's syncs have been answered since the beginning of the role. `committed` was called before
   * for everything that was committed when the leader answered.
   */
  synced(count: number): void;
  revalidated(sessionId: bigint, isValid: boolean): void;
  /** Answers a ping: sends PING with this zxid and the sessions that were active since the last one. */
  pinged(zxid: Zxid): void;
  /** A proposed txn changes the membership; from now on this server needs quorums of both. */
  membershipProposed(zxid: Zxid, data: Uint8Array | null): void;
  /**
   * NEWLEADER: the newest membership of the leader, in force when clients are served if it is committed by then. A
   * change seen earlier that the leader does not know is void.
   *
   * @param pending zxid of a change that this leader has proposed but not committed; null if there is none
   */
  membershipAnnounced(configText: string, pending: Zxid | null): void;
  /** The leader has announced that a membership change is committed; `committed` follows. */
  membershipAgreed(zxid: Zxid, designatedLeader: number): void;
  /** A membership change is committed, and applied here. @param designatedLeader leads the new membership */
  membershipCommitted(zxid: Zxid, designatedLeader: number): void;
  /** The leader steps down and wants this server as its successor. The host ends the role. */
  handedOver(): void;
  /** The role is over: the host closes the link. Called once, as the last effect; later events are ignored. */
  stop(reason: string): void;
}
