import type {
  ForwardedRequestPacket,
  LeaderPacket,
  RevalidateRequestPacket,
  SessionTimeout,
  UnknownPacket,
  Zxid,
} from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { Committed } from './committed.ts';

/** One connection of a learner; a number that is never used again while the leader leads. */
export type LinkId = number;

/** What servers have said of themselves in elections. */
export interface HeardVotes {
  /** Epoch of the history with which a server stood for election last; null when it has not been heard. */
  historyEpochOf(serverId: number): number | null;
}

/** What a leader knows of the memberships; the host keeps them, and they change while it leads. */
export interface LeaderMembership {
  /** Of the last committed one. */
  readonly version: Zxid;
  readonly committedText: string;
  /** The last proposed one. */
  readonly newestText: string;
  /** False when the newest one has this server not as a participant at the same address: its leader makes way. */
  readonly keepsLeader: boolean;
}

/** What is asked for on behalf of learners, by a leader or by a follower that feeds observers. */
export interface LearnerTraffic {
  send(link: LinkId, packet: Exclude<LeaderPacket, UnknownPacket>): void;
  /** PROPOSAL to a follower. */
  sendProposal(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** INFORM to an observer. */
  sendInform(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** SNAP, and the database as it is applied now; what is sent afterwards follows it. The learner calls it `zxid`. */
  sendSnapshot(link: LinkId, zxid: Zxid): void;
  /**
   * Reads the log from the disk, up to a limit of the host's; `onHistoryRead` follows.
   *
   * The first entry is the last one that is not later than `from`, and when `from` is 0 the first txn that there ever
   * was; the last one is not later than `upTo`, and later than `from` if there is such a txn. Nothing is given when the log does not reach back so far, when it has a
   * gap on the way (where a snapshot was installed), or when a snapshot is cheaper.
   */
  readHistory(link: LinkId, from: Zxid, upTo: Zxid): void;
  /** Ends a connection; `onLearnerClosed` does not follow. */
  closeLearner(link: LinkId, reason: string): void;
  /** A learner begins to catch up: it was at `from`, and the history that it is sent begins behind `zxid`. For people. */
  synchronizing(serverId: number, mode: 'diff' | 'trunc' | 'snap', from: Zxid, zxid: Zxid): void;
  /** A learner has acknowledged NEWLEADER: it has the history up to `zxid`. For people. */
  synchronized(serverId: number, zxid: Zxid): void;
}

/**
 * What a leader asks of its host. An effect returns at once; what comes of it is an event.
 *
 * Everything sent over one link arrives in the order in which it was sent, a snapshot included, until the link closes.
 * After each turn in which something was sent over it, `onLearnerRoom` follows, as soon as little of that waits to leave.
 *
 * While `established`, `committed`, `synced`, `requested`, `revalidated` and `answered` run, the host may call `propose`,
 * `nextZxid` and `sync`, and send over links; no effect calls anything else of the leader's, but `requested`, which may
 * call `sendSync`. `propose` in its turn asks for `append` and `sendProposal` only, `sync` for nothing, and `sendSync`
 * for `send`.
 */
export interface LeaderEffects extends LearnerTraffic {
  /** Durable as acceptedEpoch once `onEpochDurable` is told. */
  acceptEpoch(epoch: number): void;
  /** Durable as currentEpoch once `onEpochDurable` is told. @param history where the history ends that it comes with */
  adoptEpoch(epoch: number, history: Durable<Zxid>): void;
  /** Into the log; durable once `onLogSynced` is told. */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** The server behind the link, or this one where it is null, holds every proposal up to this one on its disk. */
  acknowledged(link: LinkId | null, zxid: Durable<Zxid>): void;
  /**
   * A txn that is about to be proposed changes the membership: from now on whatever is decided needs a quorum of both, and
   * the electorate says so when this returns.
   */
  membershipProposed(zxid: Zxid, data: Uint8Array | null): void;
  /** Its change is committed: the electorate is that of the new membership alone when this returns. */
  membershipCommitted(zxid: Zxid): void;
  /** A quorum has the history of this epoch, and with it the newest membership: it is in force when this returns. */
  membershipEstablished(): void;
  /** A server cannot be taken in, and somebody has to do something about it. For people. */
  staysOut(reason: string): void;
  /** The quorum has synchronized: the whole history is committed, clients may be served and txns proposed. */
  established(epoch: Durable<number>, history: Committed<Zxid>): void;
  /** Everything up to here is committed, and durable here: it may be applied and answered. Ascending. */
  committed(watermark: Committed<Zxid>): void;
  /** Every ticket up to this one is answered. `committed` has been told of everything that was proposed before it. */
  synced(ticket: number): void;
  /** A learner's client asks for a write, a sync (`sendSync` answers it), a session or its end. The last effect of its event. */
  requested(link: LinkId, serverId: number, request: ForwardedRequestPacket): void;
  /** A learner's client wants to go on with its session; answered by a packet over the same link. The last effect. */
  revalidated(link: LinkId, serverId: number, request: RevalidateRequestPacket): void;
  /** A learner has heard of these sessions. */
  touched(sessions: readonly SessionTimeout[]): void;
  /** A learner that holds leases has answered a ping: sessions may have come to their end. The last effect of its event. */
  answered(serverId: number): void;
  /**
   * This server leads no more. Told once, as the last effect: the leader asks for nothing afterwards and ignores every
   * event. The host closes the links, after what has been sent over them has left: HANDOVER may be among it.
   */
  stepDown(reason: string): void;
}
