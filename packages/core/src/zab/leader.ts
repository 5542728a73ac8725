/**
 * The leader of an epoch (Leader, LearnerHandler). See docs/zab.md.
 *
 *     start ──► discovery ──► epoch ──► synchronization ──► broadcast ──► over
 *                  │            │             │
 *                  │            │             └ a quorum has acknowledged NEWLEADER, and this server has currentEpoch
 *                  │            └ a quorum has answered LEADERINFO with ACKEPOCH
 *                  └ a quorum, this server included, has reported acceptedEpoch; the epoch is later than all of them
 *
 * Guarantees:
 *
 * 1. LEADERINFO is sent when acceptedEpoch is durable here, and this server counts itself as having acknowledged
 *    NEWLEADER when currentEpoch is (ZOOKEEPER-335, 1291).
 * 2. Only voters that follow count in discovery, for the epoch, for NEWLEADER, for a txn or for a sync. This server
 *    counts itself in each of them, once it has done its part (ZOOKEEPER-1192).
 * 3. A learner is sent DIFF, TRUNC or SNAP, the history, ascending and without a gap, NEWLEADER, UPTODATE. Txns
 *    proposed after its history was sent follow in order; no commit is sent between its NEWLEADER and its UPTODATE, and
 *    none for a txn that it was not sent before (ZOOKEEPER-3023, 4394).
 * 4. Nothing is committed before the epoch is established, and then in the order of the zxids.
 * 5. A learner's sync is answered by SYNC, behind the commits of everything that had been proposed when it arrived. An
 *    Apache server is sent no later commit before that, see `HeldCommits`.
 * 6. Within an event, commits are sent to learners before `committed` is called, `committed` before `synced`, and that
 *    before SYNC is sent. `stepDown` is the last effect.
 *
 * What the host does:
 *
 * - It calls `start` first, then delivers events in the order in which they happen; after `stepDown` they are ignored.
 * - It calls `onTurnEnd` at the end of every turn, before output leaves, and `onTick` at `nextDeadlineMs`.
 * - It proposes after `established`, and holds writes back while `isHandingOver`.
 */
