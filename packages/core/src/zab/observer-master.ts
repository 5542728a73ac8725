/**
 * A follower that feeds observers on behalf of its leader (ObserverMaster, `observerMasterPort`). See docs/modes.md.
 *
 *     leader ──► follower ──► its log, its tree
 *                   │  ▲
 *          INFORM …  ▼  │ REQUEST, REVALIDATE, PING
 *                 observers
 *
 * To an observer it acts as a leader of the follower's epoch: the same handshake, catch-up and feed. It decides
 * nothing. Requests of observers are forwarded to the leader in the order in which they arrive.
 *
 * 1. An observer is sent txns that are committed and durable here, in the order of the zxids.
 * 2. An observer that is ahead of this server in this epoch waits until this server has caught up.
 * 3. SYNC and the answer to REVALIDATE follow everything that the leader had sent before its answer.
 */
import {
  Announcement,
  counterOf,
  epochOf,
  type ForwardedRequestPacket,
  formatZxid,
  type LearnerInfoPacket,
  type LearnerPacket,
  makeZxid,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type Zxid,
} from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import { CatchUp, type CatchUpStep, describeDeadEnd } from './catch-up.ts';
import type { FollowedHistory } from './followed-history.ts';
import { Heartbeat } from './heartbeat.ts';
import type { HistoryEntry } from './history.ts';
import type { LeaderMembership, LearnerTraffic, LinkId } from './leader-host.ts';
import { LearnerAdmission } from './learner-admission.ts';
import { LearnerFeed } from './learner-feed.ts';
import { LearnerPeer, PeerState } from './learner-peer.ts';
import { LearnerPeers } from './learner-peers.ts';
import type { ZabOptions } from './zab-options.ts';

/** What an observer master asks of its host. An effect returns at once. */
export interface ObserverMasterEffects extends LearnerTraffic {
  /** An observer's client requests a write, a sync, a session or its end. */
  requested(link: LinkId, request: ForwardedRequestPacket): void;
  revalidated(link: LinkId, request: RevalidateRequestPacket): void;
  /** These sessions were active at an observer. */
  touched(sessions: readonly SessionTimeout[]): void;
}

export interface ObserverMasterParts {
  readonly options: ZabOptions;
  readonly clock: Clock;
  readonly membership: LeaderMembership;
  readonly history: FollowedHistory;
  readonly effects: ObserverMasterEffects;
}

export class ObserverMaster {
  readonly #options: ZabOptions;
  readonly #clock: Clock;
  readonly #history: FollowedHistory;
  readonly #effects: ObserverMasterEffects;
  readonly #peers = new LearnerPeers();
  readonly #admission: LearnerAdmission;
  readonly #catchUp: CatchUp;
  readonly #feed: LearnerFeed;
  readonly #heartbeat: Heartbeat;

