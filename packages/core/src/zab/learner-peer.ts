import {
  Announcement,
  formatZxid,
  type LearnerInfoPacket,
  leaseMsOf,
  PacketType,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { type Durable, NOTHING_DURABLE } from '../base/durable.ts';
import { HeldCommits } from './held-commits.ts';
import type { LinkId } from './leader-host.ts';
import { LearnerSilence } from './learner-silence.ts';
import { PingExchange } from './ping-exchange.ts';

/**
 * How far a learner has come, in this order:
 *
 *     connected ── FOLLOWERINFO ──► identified ── LEADERINFO sent ──► informed ── ACKEPOCH ──► waiting
 *        waiting ── it is the leader's turn ──► streaming ⇄ reading ── NEWLEADER sent ──► announced
 *        announced ── ACK(NEWLEADER) ──► synchronized ── UPTODATE sent ──► serving
 *
 * From `announced` on it is sent what is proposed and committed, as it happens.
 */
export const PeerState = {
  connected: 0,
  identified: 1,
  informed: 2,
  /** Its ACKEPOCH is here; the quorum of them, or a commit, is not. */
  waiting: 3,
  /** It is sent history from memory as its link has room. */
  streaming: 4,
  /** The history that it needs is being read from the disk. */
  reading: 5,
  announced: 6,
  synchronized: 7,
  serving: 8,
} as const;
export type PeerState = (typeof PeerState)[keyof typeof PeerState];

/** Bytes that may wait for a SYNC to one learner. Quorums answer pings faster than they commit: this is never reached. */
const HELD_BYTES_MAX = 64 * 1024 * 1024;

/** A learner at the other end of one connection, as its leader sees it. */
export class LearnerPeer {
  readonly link: LinkId;
  state: PeerState = PeerState.connected;

  /** −1 until it has said who it is. */
  serverId = -1;
  /** It sent OBSERVERINFO: it acknowledges nothing and is sent INFORM. */
  isObserver = false;
  /** It follows, and is a voter: what it acknowledges counts. */
  isVoter = false;
  #announces = 0;
  /** What a server of Apache's, which announces nothing, is not told yet; null of one of ours. */
  held: HeldCommits | null = null;

  /** Last zxid in its log, from ACKEPOCH. */
  lastZxid: Zxid = ZXID_NONE;
  /** It has DIFF, TRUNC or SNAP, and behind that the history up to `sent`. */
  isStarted = false;
  /** How far it has been sent the history. */
  sent: Zxid = ZXID_NONE;
  /** How far it has been sent commits; those behind wait for UPTODATE. */
  committed: Zxid = ZXID_NONE;
  /** What it holds durably, as far as it has said. */
  acked: Durable<Zxid> = NOTHING_DURABLE;
  /** The round of pings that it is at: of its last answer, or the newest one when it was told to serve. */
  round = 0;
  /** The round of the last ping that it has answered; 0 before the first. */
  confirmedRound = 0;
  /** Used where the leader gives leases. */
  readonly pings: PingExchange = new PingExchange();

  /** Counts what it has sent or taken. */
  signsOfLife = 0;

  /** A proposal that it owes an acknowledgement, and since when that is watched. */
  owed: Zxid = ZXID_NONE;
  owedSinceMs = 0;

  readonly #silence: LearnerSilence;

  constructor(link: LinkId, nowMs: number, silenceMaxMs: number) {
    this.link = link;
    this.#silence = new LearnerSilence(nowMs, silenceMaxMs);
  }

  get takesHandOver(): boolean {
    return (this.#announces & Announcement.takesHandOver) !== 0;
  }

  /** It announced that its log is what it says, see `Announcement.keepsLog`. */
  get keepsLog(): boolean {
    return (this.#announces & Announcement.keepsLog) !== 0;
  }

  /** It announced that it follows no leader of an older epoch than its own history. */
  get outlastsOlderEpochs(): boolean {
    return (this.#announces & Announcement.outlastsOlderEpochs) !== 0;
  }

  /** @param leaseMs what the leader gives */
  identify(info: LearnerInfoPacket, serverId: number, isInElectorate: boolean, leaseMs: number): void {
    this.state = PeerState.identified;
    this.serverId = serverId;
    this.isObserver = info.type === PacketType.observerInfo;
    this.isVoter = isInElectorate && !this.isObserver;
    this.#announces = info.announces;
    this.held = info.announces === 0 ? new HeldCommits() : null;
    this.pings.leaseMs = leaseMsOf(info.announces) === leaseMs ? leaseMs : 0;
  }

  /** Something is expected of it, and something else every so many milliseconds. */
  expect(nowMs: number, silenceMaxMs: number): void {
    this.#silence.expect(nowMs, silenceMaxMs);
  }

  /** It is the leader's turn: nothing is expected of it. */
  expectNothing(): void {
    this.#silence.expectNothing();
  }

  /** It has taken a part of what it was sent. Its process may stand still all the same: once it serves, it must answer. */
  onProgress(nowMs: number): void {
    if (this.state !== PeerState.serving) this.onSignOfLife(nowMs);
  }

  /** It has sent something, or taken a part of the history that it is sent. */
  onSignOfLife(nowMs: number): void {
    this.#silence.onSignOfLife(nowMs);
    this.signsOfLife++;
  }

  /** Milliseconds since its last sign of life, or since something was expected of it. */
  silenceMs(nowMs: number): number {
    return this.#silence.lengthMs(nowMs);
  }

  isSilent(nowMs: number): boolean {
    return this.#silence.isTooLong(nowMs);
  }

  /**
   * True when it counts for the quorum that a leader needs to go on. One that waits for the leader stays connected however
   * long that takes, but nobody knows whether it is still there.
   *
   * @param initMs milliseconds of `initLimit`
   */
  isPresent(nowMs: number, initMs: number): boolean {
    if (this.state === PeerState.serving) return true;
    return this.state !== PeerState.connected && this.#silence.lifelessMs(nowMs) <= initMs;
  }

  /**
   * True when it has not acknowledged a proposal for so long. One proposal is watched at a time, the newest when its turn
   * came: that costs nothing per proposal.
   */
  owesTooLong(lastTxn: Zxid, nowMs: number, limitMs: number): boolean {
    if (this.state !== PeerState.serving || this.isObserver) return false;
    if (this.owed > this.acked) return nowMs - this.owedSinceMs > limitMs;
    this.owed = lastTxn;
    this.owedSinceMs = nowMs;
    return false;
  }

  /**
   * Why its connection is to be closed, for people; null when it is not.
   *
   * @param syncLimitMs how long it may take to acknowledge a proposal
   */
  findFault(lastTxn: Zxid, nowMs: number, syncLimitMs: number): string | null {
    if (this.isSilent(nowMs)) return `${this.name} is silent`;
    if (this.owesTooLong(lastTxn, nowMs, syncLimitMs)) {
      return `${this.name} has not acknowledged ${formatZxid(this.owed)} within syncLimit`;
    }
    if (this.held !== null && this.held.bytes > HELD_BYTES_MAX) {
      return `${this.held.bytes} bytes of commits wait for the answer to a sync of ${this.name}`;
    }
    return null;
  }

  /** For people: which learner this is. */
  get name(): string {
    return this.state === PeerState.connected ? 'a learner' : `learner ${this.serverId}`;
  }
}
