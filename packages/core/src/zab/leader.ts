/**
 * The leader of an epoch (Leader, LearnerHandler). See docs/zab.md.
 *
 *     start ──► discovery ──► epoch ──► synchronization ──► broadcast ──► over
 *                  │            │             │
 *                  │            │             └ a quorum has acknowledged NEWLEADER, and this server has currentEpoch
 *                  │            └ a quorum has answered LEADERINFO with ACKEPOCH
 *                  └ a quorum, this server included, has told its acceptedEpoch; the epoch is later than all of them
 *
 * What is promised:
 *
 * 1. LEADERINFO is sent when acceptedEpoch is durable here, and this server counts itself as having acknowledged
 *    NEWLEADER when currentEpoch is (ZOOKEEPER-335, 1291).
 * 2. Whoever is counted in discovery, for the epoch, for NEWLEADER, for a txn or for a sync is a voter that follows;
 *    this server is counted in each of them by itself, once it has done its part (ZOOKEEPER-1192).
 * 3. A learner is sent: how it catches up, the history, ascending and without a gap, NEWLEADER, UPTODATE. What is proposed
 *    after its history was sent follows in order; no commit lies between its NEWLEADER and its UPTODATE, and none is of a
 *    txn that it was not sent before (ZOOKEEPER-3023, 4394).
 * 4. Nothing is committed before the epoch is established, and then in the order of the zxids.
 * 5. Within an event the packets that tell learners of a commit are asked for before `committed`, and `committed` before
 *    `synced`. `stepDown` is the last effect.
 *
 * What the host does:
 *
 * - It calls `start` first, then delivers events in the order in which they happen; after `stepDown` they are ignored.
 * - It calls `onTurnEnd` at the end of every turn, before output leaves, and `onTick` when `nextDeadlineMs` has come.
 * - It proposes after `established`, and holds writes back while `isHandingOver`.
 */
