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
 * 5. A learner's sync is answered by SYNC, behind the commits of everything that had been proposed when it came. To a
 *    server of Apache's nothing later is said to be committed before that, see `HeldCommits`.
 * 6. Within an event the packets that tell learners of a commit are asked for before `committed`, `committed` before
 *    `synced`, and that before SYNC. `stepDown` is the last effect.
 *
 * What the host does:
 *
 * - It calls `start` first, then delivers events in the order in which they happen; after `stepDown` they are ignored.
 * - It calls `onTurnEnd` at the end of every turn, before output leaves, and `onTick` when `nextDeadlineMs` has come.
 * - It proposes after `established`, and holds writes back while `isHandingOver`.
 */
import {
  Announcement,
  announcedLease,
  counterOf,
  epochOf,
  formatZxid,
  type LearnerInfoPacket,
  type LearnerPacket,
  MAX_COUNTER,
  makeZxid,
  nextZxid,
  OpCode,
  PacketType,
  QUORUM_PROTOCOL_VERSION,
  type Txn,
  type TxnHeader,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import {
  type DurabilityEvents,
  type Durable,
  type EpochFileName,
  maxDurable,
  onDiskOfLearner,
} from '../base/durable.ts';
import type { Clock } from '../base/ports.ts';
import type { Electorate, QuorumProof } from '../election/electorate.ts';
import type { Quorum } from '../election/quorum.ts';
import { type AnswerLease, LeaderLease } from './answer-lease.ts';
import type { Broadcast } from './broadcast.ts';
import { CatchUp, type CatchUpStep, describeDeadEnd } from './catch-up.ts';
import { HandOver } from './hand-over.ts';
import { Heartbeat } from './heartbeat.ts';
import { type History, type HistoryEntry, hasAllOf } from './history.ts';
import { findOutranking, LaterPromises, type Reign } from './later-promises.ts';
import type { HeardVotes, LeaderEffects, LeaderMembership, LinkId } from './leader-host.ts';
import { LearnerAdmission } from './learner-admission.ts';
import { endsWithItsFirst, LearnerAnswers, type SessionLeases } from './learner-answers.ts';
import { LearnerFeed } from './learner-feed.ts';
import { LearnerPeer, PeerState } from './learner-peer.ts';
import { LearnerPeers } from './learner-peers.ts';
import { findExcess, Promises } from './promises.ts';
import { Proposals } from './proposals.ts';
import { SyncRounds } from './sync-rounds.ts';
import type { ZabOptions } from './zab-options.ts';

export type LeaderPhase = 'idle' | 'discovery' | 'epoch' | 'synchronization' | 'broadcast' | 'over';

const NEVER = Number.POSITIVE_INFINITY;
/** Bytes that may wait for a SYNC to one learner. Quorums answer pings faster than they commit: this is never reached. */
const HELD_BYTES_MAX = 64 * 1024 * 1024;

export interface LeaderParts {
  readonly options: ZabOptions;
  readonly clock: Clock;
  readonly electorate: Electorate;
  readonly membership: LeaderMembership;
  /** This server's own. */
  readonly history: History;
  readonly heardVotes: HeardVotes;
  readonly effects: LeaderEffects;
  /** See `CatchUp`. */
  readonly needSnapshot?: Set<number> | undefined;
}

export class Leader implements Broadcast, DurabilityEvents {
  readonly #options: ZabOptions;
  readonly #clock: Clock;
  readonly #electorate: Electorate;
  readonly #membership: LeaderMembership;
  readonly #history: History;
  readonly #effects: LeaderEffects;

  #phase: LeaderPhase = 'idle';
  #phaseSinceMs = 0;
  #epoch = -1;
  readonly #promises: Promises;
  readonly #laterPromises: LaterPromises;
  /** This leader's epoch, once it is durable as acceptedEpoch and as currentEpoch. */
  #accepted: Durable<number> | null = null;
  #adopted: Durable<number> | null = null;

  readonly #peers = new LearnerPeers();
  readonly #admission: LearnerAdmission;
  readonly #proposals: Proposals;
  readonly #catchUp: CatchUp;
  readonly #feed: LearnerFeed;
  readonly #rounds: SyncRounds;
  readonly #heartbeat: Heartbeat;
  readonly #lease: LeaderLease;
  readonly #answers: LearnerAnswers;
  #handOver: HandOver | null = null;
  /** zxid of the change of the membership that is proposed and not committed. */
  #change: Zxid | null = null;

  constructor(parts: LeaderParts) {
    const { options, clock, electorate, membership, history, heardVotes, effects, needSnapshot = new Set() } = parts;
    const { serverId, tickTimeMs } = options;
    this.#options = options;
    this.#clock = clock;
    this.#electorate = electorate;
    this.#membership = membership;
    this.#history = history;
    this.#effects = effects;
    this.#promises = new Promises(serverId, electorate, history);
    this.#laterPromises = new LaterPromises(heardVotes);
    this.#admission = new LearnerAdmission(this.#peers, serverId, membership, tickTimeMs, {
      isOver: () => this.#phase === 'over',
      onAdmitted: (peer, info) => this.#admit(peer, info),
      onRefused: (peer, reason) => this.#close(peer, reason),
    });
    this.#proposals = new Proposals(serverId, electorate, history, options.commitLogCount);
    this.#catchUp = new CatchUp(this.#proposals, effects, options.txnBytesMax, needSnapshot);
    this.#feed = new LearnerFeed(this.#peers, this.#proposals, effects, membership);
    this.#rounds = new SyncRounds(serverId, electorate);
    this.#heartbeat = new Heartbeat(tickTimeMs);
    this.#lease = new LeaderLease(serverId, electorate, options.leaseMs);
    this.#answers = new LearnerAnswers(options.leaseMs);
  }

  get phase(): LeaderPhase {
    return this.#phase;
  }

  /** The epoch that this leader has chosen; −1 during discovery. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Why this server should not stand for election again, for people; null when nothing speaks against it. */
  get unfitness(): string | null {
    return this.#promises.unfitness;
  }

  /** (epoch, 0) from the choice of the epoch to the first proposal. */
  get lastProposed(): Zxid {
    return this.#proposals.lastProposed;
  }

  /** The last txn there is, of this epoch or of the history that it began with. */
  get lastTxn(): Zxid {
    return this.#proposals.lastTxn;
  }

  /** What a quorum holds, and learners are told; before the epoch is established, the end of its history. */
  get lastCommitted(): Zxid {
    return this.#committed;
  }

  /** Until when this server may answer its own clients. */
  get lease(): AnswerLease {
    return this.#lease;
  }

  /** Which sessions may end, as far as learners have answered them. */
  get sessionLeases(): SessionLeases {
    return this.#answers;
  }

  /** Syncs of learners that wait for a quorum. */
  get pendingSyncs(): number {
    return this.#feed.pendingSyncs;
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
    return Math.min(this.#phaseEndsMs, this.#heartbeat.dueMs, this.#handOver?.endsMs ?? NEVER);
  }

  /* ------------------------------------------------------------------------------------------ discovery ---- */

  start(): void {
    assert(this.#phase === 'idle', 'a leader starts once');
    this.#enter('discovery');
    this.#heartbeat.schedule(this.#clock.monotonicMs());
    this.#maybeChooseEpoch();
  }

  onLearnerConnected(link: LinkId): void {
    if (this.#phase === 'over') return;
    this.#peers.connect(new LearnerPeer(link, this.#clock.monotonicMs(), this.#initMs));
  }

  /** @param _reason for people; what it means is the same whatever it is */
  onLearnerClosed(link: LinkId, _reason: string): void {
    const peer = this.#peers.get(link);
    if (this.#phase === 'over' || peer === undefined) return;
    this.#forget(peer);
    this.#admission.admitWinners(this.#clock.monotonicMs());
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
        if (this.#givesLeases) this.#onAnswer(peer, !endsWithItsFirst(packet.sessions));
        else this.#onPong(peer);
        if (packet.sessions.length > 0) this.#effects.touched(packet.sessions);
        if (peer.pings.leaseMs > 0) this.#effects.answered(peer.serverId);
        return;
      case PacketType.request:
        if (this.#mayAsk(peer, 'REQUEST')) this.#effects.requested(link, peer.serverId, packet);
        return;
      case PacketType.revalidate:
        if (this.#mayAsk(peer, 'REVALIDATE')) this.#effects.revalidated(link, peer.serverId, packet);
        return;
      case PacketType.followerInfo:
      case PacketType.observerInfo:
        this.#admission.onInfo(peer, packet, this.#clock.monotonicMs());
        return;
      case PacketType.ackEpoch:
        this.#onAckEpoch(peer, packet.zxid, packet.currentEpoch);
        return;
      case null:
        return;
    }
  }

  #admit(peer: LearnerPeer, info: LearnerInfoPacket): void {
    const { serverId } = info;
    assert(serverId !== null, 'a learner that is not refused has said which server it is');
    peer.identify(info, serverId, this.#electorate.voters.has(serverId), this.#options.leaseMs);
    peer.expectNothing();
    if (this.#accepted === null) {
      this.#promises.record(serverId, peer.isVoter, epochOf(info.zxid));
      this.#maybeChooseEpoch();
      return;
    }
    this.#inform(peer, this.#accepted);
    if (peer.isVoter && epochOf(info.zxid) > this.#epoch) this.#onLaterPromise(peer, epochOf(info.zxid));
  }

  #onLaterPromise(peer: LearnerPeer, accepted: number): void {
    const excess = findExcess(peer.name, accepted, this.#epoch);
    if (excess !== null) {
      this.#effects.staysOut(excess);
      this.#close(peer, excess);
    } else if (this.#laterPromises.maybeBump(peer, accepted, this.#reign)) {
      this.#effects.acceptEpoch(accepted);
    }
  }

  /** A voter stands for election with a history of this epoch. */
  onOutranked(serverId: number, historyEpoch: number): void {
    const reason = findOutranking(serverId, historyEpoch, this.#reign);
    if (reason === null) return;
    this.#effects.staysOut(`${reason} This leader makes way for the longer history`);
    this.handOver(reason);
  }

  get #reign(): Reign {
    const ledMs = this.#phase === 'broadcast' ? this.#clock.monotonicMs() - this.#phaseSinceMs : null;
    return { epoch: this.#epoch, ledMs, syncLimitMs: this.#syncMs };
  }

  #maybeChooseEpoch(): void {
    if (this.#epoch >= 0) return;
    const present = this.#peers.votersThat(({ state }) => state === PeerState.identified);
    const isLate = this.#clock.monotonicMs() - this.#phaseSinceMs >= this.#options.tickTimeMs;
    const choice = this.#promises.choose(present, isLate);
    if (choice.kind === 'unfit') {
      this.#stepDown(choice.reason);
    } else if (choice.kind === 'epoch') {
      this.#epoch = choice.epoch;
      this.#effects.acceptEpoch(this.#epoch);
    }
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    if (this.#phase === 'over') return;
    const { pendingEpochBump } = this.#laterPromises;
    if (pendingEpochBump !== null) {
      if (epoch === pendingEpochBump.accepted) this.handOver(pendingEpochBump.reason);
      return;
    }
    assert(epoch === this.#epoch, 'the epoch that became durable is the one that was chosen');
    if (name === 'currentEpoch') {
      this.#adopted = epoch;
      this.#maybeEstablish();
      return;
    }
    this.#accepted = epoch;
    this.#enter('epoch');
    for (const peer of this.#peers.values()) if (peer.state === PeerState.identified) this.#inform(peer, epoch);
    this.#maybeFinishEpoch();
  }

  #inform(peer: LearnerPeer, accepted: Durable<number>): void {
    peer.state = PeerState.informed;
    peer.expect(this.#clock.monotonicMs(), this.#initMs);
    this.#effects.send(peer.link, {
      type: PacketType.leaderInfo,
      zxid: makeZxid(accepted, 0),
      protocolVersion: QUORUM_PROTOCOL_VERSION,
      announces: Announcement.takesHandOver + announcedLease(this.#options.leaseMs),
    });
  }

  #onAckEpoch(peer: LearnerPeer, lastZxid: Zxid, currentEpoch: number): void {
    if (peer.state !== PeerState.informed) {
      this.#close(peer, `${peer.name} sends ACKEPOCH, which nobody asked for`);
      return;
    }
    const isLater = !hasAllOf(this.#history, { currentEpoch, lastZxid });
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
    if (peer.isVoter && currentEpoch !== NOT_COUNTED && lastZxid !== ZXID_NONE) this.#promises.confirm(peer.serverId);
    if (isOfThisEpoch && peer.keepsLog) {
      // It lost its connection in the middle of this epoch. Its log holds what it says, acknowledged or not.
      peer.acked = onDiskOfLearner(lastZxid);
      if (peer.isVoter) this.#proposals.acknowledge(peer.serverId, peer.acked);
    }
    if (this.#phase === 'epoch') {
      this.#maybeFinishEpoch();
    } else {
      this.#maybeStartSync(peer);
      if (isOfThisEpoch && peer.keepsLog) this.#advance();
    }
  }

  #maybeFinishEpoch(): void {
    if (!this.#promises.areConfirmed) return;
    this.#enter('synchronization');
    this.#proposals.beginEpoch(this.#epoch);
    this.#effects.adoptEpoch(this.#epoch, this.#history.lastZxid);
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
    else if (step === 'dead end') this.#close(peer, describeDeadEnd(peer));
  }

  /** The whole history is on its way: NEWLEADER follows, and from now on what happens. */
  #announce(peer: LearnerPeer): void {
    const nowMs = this.#clock.monotonicMs();
    peer.state = PeerState.announced;
    peer.expect(nowMs, this.#initMs);
    peer.pings.ask(nowMs, 0, true);
    this.#feed.announce(peer);
  }

  #onNewLeaderAck(peer: LearnerPeer): void {
    if (peer.state > PeerState.announced) return;
    if (peer.state < PeerState.announced) {
      this.#close(peer, `${peer.name} acknowledges NEWLEADER, which it was not sent`);
      return;
    }
    peer.state = PeerState.synchronized;
    peer.expectNothing();
    const askedMs = peer.pings.onAnswered();
    if (peer.isVoter && askedMs !== null) this.#lease.onAnswered(peer.serverId, askedMs);
    peer.acked = maxDurable(peer.acked, onDiskOfLearner(peer.committed));
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
    if (this.#phase !== 'synchronization' || this.#adopted === null) return;
    const adopters = this.#findQuorum((peer) => peer.state === PeerState.synchronized);
    if (adopters === null) return;
    this.#enter('broadcast');
    const history = this.#proposals.commitHistory(adopters);
    this.#effects.membershipEstablished();
    this.#onElectorateChanged();
    this.#effects.established(this.#adopted, history);
    for (const peer of this.#peers.values()) if (peer.state === PeerState.synchronized) this.#welcome(peer);
    if (!this.#membership.keepsLeader) this.handOver(REPLACED);
  }

  #welcome(peer: LearnerPeer): void {
    const nowMs = this.#clock.monotonicMs();
    peer.state = PeerState.serving;
    peer.round = this.#rounds.round;
    peer.owed = ZXID_NONE;
    peer.expect(nowMs, this.#syncMs);
    this.#feed.welcome(peer);
    if (peer.pings.leaseMs === 0) return;
    this.#answers.onServing(peer.serverId, nowMs);
    // It answers clients from its first lease on.
    this.#ping(peer);
  }

  /* ------------------------------------------------------------------------------------------ broadcast ---- */

  nextZxid(): Zxid {
    return nextZxid(this.lastProposed);
  }

  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): void {
    const { zxid } = header;
    assert(this.#phase === 'broadcast', 'a leader proposes once its epoch is established');
    assert(zxid === this.nextZxid(), 'a proposal takes the next zxid');
    assert(counterOf(zxid) < MAX_COUNTER, 'an epoch ends before its counter does');
    const isReconfig = txn.type === OpCode.reconfig;
    if (isReconfig) {
      this.#effects.membershipProposed(zxid, txn.data);
      this.#onElectorateChanged();
      this.#change = zxid;
    }
    const payload = this.#proposals.propose(header, txn, treeDigest);
    assert(payload.length <= this.#options.txnBytesMax, 'a txn is proposed that every learner takes');
    this.#effects.append(zxid, payload);
    this.#feed.propose(zxid, payload);
    if (counterOf(zxid) >= this.#options.epochTxnsMax && this.#handOver === null) {
      this.#beginHandOver(`epoch ${this.#epoch} has had its ${this.#options.epochTxnsMax} txns`);
    }
    // The last that this leader proposes, so that whoever takes its place has everything that is committed.
    if (isReconfig && !this.#membership.keepsLeader && this.#handOver === null) this.#beginHandOver(REPLACED);
  }

  /** True when this server and the followers that are synchronized are a quorum of another membership. */
  wouldReach(quorum: Quorum): boolean {
    if (this.#phase !== 'broadcast') return false;
    const followers = this.#peers.followers.filter(({ state }) => state === PeerState.serving);
    return quorum.isReachedBy([this.#options.serverId, ...followers.map(({ serverId }) => serverId)]);
  }

  /** Others vote than before: learners that have become voters count with what they hold. */
  #onElectorateChanged(): void {
    this.#lease.onElectorateChanged(this.#clock.monotonicMs());
    for (const peer of this.#peers.values()) {
      if (peer.state === PeerState.connected) continue;
      peer.isVoter = !peer.isObserver && this.#electorate.voters.has(peer.serverId);
      if (!peer.isVoter) continue;
      // What it acknowledges in front of NEWLEADER's ACK counts with that; what it came with, it holds.
      if (peer.state !== PeerState.announced) this.#proposals.acknowledge(peer.serverId, peer.acked);
      this.#rounds.onAnswer(peer.serverId, peer.confirmedRound);
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
    peer.acked = onDiskOfLearner(zxid);
    if (peer.state !== PeerState.serving) return;
    if (peer.isVoter && zxid > this.#committed) {
      this.#proposals.acknowledge(peer.serverId, peer.acked);
      this.#advance();
    } else if (this.#handOver !== null) {
      this.#maybeFinishHandOver(false);
    }
  }

  /** Something was acknowledged, durable or confirmed: does all that follows from it. */
  #advance(): void {
    while (this.#commitMore());
    const watermark = this.#proposals.apply();
    if (watermark !== null) this.#effects.committed(watermark);
    this.#answerSyncs();
    if (this.#handOver !== null) this.#maybeFinishHandOver(false);
  }

  /** Behind a change of the membership another quorum decides: what follows it is counted again. */
  #commitMore(): boolean {
    const before = this.#committed;
    if (!this.#proposals.commit()) return false;
    const change = this.#change;
    if (change !== null && this.#committed >= change) this.#feed.activate(change, this.#designate(change));
    this.#feed.commit(before);
    const isChanged = change !== null && this.#committed >= change;
    if (isChanged) {
      this.#change = null;
      this.#effects.membershipCommitted(change);
      this.#onElectorateChanged();
    }
    // Only now: their NEWLEADER names the membership that is in force.
    for (const peer of this.#peers.values()) this.#maybeStartSync(peer);
    return isChanged;
  }

  /** Who leads the membership of a change: this server where it may, or a voter of the new one that holds everything. */
  #designate(change: Zxid): number {
    const { serverId } = this.#options;
    if (this.#membership.keepsLeader) return serverId;
    const { lastSeen } = this.#electorate;
    const holders = this.#peers.followers.filter(
      (peer) => peer.acked >= change && (lastSeen?.weightOf(peer.serverId) ?? 0) > 0,
    );
    const best = holders.toSorted((a, b) => b.acked - a.acked || b.serverId - a.serverId)[0];
    return best?.serverId ?? serverId;
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

  /** Sends SYNC over a link as soon as a ticket is answered, which it may be already. */
  sendSync(link: LinkId, ticket: number): void {
    const peer = this.#peers.get(link);
    if (peer !== undefined) this.#feed.sync(peer, ticket, this.lastSynced);
  }

  /** True when this learner has been told that everything up to `zxid` is committed. */
  hasTold(link: LinkId, zxid: Zxid): boolean {
    return this.#feed.hasTold(this.#peers.get(link), zxid);
  }

  /** The turn ends: one ping to every voter for all syncs that came in it. */
  onTurnEnd(): void {
    if (this.#phase === 'broadcast' && this.#rounds.isRoundDue) this.#pingFollowers();
  }

  #pingFollowers(): void {
    this.#rounds.beginRound();
    for (const peer of this.#peers.followers) this.#ping(peer);
  }

  /** Learners that do not serve yet answer no ping. */
  #ping(peer: LearnerPeer): void {
    if (peer.state !== PeerState.serving) return;
    if (!this.#givesLeases) {
      this.#feed.ping(peer);
    } else if (peer.pings.askedMs === null) {
      const nowMs = this.#clock.monotonicMs();
      const confirms = peer.pings.leaseMs === 0 || nowMs <= this.#lease.untilMs;
      peer.pings.ask(nowMs, this.#rounds.round, confirms);
      this.#feed.ping(peer, confirms);
    }
  }

  get #givesLeases(): boolean {
    return this.#options.leaseMs > 0;
  }

  /** @param isComplete the answer names all sessions that the learner has heard of */
  #onAnswer(peer: LearnerPeer, isComplete: boolean): void {
    const { pings, serverId } = peer;
    const askedMs = pings.onAnswered();
    if (askedMs === null) return;
    if (isComplete) this.#answers.onAnswered(serverId, askedMs, this.#clock.monotonicMs());
    if (peer.isVoter) this.#lease.onAnswered(serverId, askedMs);
    if (peer.isVoter && pings.round > peer.round) {
      peer.round = pings.round;
      peer.confirmedRound = peer.round;
      this.#rounds.onAnswer(serverId, peer.round);
      this.#answerSyncs();
    }
    const isAwaited = peer.isVoter && this.#rounds.round > pings.round;
    const canConfirm = !pings.confirms && this.#clock.monotonicMs() <= this.#lease.untilMs;
    if (isAwaited || canConfirm || pings.answered === FIRST_PING) this.#ping(peer);
  }

  #onPong(peer: LearnerPeer): void {
    if (peer.isObserver || peer.round >= this.#rounds.round) return;
    peer.round++;
    this.#rounds.onAnswer(peer.serverId, peer.round);
    peer.confirmedRound = peer.round;
    this.#answerSyncs();
  }

  #answerSyncs(): void {
    const ticket = this.#rounds.takeAnswered(this.#proposals.applied);
    if (ticket === null) return;
    this.#effects.synced(ticket);
    this.#feed.onSynced(ticket);
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
    } else if (nowMs >= this.#heartbeat.dueMs) {
      this.#heartbeat.schedule(nowMs);
      this.#beat(nowMs);
    }
  }

  /** Every half tick. */
  #beat(nowMs: number): void {
    this.#admission.refuseRivals();
    this.#admission.admitWinners(nowMs);
    for (const peer of this.#peers.values()) {
      if (peer.isSilent(nowMs)) this.#close(peer, `${peer.name} is silent`);
      else if (peer.owesTooLong(this.#proposals.lastTxn, nowMs, this.#syncMs)) {
        this.#close(peer, `${peer.name} has not acknowledged ${formatZxid(peer.owed)} within syncLimit`);
      } else if (peer.held !== null && peer.held.bytes > HELD_BYTES_MAX) {
        this.#close(peer, `${peer.held.bytes} bytes of commits wait for the answer to a sync of ${peer.name}`);
      }
    }
    if (this.#phase === 'discovery') this.#maybeChooseEpoch();
    if (this.#phase !== 'broadcast') return;
    if (this.#heartbeat.isSecond() && this.#findQuorum((peer) => peer.isPresent(nowMs, this.#initMs)) === null) {
      this.#stepDown('fewer than a quorum of the voters are connected');
      return;
    }
    this.#pingFollowers();
    for (const peer of this.#peers.observers) this.#ping(peer);
    this.#answerSyncs();
    if (this.#handOver !== null) this.#maybeFinishHandOver(false);
  }

  /** This server and those of the voters' learners of which it holds, when they are a quorum. */
  #findQuorum(holds: (peer: LearnerPeer) => boolean): QuorumProof | null {
    return this.#electorate.proveQuorum([this.#options.serverId, ...this.#peers.votersThat(holds)]);
  }

  #close(peer: LearnerPeer, reason: string): void {
    this.#effects.closeLearner(peer.link, reason);
    this.#forget(peer);
  }

  #forget(peer: LearnerPeer): void {
    this.#peers.forget(peer);
    this.#admission.onClosed(peer);
    if (peer.pings.leaseMs > 0) this.#answers.onClosed(peer.serverId);
    if (!peer.isVoter) return;
    this.#lease.forget(peer.serverId);
    this.#proposals.forget(peer.serverId);
    this.#rounds.forget(peer.serverId);
  }

  #enter(phase: LeaderPhase): void {
    this.#phase = phase;
    this.#phaseSinceMs = this.#clock.monotonicMs();
  }

  /** The phases before broadcast end in time, or the leadership does. */
  get #phaseEndsMs(): number {
    return this.#phase in WAITED_FOR ? this.#phaseSinceMs + this.#initMs : NEVER;
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
  handOver(reason: string): void {
    if (this.#phase === 'over' || this.#handOver !== null) return;
    if (this.#phase !== 'broadcast') {
      this.#stepDown(reason);
      return;
    }
    this.#beginHandOver(reason);
    this.#maybeFinishHandOver(false);
  }

  #beginHandOver(reason: string): void {
    this.#handOver = new HandOver(reason, this.#clock.monotonicMs() + this.#options.tickTimeMs);
  }

  #maybeFinishHandOver(isLate: boolean): void {
    const end = this.#handOver?.conclude(this.#peers.followers, this.#electorate, this.#proposals, isLate) ?? null;
    if (end === null) return;
    const { successor, reason } = end;
    if (successor !== null) {
      this.#effects.send(successor.link, { type: PacketType.handOver, zxid: this.lastProposed });
    }
    this.#stepDown(reason);
  }

  #stepDown(reason: string): void {
    this.#phase = 'over';
    this.#heartbeat.stop();
    this.#handOver = null;
    this.#effects.stepDown(reason);
  }
}

const REPLACED = 'another server leads the new membership';
/** The one that follows UPTODATE, behind NEWLEADER. The lease that it gives is as old as the ACK of that. */
const FIRST_PING = 2;

/** In ACKEPOCH: the learner had accepted this epoch before. */
const NOT_COUNTED = -1;

const WAITED_FOR: Partial<Record<LeaderPhase, string>> = {
  discovery: 'too few said which epoch they have accepted',
  epoch: 'too few have accepted the epoch',
  synchronization: 'too few have acknowledged NEWLEADER',
};
