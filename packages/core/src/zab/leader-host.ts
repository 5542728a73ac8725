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

/** One connection of a learner; a number that is not reused while the leader leads. */
export type LinkId = number;

/** What servers have reported about themselves in elections. */
export interface PeerVotes {
  /** Epoch of the history with which a server last stood for election; null if unknown. */
  historyEpochOf(serverId: number): number | null;
}

/** The memberships as the leader sees them. The host maintains them, and they change while it leads. */
export interface LeaderMembership {
  /** Of the last committed membership. */
  readonly version: Zxid;
  readonly committedText: string;
  /** The last proposed membership. */
  readonly newestText: string;
  /** False when the newest membership lacks this server as a participant at the same address: it then hands over. */
  readonly keepsLeader: boolean;
}

/** Effects concerning learners, of a leader or of a follower that feeds observers. */
export interface LearnerTraffic {
  send(link: LinkId, packet: Exclude<LeaderPacket, UnknownPacket>): void;
  /** PROPOSAL to a follower. */
  sendProposal(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** INFORM to an observer. */
  sendInform(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** SNAP with this zxid, and the database as applied now. Later packets follow the snapshot. */
  sendSnapshot(link: LinkId, zxid: Zxid): void;
  /**
   * Reads the log from disk, up to a limit of the host's; `onHistoryRead` follows.
   *
   * The first entry is the last txn not later than `from`, or the first txn ever when `from` is 0. The last entry is
   * not later than `upTo`, and later than `from` if there is such a txn. The result is empty when the log does not
   * reach back far enough, has a gap in the range (where a snapshot was installed), or when a snapshot is cheaper.
   */
  readHistory(link: LinkId, from: Zxid, upTo: Zxid): void;
  /** Closes a connection; `onLearnerClosed` does not follow. */
  closeLearner(link: LinkId, reason: string): void;
  /** A learner at `from` begins to catch up; the history that it is sent begins behind `zxid`. Informational. */
  synchronizing(serverId: number, mode: 'diff' | 'trunc' | 'snap', from: Zxid, zxid: Zxid): void;
  /** A learner has acknowledged NEWLEADER: it has the history up to `zxid`. Informational. */
  synchronized(serverId: number, zxid: Zxid): void;
}

/**
 * What a leader asks of its host. An effect returns at once; its completion is an event.
 *
 * Everything sent over one link arrives in the order in which it was sent, a snapshot included, until the link closes.
 * After each turn in which something was sent over a link, `onLearnerRoom` follows once little of it is buffered.
 *
 * While `established`, `committed`, `synced`, `requested`, `revalidated` and `answered` run, the host may call `propose`,
 * `nextZxid` and `sync`, and send over links. No effect may call anything else of the leader, except `requested`, which
 * may call `sendSync`. In turn, `propose` uses only `append` and `sendProposal`, `sync` nothing, and `sendSync` only
 * `send`.
 */
export interface LeaderEffects extends LearnerTraffic {
  /** Durable as acceptedEpoch once `onEpochDurable` is called. */
  acceptEpoch(epoch: number): void;
  /** Durable as currentEpoch once `onEpochDurable` is called. @param history end of the history adopted with it */
  adoptEpoch(epoch: number, history: Durable<Zxid>): void;
  /** Appends to the log; durable once `onLogSynced` is called. */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** The learner, or this server if `link` is null, holds every proposal up to `zxid` on its disk. */
  acknowledged(link: LinkId | null, zxid: Durable<Zxid>): void;
  /**
   * A txn that is about to be proposed changes the membership: from now on every decision needs a quorum of both, and
   * the electorate requires that when this returns.
   */
  membershipProposed(zxid: Zxid, data: Uint8Array | null): void;
  /** That change is committed: the electorate is that of the new membership alone when this returns. */
  membershipCommitted(zxid: Zxid): void;
  /** A quorum has the history of this epoch, and with it the newest membership: it is in force when this returns. */
  membershipEstablished(): void;
  /** A server cannot join until the operator acts. Informational. */
  staysOut(reason: string): void;
  /** The quorum has synchronized: the whole history is committed, clients may be served and txns proposed. */
  established(epoch: Durable<number>, history: Committed<Zxid>): void;
  /** Everything up to here is committed, and durable here: it may be applied and answered. Ascending. */
  committed(watermark: Committed<Zxid>): void;
  /** Every ticket up to this one is answered. `committed` was called before for everything proposed before it. */
  synced(ticket: number): void;
  /**
   * A learner's client requests a write, a sync (answered by `sendSync`), a session or its end.
   * Last effect of its event.
   */
  requested(link: LinkId, serverId: number, request: ForwardedRequestPacket): void;
  /** A learner's client wants to resume its session; answered over the same link. Last effect of its event. */
  revalidated(link: LinkId, serverId: number, request: RevalidateRequestPacket): void;
  /** These sessions were active at a learner. */
  touched(sessions: readonly SessionTimeout[]): void;
  /** A learner that holds leases has answered a ping, so sessions may now expire. Last effect of its event. */
  answered(serverId: number): void;
  /**
   * This server no longer leads. Called once, as the last effect: the leader then ignores every event. The host closes
   * the links after everything sent over them has left, which may include HANDOVER.
   */
  stepDown(reason: string): void;
}
