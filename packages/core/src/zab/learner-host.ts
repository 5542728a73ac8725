import type { AckEpochPacket, AckPacket, LearnerPacket, TxnEntry, UnknownPacket, Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { Acknowledgement } from './acknowledgement.ts';
import type { Committed } from './committed.ts';
import type { ZabOptions } from './zab-options.ts';

export interface LearnerOptions extends ZabOptions {
  /** A follower acknowledges, and counts when it is a voter; an observer only listens. */
  readonly kind: 'follower' | 'observer';
  /** Version of the membership that this server follows. A leader with an older one refuses it. */
  readonly configVersion: Zxid;
  /**
   * Epoch of the leader's history, as the election has it: what it stood with, or its present epoch once that is
   * established.
   */
  readonly leaderHistoryEpoch: number;
  /** False: the leader believes whatever a learner says it has promised, as Apache's do. */
  readonly leaderJudgesPromises: boolean;
  /** False: an observer that writes no txns into its log (`syncEnabled=false`). Means nothing to a follower. */
  readonly logsInforms: boolean;
  /**
   * False when a history that begins with nothing takes the place of one that cannot be brought to the leader's, and the
   * leader may be missing what is in that one: this server is not counted before it has the leader's.
   */
  readonly isCounted: boolean;
}

/**
 * What a follower or observer asks of its host. An effect returns at once and calls nothing of the learner's; what comes
 * of it is an event.
 */
export interface LearnerEffects {
  /** Packets leave in this order. */
  send(packet: Exclude<LearnerPacket, UnknownPacket | AckPacket | AckEpochPacket> | Acknowledgement): void;
  /**
   * No packets until `resumeLink`, not even those of a chunk that has arrived already: the link keeps them in order, and
   * the rest waits in the network. What was kept is delivered by later events, never from within `resumeLink`.
   */
  pauseLink(): void;
  resumeLink(): void;
  /** Durable as acceptedEpoch once `onEpochDurable` is told. */
  acceptEpoch(epoch: number): void;
  /** Durable as currentEpoch once `onEpochDurable` is told. @param history where the history ends that it comes with */
  adoptEpoch(epoch: number, history: Durable<Zxid>): void;
  /** Into the log; durable once `onLogSynced` is told. `payload` is a view into the chunk that arrived; nobody writes to it. */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** The leader has said how this learner's history becomes its own, with the zxid that it names. For people. */
  synchronizing(mode: 'diff' | 'trunc' | 'snap', zxid: Zxid): void;
  /** Forgets what follows `zxid`, durably (log and snapshots) and in memory; `onReady` follows. */
  truncate(zxid: Zxid): void;
  /** Makes the snapshot that the link has received the whole history, durably; `onReady` follows. */
  installSnapshot(): void;
  /** Uses the history as it was recovered; `onReady` follows. */
  keepHistory(): void;
  /** A txn that will be applied once it is committed; in the order of the zxids. */
  proposed(entry: TxnEntry): void;
  /** An Apache leader has proposed nothing for these zxids; placeholders were appended and proposed. For people. */
  filled(first: Zxid, last: Zxid): void;
  /**
   * Everything up to here is committed, and durable here: it may be applied and answered. Ascending; told during
   * synchronization too, when nobody is served yet.
   */
  committed(watermark: Committed<Zxid>): void;
  /** Synchronized, and everything that the leader had committed by then has been told: clients may be served. */
  serve(epoch: number): void;
  /**
   * So many of this learner's syncs are answered, from the beginning of the role. `committed` has been told before of
   * everything that was committed when the leader answered.
   */
  synced(count: number): void;
  revalidated(sessionId: bigint, isValid: boolean): void;
  /** A ping is to be answered: sends PING with this zxid and the sessions that were heard of since the last one. */
  pinged(zxid: Zxid): void;
  /** A txn that was proposed changes the membership; from now on this server needs the say of both. */
  membershipProposed(zxid: Zxid, data: Uint8Array | null): void;
  /**
   * NEWLEADER: the newest membership of the leader, which is in force when clients are served, if it is committed by
   * then. What was seen before, and the leader does not know, has come to nothing.
   *
   * @param pending zxid of a change that this leader has proposed and not committed; null when there is none
   */
  membershipAnnounced(configText: string, pending: Zxid | null): void;
  /** The leader has said that a change of the membership is committed; `committed` follows. */
  membershipAgreed(zxid: Zxid, designatedLeader: number): void;
  /** A change of the membership is committed, and applied here. @param designatedLeader who leads the new one */
  membershipCommitted(zxid: Zxid, designatedLeader: number): void;
  /** The leader steps down and wants this server as its successor. The host ends the role. */
  handedOver(): void;
  /** The role is over: the host closes the link. Told once, as the last effect, whatever events still come. */
  stop(reason: string): void;
}
