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
 *        waiting ── the leader starts ──► streaming ⇄ reading ── NEWLEADER sent ──► announced
 *        announced ── ACK(NEWLEADER) ──► synchronized ── UPTODATE sent ──► serving
 *
 * From `announced` on it receives the broadcast.
 */
export const PeerState = {
  connected: 0,
  identified: 1,
  informed: 2,
  /** Its ACKEPOCH has arrived; it waits for a quorum of ACKEPOCHs, or for a commit. */
  waiting: 3,
  /** History is sent from memory as its link has room. */
  streaming: 4,
  /** The history that it needs is being read from disk. */
  reading: 5,
  announced: 6,
  synchronized: 7,
  serving: 8,
} as const;
export type PeerState = (typeof PeerState)[keyof typeof PeerState];

/**
 * Limit of bytes held back for a SYNC to one learner. Not reached in practice: quorums answer pings faster than they
 * commit.
 */
const HELD_BYTES_MAX = 64 * 1024 * 1024;

/** A learner at the other end of one connection, as its leader sees it. */
export class LearnerPeer {
  readonly link: LinkId;
  state: PeerState = PeerState.connected;

  /** −1 until it has sent its id. */
  serverId = -1;
  /** It sent OBSERVERINFO: it acknowledges no txns and is sent INFORM. */
  isObserver = false;
  /** A follower that is a voter: its ACKs count. */
  isVoter = false;
  #announces = 0;
  /** Commits held back from an Apache server, which announces nothing; null for one of ours. */
  held: HeldCommits | null = null;

  /** Last zxid in its log, from ACKEPOCH. */
  lastZxid: Zxid = ZXID_NONE;
  /** It was sent DIFF, TRUNC or SNAP, followed by the history up to `sent`. */
  isStarted = false;
  /** How far it has been sent the history. */
  sent: Zxid = ZXID_NONE;
  /** How far it has been sent commits; later ones wait for UPTODATE. */
  committed: Zxid = ZXID_NONE;
  /** What it holds durably, as reported by its ACKs. */
  acked: Durable<Zxid> = NOTHING_DURABLE;
  /** Its current ping round: that of its last answer, or the newest one when it was told to serve. */
  round = 0;
  /** The round of the last ping that it has answered; 0 before the first. */
  confirmedRound = 0;
  /** Used if the leader grants leases. */
  readonly pings: PingExchange = new PingExchange();

  /** Counts packets that it has sent and buffered data that it has read. */
  signsOfLife = 0;

  /** A proposal that it has not acknowledged yet, and since when that is monitored. */
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

  /** It announced that its log can be relied on, see `Announcement.keepsLog`. */
  get keepsLog(): boolean {
    return (this.#announces & Announcement.keepsLog) !== 0;
  }

  /** It announced that it follows no leader of an older epoch than its own history. */
  get refusesOlderEpochs(): boolean {
    return (this.#announces & Announcement.refusesOlderEpochs) !== 0;
  }

  /** @param leaseMs the lease that the leader grants */
  identify(info: LearnerInfoPacket, serverId: number, isInElectorate: boolean, leaseMs: number): void {
    this.state = PeerState.identified;
    this.serverId = serverId;
    this.isObserver = info.type === PacketType.observerInfo;
    this.isVoter = isInElectorate && !this.isObserver;
    this.#announces = info.announces;
    this.held = info.announces === 0 ? new HeldCommits() : null;
    this.pings.leaseMs = leaseMsOf(info.announces) === leaseMs ? leaseMs : 0;
  }

  /** Expects a sign of life from it at least every `silenceMaxMs` from now on. */
  expect(nowMs: number, silenceMaxMs: number): void {
    this.#silence.expect(nowMs, silenceMaxMs);
  }

  /** Nothing is expected of it until the leader continues. */
  expectNothing(): void {
    this.#silence.expectNothing();
  }

  /** It has read buffered data. Its process may hang nevertheless, so a serving learner must send something. */
  onProgress(nowMs: number): void {
    if (this.state !== PeerState.serving) this.onSignOfLife(nowMs);
  }

  /** It has sent something, or read a part of the history. */
  onSignOfLife(nowMs: number): void {
    this.#silence.onSignOfLife(nowMs);
    this.signsOfLife++;
  }

  /** Milliseconds since its last sign of life, or since the last `expect`. */
  silenceMs(nowMs: number): number {
    return this.#silence.lengthMs(nowMs);
  }

  isSilent(nowMs: number): boolean {
    return this.#silence.isTooLong(nowMs);
  }

  /**
   * True when it counts for the quorum that a leader needs to keep leading. A learner that waits for the leader stays
   * connected without a limit, but does not count once it has been silent for `initMs`.
   *
   * @param initMs milliseconds of `initLimit`
   */
  isPresent(nowMs: number, initMs: number): boolean {
    if (this.state === PeerState.serving) return true;
    return this.state !== PeerState.connected && this.#silence.lifelessMs(nowMs) <= initMs;
  }

  /**
   * True when it has not acknowledged a proposal within `limitMs`. Only one proposal at a time is monitored, the newest
   * one when monitoring begins, so there is no cost per proposal.
   */
  owesTooLong(lastTxn: Zxid, nowMs: number, limitMs: number): boolean {
    if (this.state !== PeerState.serving || this.isObserver) return false;
    if (this.owed > this.acked) return nowMs - this.owedSinceMs > limitMs;
    this.owed = lastTxn;
    this.owedSinceMs = nowMs;
    return false;
  }

  /**
   * Why its connection must be closed, human-readable; null when it must not.
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

  /** Human-readable name. */
  get name(): string {
    return this.state === PeerState.connected ? 'a learner' : `learner ${this.serverId}`;
  }
}
