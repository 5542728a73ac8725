import type {
  ForwardedRequestPacket,
  LeaderPacket,
  RevalidateRequestPacket,
  SessionTimeout,
  UnknownPacket,
  Zxid,
} from '@meerkat/protocol';
import type { Committed } from './committed.ts';

/** One connection of a learner; a number that is never used again while the leader leads. */
export type LinkId = number;

/**
 * What a leader asks of its host. An effect returns at once; what comes of it is an event.
 *
 * Everything sent over one link arrives in the order in which it was sent, a snapshot included, until the link closes.
 */
export interface LeaderEffects {
  send(link: LinkId, packet: Exclude<LeaderPacket, UnknownPacket>): void;
  /** PROPOSAL to a follower. */
  sendProposal(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** INFORM to an observer. */
  sendInform(link: LinkId, zxid: Zxid, payload: Uint8Array): void;
  /** SNAP with the zxid that is applied now, and the database; what is sent afterwards follows it. */
  sendSnapshot(link: LinkId): void;
  /**
   * Reads the log from the disk, up to a limit of the host's; `onHistoryRead` follows. A log that does not reach back
   * without a gap gives nothing.
   */
  readHistory(link: LinkId, after: Zxid, upTo: Zxid): void;
  /** Ends a connection; `onLearnerClosed` does not follow. */
  closeLearner(link: LinkId, reason: string): void;
  /** Durable under its name once `onEpochDurable` is told. */
  writeEpoch(name: 'acceptedEpoch' | 'currentEpoch', epoch: number): void;
  /** Into the log; durable once `onLogSynced` is told. */
  append(zxid: Zxid, payload: Uint8Array): void;
  /** The quorum has synchronized: the whole history is committed, clients may be served and txns proposed. */
  established(epoch: number, history: Committed<Zxid>): void;
  /** Everything up to here is committed, and durable here: it may be applied and answered. */
  committed(watermark: Committed<Zxid>): void;
  /** Every ticket up to this one is answered. */
  synced(ticket: number): void;
  /** A learner's client asks for a write, a sync, a session or its end. */
  requested(link: LinkId, serverId: number, request: ForwardedRequestPacket): void;
  /** A learner's client wants to go on with its session; answered by a packet over the same link. */
  revalidated(link: LinkId, serverId: number, request: RevalidateRequestPacket): void;
  /** A learner has heard of these sessions. */
  touched(sessions: readonly SessionTimeout[]): void;
  /** This server leads no more. Told once, as the last effect. */
  stepDown(reason: string): void;
}