import {
  Announcement,
  counterOf,
  DIGEST_VERSION,
  epochOf,
  formatZxid,
  JuteWriter,
  type LearnerInfoPacket,
  type LearnerPacket,
  MAX_COUNTER,
  makeZxid,
  PacketType,
  parseMembership,
  QUORUM_PROTOCOL_VERSION,
  type Txn,
  type TxnHeader,
  writeTxn,
  writeTxnDigest,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../assert.ts';
import type { Electorate } from '../election/electorate.ts';
import type { Clock } from '../ports.ts';
import type { Durable } from '../storage/durable.ts';
import type { Broadcast } from './broadcast.ts';
import { CatchUp, type CatchUpStep, describeGap } from './catch-up.ts';
import { chooseSuccessor, isCandidate } from './hand-over.ts';
import type { History, HistoryEntry } from './history.ts';
import type { LeaderEffects, LinkId } from './leader-host.ts';
import { findRefusal } from './learner-admission.ts';
import { LearnerPeer, PeerState } from './learner-peer.ts';
import { Proposals } from './proposals.ts';
import { SyncRounds } from './sync-rounds.ts';
import type { ZabOptions } from './zab-options.ts';

export type LeaderPhase = 'idle' | 'discovery' | 'epoch' | 'synchronization' | 'broadcast' | 'over';

const NEVER = Number.POSITIVE_INFINITY;

export class Leader implements Broadcast {
  readonly #options: ZabOptions;
  readonly #clock: Clock;
  readonly #electorate: Electorate;
  readonly #configText: string;
  readonly #configVersion: Zxid;
  readonly #history: History;
  readonly #effects: LeaderEffects;

  #phase: LeaderPhase = 'idle';
  /** The phases before broadcast end in time, or the leadership does. */
  #phaseEndsMs = NEVER;
  #epoch = -1;
  /** The highest epoch that anybody has promised. */
  #acceptedMax: number;
  /** Voters whose ACKEPOCH was counted. Their promise holds when they connect again, and say −1 then. */
  readonly #epochAckers = new Set<number>();
  #isCurrentEpochDurable = false;
  #establishedMs = 0;

  readonly #peers = new Map<LinkId, LearnerPeer>();
  /** Those that are sent what is proposed, and those that are sent what is committed, as it happens. */
  #followers: readonly LearnerPeer[] = [];
  #observers: readonly LearnerPeer[] = [];
  #anonymousId = 0;

  readonly #proposals: Proposals;
  readonly #catchUp: CatchUp;
  readonly #rounds: SyncRounds;
  readonly #writer = new JuteWriter();

  #heartbeatMs = NEVER;
  #isWholeTick = false;
  #handOver: { readonly reason: string; readonly endsMs: number } | null = null;
  /** A new epoch is wanted for somebody who has accepted one that is later than ours: first this server does. */
  #way: { readonly accepted: number; readonly reason: string } | null = null;

  constructor(
    options: ZabOptions,
    clock: Clock,
    electorate: Electorate,
    configText: string,
    history: History,
    effects: LeaderEffects,
  ) {
    const membership = parseMembership(configText);
    this.#options = options;
    this.#clock = clock;
    this.#electorate = electorate;
    this.#configText = configText;
    this.#configVersion = 'fault' in membership ? makeZxid(0, 0) : membership.version;
    this.#history = history;
    this.#effects = effects;
    this.#acceptedMax = history.acceptedEpoch;
    this.#proposals = new Proposals(options.serverId, electorate, history, options.commitLogCount);
    this.#catchUp = new CatchUp(this.#proposals, effects);
    this.#rounds = new SyncRounds(options.serverId, electorate);
  }

  get phase(): LeaderPhase {
    return this.#phase;
  }

  /** The epoch that this leader has chosen; −1 during discovery. */
  get epoch(): number {
    return this.#epoch;
  }

  /** (epoch, 0) from the choice of the epoch to the first proposal. */
  get lastProposed(): Zxid {
    return this.#proposals.lastProposed;
  }

  get lastSynced(): number {
    return this.#rounds.lastAnswered;
  }

  /**
   * True once this leader is about to leave its place: the host proposes nothing more and holds requests back. They are
   * answered by nobody here; when `stepDown` comes they end with their connections, and the clients ask again.
   */
  get isHandingOver(): boolean {
    return this.#handOver !== null;
  }

  /** The learners of now, for people. */
  get learners(): Iterable<
    Readonly<Pick<LearnerPeer, 'link' | 'serverId' | 'isObserver' | 'isVoter' | 'state' | 'acked'>>
  > {
    return this.#peers.values();
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#phaseEndsMs, this.#heartbeatMs, this.#handOver?.endsMs ?? NEVER);
  }

  /* ------------------------------------------------------------------------------------------ discovery ---- */

  start(): void {
    assert(this.#phase === 'idle', 'a leader starts once');
    this.#enter('discovery');
    this.#heartbeatMs = this.#clock.monotonicMs() + this.#options.tickTimeMs / 2;
    this.#maybeChooseEpoch();
  }

  onLearnerConnected(link: LinkId): void {
    if (this.#phase === 'over') return;
    assert(!this.#peers.has(link), 'a link connects once');
    this.#peers.set(link, new LearnerPeer(link, this.#clock.monotonicMs(), this.#initMs));
  }

  /** @param _reason for people; what it means is the same whatever it is */
  onLearnerClosed(link: LinkId, _reason: string): void {
    const peer = this.#peers.get(link);
    if (this.#phase !== 'over' && peer !== undefined) this.#forget(peer);
  }

  onLearnerPacket(link: LinkId, packet: LearnerPacket): void {
    const peer = this.#peers.get(link);
    if (this.#phase === 'over' || peer === undefined) return;
    peer.onSignOfLife(this.#clock.monotonicMs());
    const isInfo = packet.type === PacketType.followerInfo || packet.type === PacketType.observerInfo;
    if (peer.state === PeerState.connected && !isInfo) {
      this.#close(peer, 'the first packet of a learner must be FOLLOWERINFO or OBSERVERINFO');
      return;
    }
    switch (packet.type) {
      case PacketType.ack:
        this.#onAck(peer, packet.zxid);
        return;
      case PacketType.ping:
        if (peer.state !== PeerState.serving) return;
        this.#onPong(peer);
        if (packet.sessions.length > 0) this.#effects.touched(packet.sessions);
        return;
      case PacketType.request:
        if (this.#mayAsk(peer, 'REQUEST')) this.#effects.requested(link, peer.serverId, packet);
        return;
      case PacketType.revalidate:
        if (this.#mayAsk(peer, 'REVALIDATE')) this.#effects.revalidated(link, peer.serverId, packet);
        return;
      case PacketType.followerInfo:
      case PacketType.observerInfo:
        this.#onInfo(peer, packet);
        return;
      case PacketType.ackEpoch:
        this.#onAckEpoch(peer, packet.zxid, packet.currentEpoch);
        return;
      case null:
        return;
    }
  }

  #onInfo(peer: LearnerPeer, info: LearnerInfoPacket): void {
    const leader = { serverId: this.#options.serverId, configVersion: this.#configVersion };
    const refusal =
      peer.state === PeerState.connected ? findRefusal(info, leader) : `${peer.name} says twice who it is`;
    if (refusal !== null) {
      this.#close(peer, refusal);
      return;
    }
    const serverId = info.serverId ?? --this.#anonymousId;
    for (const other of this.#peers.values()) {
      if (other.serverId === serverId && other.state !== PeerState.connected) {
        this.#close(other, `learner ${serverId} has connected again`);
      }
    }
    peer.identify(info, serverId, this.#electorate.voters.has(serverId));
    peer.expectNothing();
    this.#acceptedMax = Math.max(this.#acceptedMax, epochOf(info.zxid));
    if (this.#phase === 'discovery') {
      this.#maybeChooseEpoch();
      return;
    }
    this.#inform(peer);
    if (peer.isVoter && epochOf(info.zxid) > this.#epoch) this.#maybeMakeWay(peer, epochOf(info.zxid));
  }

  /**
   * A voter that has promised a later epoch, to a leader that came to nothing, can follow no leader of this one: it would
   * knock in vain as long as this one leads. A new epoch takes it in. Not within syncLimit ticks of the last one, so that
   * such voters never keep the ensemble from its work.
   *
   * The next leader may find its quorum before that voter is heard. So this server promises the same first: the epoch that
   * follows is later than any that one of them has accepted, and not just the next of many that leave the voter out.
   */
  #maybeMakeWay(peer: LearnerPeer, accepted: number): void {
    if (this.#phase !== 'broadcast' || this.#clock.monotonicMs() - this.#establishedMs < this.#syncMs) return;
    if (this.#way !== null && this.#way.accepted >= accepted) return;
    const reason = `${peer.name} has accepted epoch ${accepted} and cannot follow in epoch ${this.#epoch}`;
    this.#way = { accepted, reason };
    this.#effects.writeEpoch('acceptedEpoch', accepted);
  }

  #maybeChooseEpoch(): void {
    if (this.#epoch >= 0 || !this.#isQuorumWith((peer) => peer.state === PeerState.identified)) return;
    this.#epoch = this.#acceptedMax + 1;
    this.#effects.writeEpoch('acceptedEpoch', this.#epoch);
  }

  onEpochDurable(name: 'acceptedEpoch' | 'currentEpoch', epoch: Durable<number>): void {
    if (this.#phase === 'over') return;
    if (this.#way !== null) {
      if (epoch === this.#way.accepted) this.handOver(this.#way.reason);
      return;
    }
    assert(epoch === this.#epoch, 'the epoch that became durable is the one that was chosen');
    if (name === 'currentEpoch') {
      this.#isCurrentEpochDurable = true;
      this.#maybeEstablish();
      return;
    }
    this.#enter('epoch');
    for (const peer of this.#peers.values()) if (peer.state === PeerState.identified) this.#inform(peer);
    this.#maybeFinishEpoch();
  }

  #inform(peer: LearnerPeer): void {
    peer.state = PeerState.informed;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#effects.send(peer.link, {
      type: PacketType.leaderInfo,
      zxid: makeZxid(this.#epoch, 0),
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      announces: Announcement.takesHandOver,
    });
  }

  #onAckEpoch(peer: LearnerPeer, lastZxid: Zxid, currentEpoch: number): void {
    if (peer.state !== PeerState.informed) {
      this.#close(peer, `${peer.name} sends ACKEPOCH, which nobody asked for`);
      return;
    }
    const isLater =
      currentEpoch > this.#history.currentEpoch ||
      (currentEpoch === this.#history.currentEpoch && lastZxid > this.#history.lastZxid);
    // A quorum has made this server's history the one of the epoch: what anybody has beyond it was never committed.
    if (isLater && currentEpoch !== NOT_COUNTED && this.#phase !== 'broadcast') {
      this.#close(
        peer,
        `${peer.name} has a later history than this leader: epoch ${currentEpoch} and ${formatZxid(lastZxid)}, ` +
          `not epoch ${this.#history.currentEpoch} and ${formatZxid(this.#history.lastZxid)}`,
      );
      return;
    }
    const isOfThisEpoch = epochOf(lastZxid) === this.#epoch && counterOf(lastZxid) > 0;
    if (isOfThisEpoch && lastZxid > this.lastProposed) {
      this.#close(peer, `${peer.name} has ${formatZxid(lastZxid)}, which this leader has not proposed`);
      return;
    }
    peer.state = PeerState.waiting;
    peer.expectNothing();
    peer.lastZxid = lastZxid;
    if (peer.isVoter && currentEpoch !== NOT_COUNTED && lastZxid !== ZXID_NONE) this.#epochAckers.add(peer.serverId);
    if (isOfThisEpoch && peer.keepsLog) {
      // It lost its connection in the middle of this epoch. Its log holds what it says, acknowledged or not.
      peer.acked = lastZxid;
      if (peer.isVoter) this.#proposals.acknowledge(peer.serverId, lastZxid);
    }
    if (this.#phase === 'epoch') {
      this.#maybeFinishEpoch();
    } else {
      this.#maybeStartSync(peer);
      if (isOfThisEpoch && peer.keepsLog) this.#advance();
    }
  }

  #maybeFinishEpoch(): void {
    if (!this.#electorate.isQuorum([this.#options.serverId, ...this.#epochAckers])) return;
    this.#enter('synchronization');
    this.#proposals.beginEpoch(this.#epoch);
    this.#effects.writeEpoch('currentEpoch', this.#epoch);
    for (const peer of this.#peers.values()) this.#maybeStartSync(peer);
  }

  /* ------------------------------------------------------------------------------------ synchronization ---- */

  /** Starts what waits for it: for the quorum of ACKEPOCHs, or for its last txn to be committed. */
  #maybeStartSync(peer: LearnerPeer): void {
    if (peer.state !== PeerState.waiting) return;
    const isOutstanding = this.#proposals.isOutstandingOrCommitted(peer.lastZxid) && peer.lastZxid > this.#committed;
    if (isOutstanding && peer.keepsLog) return;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#onCaughtUp(peer, this.#catchUp.start(peer));
  }

  /** What `readHistory` asked for: from the last entry that is not later than what it named; empty when it cannot be. */
  onHistoryRead(link: LinkId, entries: readonly HistoryEntry[]): void {
    const peer = this.#peers.get(link);
    if (this.#phase === 'over' || peer?.state !== PeerState.reading) return;
    peer.onSignOfLife(this.#clock.monotonicMs());
    this.#onCaughtUp(peer, this.#catchUp.onHistoryRead(peer, entries));
  }

  /** Little of what was sent over the link waits to leave. */
  onLearnerRoom(link: LinkId): void {
    const peer = this.#peers.get(link);
    if (this.#phase === 'over' || peer?.state !== PeerState.streaming) return;
    peer.onSignOfLife(this.#clock.monotonicMs());
    this.#onCaughtUp(peer, this.#catchUp.onRoom(peer));
  }

  /** A part of a snapshot has left: its learner takes its time, but it is there (ZOOKEEPER-1697). */
  onLearnerProgress(link: LinkId): void {
    this.#peers.get(link)?.onSignOfLife(this.#clock.monotonicMs());
  }

  #onCaughtUp(peer: LearnerPeer, step: CatchUpStep): void {
    if (step === 'complete') this.#announce(peer);
    else if (step === 'gap') this.#close(peer, describeGap(peer));
  }

  /** The whole history is on its way: what is outstanding follows, NEWLEADER, and from now on what happens. */
  #announce(peer: LearnerPeer): void {
    const { log } = this.#proposals;
    peer.committed = this.#committed;
    if (peer.isObserver) {
      this.#observers = [...this.#observers, peer];
    } else {
      for (let i = log.indexAfter(this.#committed); i < log.length; i++) {
        const { zxid, payload } = log.at(i);
        this.#effects.sendProposal(peer.link, zxid, payload);
      }
      this.#followers = [...this.#followers, peer];
    }
    peer.state = PeerState.announced;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#effects.send(peer.link, {
      type: PacketType.newLeader,
      zxid: makeZxid(this.#epoch, 0),
      configText: this.#configText,
    });
  }

  #onNewLeaderAck(peer: LearnerPeer): void {
    if (peer.state > PeerState.announced) return;
    if (peer.state < PeerState.announced) {
      this.#close(peer, `${peer.name} acknowledges NEWLEADER, which it was not sent`);
      return;
    }
    peer.state = PeerState.synchronized;
    peer.expectNothing();
    peer.acked = Math.max(peer.acked, peer.committed) as Zxid;
    this.#effects.synchronized(peer.serverId, peer.committed);
    if (this.#phase !== 'broadcast') {
      this.#maybeEstablish();
      return;
    }
    this.#welcome(peer);
    if (peer.isVoter) this.#proposals.acknowledge(peer.serverId, peer.acked);
    this.#advance();
  }

  #maybeEstablish(): void {
    if (this.#phase !== 'synchronization' || !this.#isCurrentEpochDurable) return;
    if (!this.#isQuorumWith((peer) => peer.state === PeerState.synchronized)) return;
    this.#phase = 'broadcast';
    this.#phaseEndsMs = NEVER;
    this.#establishedMs = this.#clock.monotonicMs();
    this.#effects.established(this.#epoch, this.#proposals.commitHistory());
    for (const peer of this.#peers.values()) if (peer.state === PeerState.synchronized) this.#welcome(peer);
  }

  /** UPTODATE, and the commits that waited for it. */
  #welcome(peer: LearnerPeer): void {
    const nowMs = this.#clock.monotonicMs();
    peer.state = PeerState.serving;
    peer.round = this.#rounds.round;
    peer.owed = ZXID_NONE;
    peer.expect(nowMs, this.#syncMs);
    this.#effects.send(peer.link, { type: PacketType.upToDate });
    if (peer.isObserver) return;
    const first = Math.max(peer.committed + 1, makeZxid(this.#epoch, 1));
    for (let zxid = first; zxid <= this.#committed; zxid++) {
      this.#effects.send(peer.link, { type: PacketType.commit, zxid: zxid as Zxid });
    }
  }

  /* ------------------------------------------------------------------------------------------ broadcast ---- */

  nextZxid(): Zxid {
    return (this.lastProposed + 1) as Zxid;
  }

  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): void {
    const { zxid } = header;
    assert(this.#phase === 'broadcast', 'a leader proposes once its epoch is established');
    assert(zxid === this.nextZxid(), 'a proposal takes the next zxid');
    assert(counterOf(zxid) < MAX_COUNTER, 'an epoch ends before its counter does');
    const writer = this.#writer;
    writer.position = 0;
    writeTxn(writer, header, txn);
    if (treeDigest !== null) writeTxnDigest(writer, DIGEST_VERSION, treeDigest);
    const payload = writer.toBytes();

    this.#proposals.propose(zxid, payload);
    this.#effects.append(zxid, payload);
    for (const peer of this.#followers) this.#effects.sendProposal(peer.link, zxid, payload);
    if (counterOf(zxid) >= this.#options.epochTxnsMax && this.#handOver === null) {
      this.#beginHandOver(`epoch ${this.#epoch} has had its ${this.#options.epochTxnsMax} txns`);
    }
  }

  onLogSynced(durable: Durable<Zxid>): void {
    if (this.#phase !== 'broadcast') return;
    this.#proposals.onLogSynced(durable);
    this.#advance();
  }

  #onAck(peer: LearnerPeer, zxid: Zxid): void {
    if (counterOf(zxid) === 0) {
      if (epochOf(zxid) === this.#epoch) this.#onNewLeaderAck(peer);
      return;
    }
    // What is not of this epoch, was not sent or says nothing new is passed over: 3.8.0 acknowledges txns of the history
    // too. What comes before the ACK of NEWLEADER counts with it (ZOOKEEPER-4685).
    const isNews = zxid > peer.acked && this.#proposals.isOutstandingOrCommitted(zxid);
    if (peer.state < PeerState.announced || !isNews) return;
    peer.acked = zxid;
    if (peer.state !== PeerState.serving) return;
    if (peer.isVoter && zxid > this.#committed) {
      this.#proposals.acknowledge(peer.serverId, zxid);
      this.#advance();
    } else if (this.#handOver !== null) {
      this.#maybeFinishHandOver(false);
    }
  }

  /** Something was acknowledged, durable or confirmed: does all that follows from it. */
  #advance(): void {
    const before = this.#committed;
    if (this.#proposals.commit()) {
      this.#tellCommits(before);
      for (const peer of this.#peers.values()) this.#maybeStartSync(peer);
    }
    const watermark = this.#proposals.apply();
    if (watermark !== null) this.#effects.committed(watermark);
    this.#answerSyncs();
    if (this.#handOver !== null) this.#maybeFinishHandOver(false);
  }

  #tellCommits(before: Zxid): void {
    const { log } = this.#proposals;
    for (let i = log.indexAfter(before); i < log.length; i++) {
      const { zxid, payload } = log.at(i);
      if (zxid > this.#committed) return;
      const commit = { type: PacketType.commit, zxid };
      for (const peer of this.#followers) if (peer.state === PeerState.serving) this.#effects.send(peer.link, commit);
      for (const peer of this.#observers) this.#effects.sendInform(peer.link, zxid, payload);
    }
  }

  get #committed(): Zxid {
    return this.#proposals.committed;
  }

  /**
   * Told when this server still leads and has applied all that is proposed now; with a quorum of one, and nothing
   * outstanding, the ticket is one that was answered before.
   */
  sync(): number {
    assert(this.#phase === 'broadcast', 'a leader confirms that it leads once its epoch is established');
    return this.#rounds.add(this.#proposals.lastTxn, this.#proposals.applied);
  }

  /** The turn ends: one ping to every voter for all syncs that came in it. */
  onTurnEnd(): void {
    if (this.#phase === 'broadcast' && this.#rounds.isRoundDue) this.#pingFollowers();
  }

  #pingFollowers(): void {
    this.#rounds.beginRound();
    this.#ping(this.#followers);
  }

  /** Learners that do not serve yet answer no ping. */
  #ping(peers: readonly LearnerPeer[]): void {
    const ping = { type: PacketType.ping, zxid: this.lastProposed };
    for (const peer of peers) if (peer.state === PeerState.serving) this.#effects.send(peer.link, ping);
  }

  #onPong(peer: LearnerPeer): void {
    if (!peer.isVoter || peer.round >= this.#rounds.round) return;
    peer.round++;
    this.#rounds.onAnswer(peer.serverId, peer.round);
    this.#answerSyncs();
  }

  #answerSyncs(): void {
    const ticket = this.#rounds.takeAnswered(this.#proposals.applied);
    if (ticket !== null) this.#effects.synced(ticket);
  }

  /** Requests are for learners that were told to serve. */
  #mayAsk(peer: LearnerPeer, what: string): boolean {
    if (peer.state === PeerState.serving) return true;
    this.#close(peer, `${peer.name} sends ${what} before it may serve`);
    return false;
  }

  /* ------------------------------------------------------------------------------------------- liveness ---- */

  onTick(): void {
    if (this.#phase === 'over') return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#phaseEndsMs) {
      this.#stepDown(`no quorum of learners within initLimit: ${WAITED_FOR[this.#phase] ?? ''}`);
    } else if (this.#handOver !== null && nowMs >= this.#handOver.endsMs) {
      this.#maybeFinishHandOver(true);
    } else if (nowMs >= this.#heartbeatMs) {
      this.#heartbeatMs = nowMs + this.#options.tickTimeMs / 2;
      this.#beat(nowMs);
    }
  }

  /** Every half tick. */
  #beat(nowMs: number): void {
    for (const peer of this.#peers.values()) {
      if (peer.isSilent(nowMs)) this.#close(peer, `${peer.name} is silent`);
      else if (this.#owesTooLong(peer, nowMs)) {
        this.#close(peer, `${peer.name} has not acknowledged ${formatZxid(peer.owed)} within syncLimit`);
      }
    }
    if (this.#phase !== 'broadcast') return;
    this.#isWholeTick = !this.#isWholeTick;
    if (!this.#isWholeTick && !this.#isQuorumWith((peer) => peer.state !== PeerState.connected)) {
      this.#stepDown('fewer than a quorum of the voters are connected');
      return;
    }
    this.#pingFollowers();
    this.#ping(this.#observers);
    this.#answerSyncs();
    if (this.#handOver !== null) this.#maybeFinishHandOver(false);
  }

  /** Watches one proposal at a time, the newest when its turn came: that costs nothing per proposal. */
  #owesTooLong(peer: LearnerPeer, nowMs: number): boolean {
    if (peer.state !== PeerState.serving || peer.isObserver) return false;
    if (peer.owed > peer.acked) return nowMs - peer.owedSinceMs > this.#syncMs;
    peer.owed = this.#proposals.lastTxn;
    peer.owedSinceMs = nowMs;
    return false;
  }

  /** True when this server and those of the voters' learners of which it holds are a quorum. */
  #isQuorumWith(holds: (peer: LearnerPeer) => boolean): boolean {
    const ids = [this.#options.serverId];
    for (const peer of this.#peers.values()) if (peer.isVoter && holds(peer)) ids.push(peer.serverId);
    return this.#electorate.isQuorum(ids);
  }

  #close(peer: LearnerPeer, reason: string): void {
    this.#effects.closeLearner(peer.link, reason);
    this.#forget(peer);
  }

  #forget(peer: LearnerPeer): void {
    this.#peers.delete(peer.link);
    this.#followers = this.#followers.filter((other) => other !== peer);
    this.#observers = this.#observers.filter((other) => other !== peer);
    if (!peer.isVoter) return;
    this.#proposals.forget(peer.serverId);
    this.#rounds.forget(peer.serverId);
  }

  #enter(phase: LeaderPhase): void {
    this.#phase = phase;
    this.#phaseEndsMs = this.#clock.monotonicMs() + this.#initMs;
  }

  get #initMs(): number {
    return this.#options.initLimit * this.#options.tickTimeMs;
  }

  get #syncMs(): number {
    return this.#options.syncLimit * this.#options.tickTimeMs;
  }

  /* ------------------------------------------------------------------------------------------ the end ---- */

  /**
   * Leaves the place to a follower that has everything, if there is one that knows how to take it, within a tick. The
   * host proposes nothing more, see `isHandingOver`; `stepDown` ends it in any case, perhaps before this returns.
   */
  handOver(reason = 'this server hands over'): void {
    if (this.#phase === 'over' || this.#handOver !== null) return;
    if (this.#phase !== 'broadcast') {
      this.#stepDown(reason);
      return;
    }
    this.#beginHandOver(reason);
    this.#maybeFinishHandOver(false);
  }

  #beginHandOver(reason: string): void {
    this.#handOver = { reason, endsMs: this.#clock.monotonicMs() + this.#options.tickTimeMs };
  }

  /** @param isLate the time is up: whoever has everything now, or nobody */
  #maybeFinishHandOver(isLate: boolean): void {
    const { applied, lastTxn } = this.#proposals;
    const isComplete = applied === lastTxn;
    if (this.#handOver === null || (!isComplete && !isLate)) return;
    const candidates = this.#followers.filter((peer) => isCandidate(peer, this.#electorate));
    const successor = chooseSuccessor(candidates, lastTxn);
    if (isComplete && successor !== null) {
      this.#effects.send(successor.link, { type: PacketType.handOver, zxid: this.lastProposed });
      this.#stepDown(`${this.#handOver.reason}: learner ${successor.serverId} takes the place`);
    } else if (isLate || candidates.length === 0) {
      this.#stepDown(`${this.#handOver.reason}: no learner can take the place`);
    }
  }

  #stepDown(reason: string): void {
    this.#phase = 'over';
    this.#phaseEndsMs = NEVER;
    this.#heartbeatMs = NEVER;
    this.#handOver = null;
    this.#effects.stepDown(reason);
  }
}

/** In ACKEPOCH: the learner had accepted this epoch before. */
const NOT_COUNTED = -1;

const WAITED_FOR: Partial<Record<LeaderPhase, string>> = {
  discovery: 'too few said which epoch they have accepted',
  epoch: 'too few have accepted the epoch',
  synchronization: 'too few have acknowledged NEWLEADER',
};