import {
  counterOf,
  epochOf,
  type LearnerPacket,
  nextZxid,
  PacketType,
  type Txn,
  type TxnHeader,
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
import type { AnswerLease } from './answer-lease.ts';
import type { Broadcast } from './broadcast.ts';
import type { HandOver } from './hand-over.ts';
import { Heartbeat } from './heartbeat.ts';
import type { HistoryEntry } from './history.ts';
import type { LeadConfirmation } from './lead-confirmation.ts';
import { assembleLeader, type LeaderParts } from './leader-assembly.ts';
import { type LeaderBroadcast, REPLACED } from './leader-broadcast.ts';
import type { LeaderEpoch } from './leader-epoch.ts';
import type { LeaderFormation } from './leader-formation.ts';
import type { LeaderEffects, LeaderMembership, LinkId } from './leader-host.ts';
import type { LeaderPhase, LeaderPhases } from './leader-phases.ts';
import type { LearnerAdmission } from './learner-admission.ts';
import { endsWithItsFirst, type SessionLeases } from './learner-answers.ts';
import type { LearnerFeed } from './learner-feed.ts';
import { LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { LearnerSynchronization } from './learner-synchronization.ts';
import type { Proposals } from './proposals.ts';
import type { ZabOptions } from './zab-options.ts';

export class Leader implements Broadcast, DurabilityEvents {
  readonly #options: ZabOptions;
  readonly #clock: Clock;
  readonly #electorate: Electorate;
  readonly #membership: LeaderMembership;
  readonly #effects: LeaderEffects;

  readonly #phases: LeaderPhases;
  readonly #epoch: LeaderEpoch;
  readonly #peers: LearnerPeers;
  readonly #admission: LearnerAdmission;
  readonly #proposals: Proposals;
  readonly #feed: LearnerFeed;
  readonly #synchronization: LearnerSynchronization;
  readonly #formation: LeaderFormation;
  readonly #confirmation: LeadConfirmation;
  readonly #handOver: HandOver;
  readonly #broadcast: LeaderBroadcast;
  readonly #heartbeat: Heartbeat;

  constructor(parts: LeaderParts) {
    this.#options = parts.options;
    this.#clock = parts.clock;
    this.#electorate = parts.electorate;
    this.#membership = parts.membership;
    this.#effects = parts.effects;
    const assembly = assembleLeader(parts, {
      close: (peer, reason) => this.#close(peer, reason),
      maybeEstablish: () => this.#maybeEstablish(),
      handOver: (reason) => this.handOver(reason),
      stepDown: (reason) => this.#stepDown(reason),
    });
    this.#phases = assembly.phases;
    this.#epoch = assembly.epoch;
    this.#peers = assembly.peers;
    this.#admission = assembly.admission;
    this.#proposals = assembly.proposals;
    this.#feed = assembly.feed;
    this.#synchronization = assembly.synchronization;
    this.#formation = assembly.formation;
    this.#confirmation = assembly.confirmation;
    this.#handOver = assembly.handOver;
    this.#broadcast = assembly.broadcast;
    this.#heartbeat = new Heartbeat(parts.options.tickTimeMs);
  }

  get phase(): LeaderPhase {
    return this.#phases.current;
  }

  /** The epoch that this leader has chosen; −1 during discovery. */
  get epoch(): number {
    return this.#epoch.number;
  }

  /** Why this server should not stand for election again, human-readable; null when it may. */
  get unfitness(): string | null {
    return this.#epoch.unfitness;
  }

  /** (epoch, 0) from the choice of the epoch to the first proposal. */
  get lastProposed(): Zxid {
    return this.#proposals.lastProposed;
  }

  /** The last txn, of this epoch or of its initial history. */
  get lastTxn(): Zxid {
    return this.#proposals.lastTxn;
  }

  /**
   * Up to where a quorum holds everything, as learners are told; before the epoch is established, the end of its
   * history.
   */
  get lastCommitted(): Zxid {
    return this.#proposals.committed;
  }

  /** How long this server may answer its own clients. */
  get lease(): AnswerLease {
    return this.#confirmation.lease;
  }

  /** Which sessions may end, as far as learners have answered them. */
  get sessionLeases(): SessionLeases {
    return this.#confirmation.sessionLeases;
  }

  /** Txns in memory for learners that are a little behind. */
  get rememberedTxns(): number {
    return this.#proposals.log.length;
  }

  /** Syncs of learners that wait for a quorum. */
  get pendingSyncs(): number {
    return this.#feed.pendingSyncs;
  }

  get lastSynced(): number {
    return this.#confirmation.lastSynced;
  }

  /**
   * True once this leader has begun to hand over: the host proposes nothing more and holds requests back. They are not
   * answered; on `stepDown` they fail with their connections, and the clients retry.
   */
  get isHandingOver(): boolean {
    return this.#handOver.isBegun;
  }

  /** The connected learners. */
  get learners(): Iterable<
    Readonly<Pick<LearnerPeer, 'link' | 'serverId' | 'isObserver' | 'isVoter' | 'state' | 'acked'>>
  > {
    return this.#peers.values();
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#phases.endsMs, this.#heartbeat.dueMs, this.#handOver.endsMs);
  }

  /* ------------------------------------------------------------------------------------------ discovery ---- */

  start(): void {
    assert(this.phase === 'idle', 'a leader starts once');
    this.#phases.enter('discovery');
    this.#heartbeat.schedule(this.#clock.monotonicMs());
    this.#formation.maybeChooseEpoch();
  }

  onLearnerConnected(link: LinkId): void {
    if (this.phase === 'over') return;
    this.#peers.connect(new LearnerPeer(link, this.#clock.monotonicMs(), this.#initMs));
  }

  /** @param _reason human-readable; has no effect */
  onLearnerClosed(link: LinkId, _reason: string): void {
    const peer = this.#peers.get(link);
    if (this.phase === 'over' || peer === undefined) return;
    this.#forget(peer);
    this.#admission.admitWinners(this.#clock.monotonicMs());
  }

  onLearnerPacket(link: LinkId, packet: LearnerPacket): void {
    const peer = this.#peers.get(link);
    if (this.phase === 'over' || peer === undefined) return;
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
        this.#confirmation.onPong(peer, !endsWithItsFirst(packet.sessions));
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
        this.#formation.onAckEpoch(peer, packet.zxid, packet.currentEpoch);
        return;
      case null:
        return;
    }
  }

  /** A voter stands for election with a history of this epoch. */
  onOutranked(serverId: number, historyEpoch: number): void {
    const reason = this.#epoch.onCandidate(serverId, historyEpoch);
    if (reason !== null) this.handOver(reason);
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    if (this.phase !== 'over') this.#formation.onEpochDurable(name, epoch);
  }

  /* ------------------------------------------------------------------------------------ synchronization ---- */

  /** Result of `readHistory`: begins with the last entry not later than its `from`; empty if it cannot be read. */
  onHistoryRead(link: LinkId, entries: readonly HistoryEntry[]): void {
    const peer = this.#peers.get(link);
    if (this.phase !== 'over' && peer !== undefined) this.#synchronization.onHistoryRead(peer, entries);
  }

  /** The link has room: little of what was sent over it is still buffered. */
  onLearnerRoom(link: LinkId): void {
    const peer = this.#peers.get(link);
    if (this.phase !== 'over' && peer !== undefined) this.#synchronization.onRoom(peer);
  }

  /** The learner has read buffered data: it is slow, but alive (ZOOKEEPER-1697). */
  onLearnerProgress(link: LinkId): void {
    this.#peers.get(link)?.onProgress(this.#clock.monotonicMs());
  }

  #onNewLeaderAck(peer: LearnerPeer): void {
    if (peer.state > PeerState.announced) return;
    if (peer.state < PeerState.announced) {
      this.#close(peer, `${peer.name} acknowledges NEWLEADER, which it was not sent`);
      return;
    }
    peer.state = PeerState.synchronized;
    peer.expectNothing();
    this.#confirmation.onNewLeaderAck(peer);
    peer.acked = maxDurable(peer.acked, onDiskOfLearner(peer.committed));
    this.#effects.synchronized(peer.serverId, peer.committed);
    if (this.phase !== 'broadcast') {
      this.#maybeEstablish();
      return;
    }
    this.#broadcast.onSynchronized(peer);
  }

  #maybeEstablish(): void {
    const { adopted } = this.#epoch;
    if (this.phase !== 'synchronization' || adopted === null) return;
    const adopters = this.#findQuorum((peer) => peer.state === PeerState.synchronized);
    if (adopters === null) return;
    this.#phases.enter('broadcast');
    const history = this.#proposals.commitHistory(adopters);
    this.#effects.membershipEstablished();
    this.#broadcast.onElectorateChanged();
    this.#effects.established(adopted, history);
    for (const peer of this.#peers.values()) if (peer.state === PeerState.synchronized) this.#broadcast.welcome(peer);
    if (!this.#membership.keepsLeader) this.handOver(REPLACED);
  }

  /* ------------------------------------------------------------------------------------------ broadcast ---- */

  nextZxid(): Zxid {
    return nextZxid(this.lastProposed);
  }

  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number {
    return this.#broadcast.propose(header, txn, treeDigest);
  }

  /** True when this server and its serving followers are a quorum of another membership. */
  wouldReach(quorum: Quorum): boolean {
    if (this.phase !== 'broadcast') return false;
    const followers = this.#peers.followers.filter(({ state }) => state === PeerState.serving);
    return quorum.isReachedBy([this.#options.serverId, ...followers.map(({ serverId }) => serverId)]);
  }

  onLogSynced(durable: Durable<Zxid>): void {
    this.#broadcast.onLogSynced(durable);
  }

  #onAck(peer: LearnerPeer, zxid: Zxid): void {
    if (counterOf(zxid) !== 0) this.#broadcast.onAck(peer, zxid);
    else if (epochOf(zxid) === this.epoch) this.#onNewLeaderAck(peer);
  }

  /**
   * Answered once a quorum confirms that this server still leads, and it has applied everything proposed before. With a
   * quorum of one and nothing outstanding, the returned ticket has been answered already.
   */
  sync(): number {
    assert(this.phase === 'broadcast', 'a leader confirms that it leads once its epoch is established');
    return this.#confirmation.sync();
  }

  /** Sends SYNC over a link once a ticket is answered; at once if it already is. */
  sendSync(link: LinkId, ticket: number): void {
    const peer = this.#peers.get(link);
    if (peer !== undefined) this.#feed.sync(peer, ticket, this.lastSynced);
  }

  /** True when this learner has been told that everything up to `zxid` is committed. */
  hasSentCommit(link: LinkId, zxid: Zxid): boolean {
    return this.#feed.hasSentCommit(this.#peers.get(link), zxid);
  }

  /** The turn ends: one ping to every voter confirms all syncs received in it. */
  onTurnEnd(): void {
    if (this.phase === 'broadcast') this.#confirmation.onTurnEnd();
  }

  /** Only learners that were told to serve may send requests. */
  #mayAsk(peer: LearnerPeer, what: string): boolean {
    if (peer.state === PeerState.serving) return true;
    this.#close(peer, `${peer.name} sends ${what} before it may serve`);
    return false;
  }

  /* ------------------------------------------------------------------------------------------- liveness ---- */

  onTick(): void {
    if (this.phase === 'over') return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#phases.endsMs) {
      this.#stepDown(this.#phases.describeTimeout());
    } else if (nowMs >= this.#handOver.endsMs) {
      this.#handOver.onLate();
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
      const fault = peer.findFault(this.#proposals.lastTxn, nowMs, this.#syncMs);
      if (fault !== null) this.#close(peer, fault);
    }
    if (this.phase === 'discovery') this.#formation.maybeChooseEpoch();
    if (this.phase !== 'broadcast') return;
    if (this.#heartbeat.isSecond() && this.#findQuorum((peer) => peer.isPresent(nowMs, this.#initMs)) === null) {
      this.#stepDown('fewer than a quorum of the voters are connected');
      return;
    }
    this.#confirmation.pingFollowers();
    for (const peer of this.#peers.observers) this.#confirmation.ping(peer);
    this.#confirmation.answerSyncs();
    this.#handOver.maybeFinish();
  }

  /** Proof that this server and the voters for which `holds` is true are a quorum; null if they are not. */
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
    this.#confirmation.forget(peer);
    if (peer.isVoter) this.#proposals.forget(peer.serverId);
  }

  get #initMs(): number {
    return this.#options.initLimit * this.#options.tickTimeMs;
  }

  get #syncMs(): number {
    return this.#options.syncLimit * this.#options.tickTimeMs;
  }

  /* ------------------------------------------------------------------------------------------ the end ---- */

  /**
   * Hands over to a follower that has everything and understands HANDOVER, if there is one within a tick. The host
   * proposes nothing more, see `isHandingOver`. `stepDown` follows in any case, possibly before this returns.
   */
  handOver(reason: string): void {
    if (this.phase === 'over' || this.#handOver.isBegun) return;
    if (this.phase !== 'broadcast') {
      this.#stepDown(reason);
      return;
    }
    this.#handOver.begin(reason);
    this.#handOver.maybeFinish();
  }

  #stepDown(reason: string): void {
    this.#phases.enter('over');
    this.#heartbeat.stop();
    this.#handOver.stop();
    this.#effects.stepDown(reason);
  }
}