  constructor({ options, clock, membership, history, effects }: ObserverMasterParts) {
    const { serverId, tickTimeMs, txnBytesMax } = options;
    this.#options = options;
    this.#clock = clock;
    this.#history = history;
    this.#effects = effects;
    this.#admission = new LearnerAdmission(this.#peers, serverId, membership, tickTimeMs, {
      isOver: () => false,
      onAdmitted: (peer, info) => this.#admit(peer, info),
      onRefused: (peer, reason) => this.#close(peer, reason),
    });
    this.#catchUp = new CatchUp(history, effects, txnBytesMax, new Set());
    this.#feed = new LearnerFeed(this.#peers, history, effects, membership);
    this.#heartbeat = new Heartbeat(tickTimeMs);
    this.#heartbeat.schedule(clock.monotonicMs());
  }

  /** The connected observers. */
  get learners(): Iterable<
    Readonly<Pick<LearnerPeer, 'link' | 'serverId' | 'isObserver' | 'isVoter' | 'state' | 'acked'>>
  > {
    return this.#peers.values();
  }

  /** Milliseconds of the monotonic clock. */
  get nextDeadlineMs(): number {
    return this.#heartbeat.dueMs;
  }

  /* ------------------------------------------------------------------------------------- from observers ---- */

  onLearnerConnected(link: LinkId): void {
    this.#peers.connect(new LearnerPeer(link, this.#clock.monotonicMs(), this.#initMs));
  }

  onLearnerClosed(link: LinkId): void {
    const peer = this.#peers.get(link);
    if (peer === undefined) return;
    this.#forget(peer);
    this.#admission.admitWinners(this.#clock.monotonicMs());
  }

  onLearnerPacket(link: LinkId, packet: LearnerPacket): void {
    const peer = this.#peers.get(link);
    if (peer === undefined) return;
    peer.onSignOfLife(this.#clock.monotonicMs());
    if (peer.state === PeerState.connected && packet.type !== PacketType.observerInfo) {
      this.#close(peer, 'the first packet of an observer must be OBSERVERINFO: only observers are fed here');
      return;
    }
    switch (packet.type) {
      case PacketType.observerInfo:
      case PacketType.followerInfo:
        this.#admission.onInfo(peer, packet, this.#clock.monotonicMs());
        return;
      case PacketType.ackEpoch:
        this.#onAckEpoch(peer, packet.zxid);
        return;
      case PacketType.ack:
        this.#onAck(peer, packet.zxid);
        return;
      case PacketType.ping:
        if (peer.state === PeerState.serving && packet.sessions.length > 0) this.#effects.touched(packet.sessions);
        return;
      case PacketType.request:
        if (this.#mayAsk(peer, 'REQUEST')) this.#effects.requested(link, packet);
        return;
      case PacketType.revalidate:
        if (this.#mayAsk(peer, 'REVALIDATE')) this.#effects.revalidated(link, packet);
        return;
      case null:
        return;
    }
  }

  #admit(peer: LearnerPeer, info: LearnerInfoPacket): void {
    // The leader grants leases only to learners connected to it directly.
    peer.identify(info, info.serverId ?? -1, false, 0);
    peer.state = PeerState.informed;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#effects.send(peer.link, {
      type: PacketType.leaderInfo,
      zxid: makeZxid(this.#history.epoch, 0),
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      announces: Announcement.takesHandOver,
    });
  }

  #onAckEpoch(peer: LearnerPeer, lastZxid: Zxid): void {
    if (peer.state !== PeerState.informed) {
      this.#close(peer, `${peer.name} sends an unexpected ACKEPOCH`);
      return;
    }
    peer.state = PeerState.waiting;
    peer.lastZxid = lastZxid;
    this.#maybeStartSync(peer);
  }

  #maybeStartSync(peer: LearnerPeer): void {
    if (peer.state !== PeerState.waiting) return;
    const { lastZxid } = peer;
    // An observer's txns are committed: this server is behind the one that fed it before.
    if (epochOf(lastZxid) === this.#history.epoch && lastZxid > this.#history.committed) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.start(peer));
  }

  #onCaughtUp(peer: LearnerPeer, step: CatchUpStep): void {
    if (step === 'dead end') this.#close(peer, describeDeadEnd(peer));
    if (step !== 'complete') return;
    peer.state = PeerState.announced;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#feed.announce(peer);
  }

  #onAck(peer: LearnerPeer, zxid: Zxid): void {
    if (counterOf(zxid) > 0 || peer.state < PeerState.announced) {
      this.#close(peer, `${peer.name} acknowledges ${formatZxid(zxid)}, and observers acknowledge no txns`);
      return;
    }
    if (peer.state > PeerState.announced || epochOf(zxid) !== this.#history.epoch) return;
    this.#effects.synchronized(peer.serverId, peer.committed);
    peer.state = PeerState.serving;
    peer.expect(this.#clock.monotonicMs(), this.#syncMs);
    this.#feed.welcome(peer);
  }

  /** Result of `readHistory`. */
  onHistoryRead(link: LinkId, entries: readonly HistoryEntry[]): void {
    const peer = this.#peers.get(link);
    if (peer?.state !== PeerState.reading) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.onHistoryRead(peer, entries));
  }

  /** The link has room: little of what was sent over it is still buffered. */
  onLearnerRoom(link: LinkId): void {
    const peer = this.#peers.get(link);
    if (peer?.state !== PeerState.streaming) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.onRoom(peer));
  }

  /** The observer has read buffered data. */
  onLearnerProgress(link: LinkId): void {
    this.#peers.get(link)?.onProgress(this.#clock.monotonicMs());
  }

  /* -------------------------------------------------------------------------------------- from the leader ---- */

  /** The leader has announced that this membership change is committed; `onCommitted` follows. */
  activate(zxid: Zxid, designatedLeader: number): void {
    this.#feed.activate(zxid, designatedLeader);
  }

  /** More txns are committed, and durable here. */
  onCommitted(before: Zxid): void {
    this.#feed.commit(before);
  }

  /** Starts observers that waited for this server. Only now, so that NEWLEADER names the membership now in force. */
  onTurnEnd(): void {
    for (const peer of this.#peers.values()) this.#maybeStartSync(peer);
  }

  /** An observer waits for the sync with this ticket, which is not answered yet. */
  awaitSync(link: LinkId, ticket: number): void {
    const peer = this.#peers.get(link);
    if (peer !== undefined) this.#feed.sync(peer, ticket, ticket - 1);
  }

  /** Every ticket up to this one is answered. */
  onSynced(ticket: number): void {
    this.#feed.onSynced(ticket);
  }

  /** True when this observer has been told of everything up to `zxid`. */
  hasSentCommit(link: LinkId, zxid: Zxid): boolean {
    return this.#feed.hasSentCommit(this.#peers.get(link), zxid);
  }

  /* ------------------------------------------------------------------------------------------- liveness ---- */

  onTick(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#heartbeat.dueMs) return;
    this.#heartbeat.schedule(nowMs);
    this.#admission.refuseRivals();
    this.#admission.admitWinners(nowMs);
    for (const peer of this.#peers.values()) if (peer.isSilent(nowMs)) this.#close(peer, `${peer.name} is silent`);
    for (const peer of this.#peers.observers) if (peer.state === PeerState.serving) this.#feed.ping(peer);
  }

  #mayAsk(peer: LearnerPeer, what: string): boolean {
    if (peer.state === PeerState.serving) return true;
    this.#close(peer, `${peer.name} sends ${what} before it may serve`);
    return false;
  }

  #close(peer: LearnerPeer, reason: string): void {
    this.#effects.closeLearner(peer.link, reason);
    this.#forget(peer);
  }

  #forget(peer: LearnerPeer): void {
    this.#peers.forget(peer);
    this.#admission.onClosed(peer);
  }

  get #initMs(): number {
    return this.#options.initLimit * this.#options.tickTimeMs;
  }

  get #syncMs(): number {
    return this.#options.syncLimit * this.#options.tickTimeMs;
  }
}
