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
  counterOf,
  DIGEST_VERSION,
  epochOf,
  Fifo,
  formatZxid,
  JuteWriter,
  type LearnerInfoPacket,
  type LearnerPacket,
  MAX_COUNTER,
  makeZxid,
  maxZxid,
  nextZxid,
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
import type { Broadcast } from './broadcast.ts';
import { CatchUp, type CatchUpStep, describeDeadEnd } from './catch-up.ts';
import { chooseSuccessor, isCandidate } from './hand-over.ts';
import { type History, type HistoryEntry, hasAllOf } from './history.ts';
import type { HeardVotes, LeaderEffects, LinkId } from './leader-host.ts';
import { findRefusal } from './learner-admission.ts';
import { LearnerPeer, PeerState } from './learner-peer.ts';
import { findExcess, isLeadBelieved, Promises } from './promises.ts';
import { Proposals } from './proposals.ts';
import { Rivals } from './rivals.ts';
import { SyncRounds } from './sync-rounds.ts';
import type { ZabOptions } from './zab-options.ts';

export type LeaderPhase = 'idle' | 'discovery' | 'epoch' | 'synchronization' | 'broadcast' | 'over';

const NEVER = Number.POSITIVE_INFINITY;
/** Bytes that may wait for a SYNC to one learner. Quorums answer pings faster than they commit: this is never reached. */
const HELD_BYTES_MAX = 64 * 1024 * 1024;

export class Leader implements Broadcast, DurabilityEvents {
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
  readonly #promises: Promises;
  readonly #heardVotes: HeardVotes;
  #startedMs = 0;
  #unfitness: string | null = null;
  /** Voters whose ACKEPOCH was counted. Their promise holds when they connect again, and say −1 then. */
  readonly #epochAckers = new Set<number>();
  /** This leader's epoch, once it is durable as acceptedEpoch and as currentEpoch. */
  #accepted: Durable<number> | null = null;
  #adopted: Durable<number> | null = null;
  #establishedMs = 0;

  readonly #peers = new Map<LinkId, LearnerPeer>();
  readonly #rivals: Rivals;
  /** Those that are sent what is proposed, and those that are sent what is committed, as it happens. */
  #followers: readonly LearnerPeer[] = [];
  #observers: readonly LearnerPeer[] = [];

  readonly #proposals: Proposals;
  readonly #catchUp: CatchUp;
  readonly #rounds: SyncRounds;
  /** Syncs of learners that wait, in the order of their tickets. */
  readonly #learnerSyncs: Fifo<{ readonly ticket: number; readonly peer: LearnerPeer }> = new Fifo();
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
    heardVotes: HeardVotes,
    effects: LeaderEffects,
    needSnapshot: Set<number> = new Set(),
  ) {
    const membership = parseMembership(configText);
    this.#options = options;
    this.#clock = clock;
    this.#electorate = electorate;
    this.#configText = configText;
    this.#configVersion = 'fault' in membership ? makeZxid(0, 0) : membership.version;
    this.#history = history;
    this.#effects = effects;
    this.#promises = new Promises(options.serverId, electorate, history);
    this.#heardVotes = heardVotes;
    this.#proposals = new Proposals(options.serverId, electorate, history, options.commitLogCount);
    this.#catchUp = new CatchUp(this.#proposals, effects, options.txnBytesMax, needSnapshot);
    this.#rounds = new SyncRounds(options.serverId, electorate);
    this.#rivals = new Rivals(options.tickTimeMs);
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
    return this.#unfitness;
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

  /** Syncs of learners that wait for a quorum. */
  get pendingSyncs(): number {
    return this.#learnerSyncs.length;
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
    this.#startedMs = this.#clock.monotonicMs();
    this.#heartbeatMs = this.#startedMs + this.#options.tickTimeMs / 2;
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
    if (this.#phase === 'over' || peer === undefined) return;
    this.#forget(peer);
    this.#admitWinners();
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
    const isFirst = peer.state === PeerState.connected && !this.#rivals.isWaiting(peer);
    const refusal = isFirst ? findRefusal(info, leader) : `${peer.name} says twice who it is`;
    if (refusal !== null) {
      this.#close(peer, refusal);
      return;
    }
    const standing = this.#standingConnectionOf(info.serverId);
    if (standing !== null) {
      if (!this.#rivals.challenge(peer, info, standing, this.#clock.monotonicMs())) return;
      this.#replace(standing);
    }
    this.#admit(peer, info);
  }

  #standingConnectionOf(serverId: number | null): LearnerPeer | null {
    for (const peer of this.#peers.values()) {
      if (peer.serverId === serverId && peer.state !== PeerState.connected) return peer;
    }
    return null;
  }

  #refuseRivals(): void {
    for (const { peer, standing } of this.#rivals.takeRefused()) {
      const reason = `${standing.name} is connected already, and that connection is alive: has another server its id?`;
      this.#close(peer, reason);
    }
  }

  #admitWinners(): void {
    const isConnected = ({ link }: LearnerPeer): boolean => this.#peers.has(link);
    const winners = this.#rivals.takeWinners(this.#clock.monotonicMs(), isConnected);
    for (const { peer, info, standing } of winners) {
      if (isConnected(standing)) this.#replace(standing);
      if (this.#phase !== 'over') this.#onInfo(peer, info);
    }
  }

  #replace(standing: LearnerPeer): void {
    this.#close(standing, `${standing.name} has connected again, and this connection of its is silent`);
  }

  #admit(peer: LearnerPeer, info: LearnerInfoPacket): void {
    const { serverId } = info;
    assert(serverId !== null, 'a learner that is not refused has said which server it is');
    peer.identify(info, serverId, this.#electorate.voters.has(serverId));
    peer.expectNothing();
    if (this.#accepted === null) {
      this.#promises.record(serverId, peer.isVoter, epochOf(info.zxid));
      this.#maybeChooseEpoch();
      return;
    }
    this.#inform(peer, this.#accepted);
    if (peer.isVoter && epochOf(info.zxid) > this.#epoch) this.#onLaterPromise(peer, epochOf(info.zxid));
  }

  /**
   * A voter that has promised a later epoch, to a leader that came to nothing, can follow no leader of this one: it would
   * knock in vain as long as this one leads. A new epoch takes it in. Not before `syncLimit` ticks have passed for each
   * epoch by which it is ahead, so that such voters never keep the ensemble from its work, nor use up its epochs.
   *
   * The next leader may find its quorum before that voter is heard. So this server promises the same first: the epoch that
   * follows is later than any that one of them has accepted, and not just the next of many that leave the voter out.
   *
   * One whose history is of a later epoch is another matter: to make way for its promise would be to replace its history.
   */
  #onLaterPromise(peer: LearnerPeer, accepted: number): void {
    const excess = findExcess(peer.name, accepted, this.#epoch);
    if (excess !== null) {
      this.#effects.staysOut(excess);
      this.#close(peer, excess);
      return;
    }
    const historyEpoch = peer.outlastsOlderEpochs ? this.#epoch : this.#heardVotes.historyEpochOf(peer.serverId);
    const isMerePromise = historyEpoch !== null && historyEpoch <= this.#epoch;
    const ledMs = this.#clock.monotonicMs() - this.#establishedMs;
    if (!isMerePromise || this.#phase !== 'broadcast') return;
    if (isLeadBelieved(accepted - this.#epoch, ledMs, this.#syncMs)) this.#makeWay(peer, accepted);
  }

  #makeWay(peer: LearnerPeer, accepted: number): void {
    if (this.#way !== null && this.#way.accepted >= accepted) return;
    const reason = `${peer.name} has accepted epoch ${accepted} and cannot follow in epoch ${this.#epoch}`;
    this.#way = { accepted, reason };
    this.#effects.acceptEpoch(accepted);
  }

  /**
   * A voter stands for election with a history of this epoch. While a quorum follows this leader there is no later one than
   * its own, unless servers of that quorum have lost their disks: then the longer history should win. This server steps
   * down, and promises nothing for the other one's sake: without it the epoch goes on by one only.
   */
  onOutranked(serverId: number, historyEpoch: number): void {
    if (this.#phase !== 'broadcast' || historyEpoch <= this.#epoch) return;
    if (this.#clock.monotonicMs() - this.#establishedMs < this.#syncMs) return;
    const reason =
      `server ${serverId} has a history of epoch ${historyEpoch}, later than epoch ${this.#epoch} of this leader: have ` +
      'servers of its quorum lost their data?';
    this.#effects.staysOut(`${reason} This leader makes way for the longer history`);
    this.handOver(reason);
  }

  #maybeChooseEpoch(): void {
    if (this.#epoch >= 0) return;
    const present: number[] = [];
    for (const peer of this.#peers.values()) {
      if (peer.isVoter && peer.state === PeerState.identified) present.push(peer.serverId);
    }
    const isLate = this.#clock.monotonicMs() - this.#startedMs >= this.#options.tickTimeMs;
    const choice = this.#promises.choose(present, isLate);
    if (choice.kind === 'unfit') {
      this.#unfitness = choice.reason;
      this.#stepDown(choice.reason);
    } else if (choice.kind === 'epoch') {
      this.#epoch = choice.epoch;
      this.#effects.acceptEpoch(this.#epoch);
    }
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    if (this.#phase === 'over') return;
    if (this.#way !== null) {
      if (epoch === this.#way.accepted) this.handOver(this.#way.reason);
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
      announces: Announcement.takesHandOver,
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
    if (peer.isVoter && currentEpoch !== NOT_COUNTED && lastZxid !== ZXID_NONE) this.#epochAckers.add(peer.serverId);
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
    if (!this.#electorate.isQuorum([this.#options.serverId, ...this.#epochAckers])) return;
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
    this.#phase = 'broadcast';
    this.#phaseEndsMs = NEVER;
    this.#establishedMs = this.#clock.monotonicMs();
    this.#effects.established(this.#adopted, this.#proposals.commitHistory(adopters));
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
    const first = maxZxid(nextZxid(peer.committed), makeZxid(this.#epoch, 1));
    for (let zxid = first; zxid <= this.#committed; zxid = nextZxid(zxid)) {
      this.#effects.send(peer.link, { type: PacketType.commit, zxid });
    }
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
    const writer = this.#writer;
    writer.position = 0;
    writeTxn(writer, header, txn);
    if (treeDigest !== null) writeTxnDigest(writer, DIGEST_VERSION, treeDigest);
    const payload = writer.toBytes();
    assert(payload.length <= this.#options.txnBytesMax, 'a txn is proposed that every learner takes');

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
      const entry = log.at(i);
      if (entry.zxid > this.#committed) return;
      for (const peer of this.#followers) if (peer.state === PeerState.serving) this.#maybeTellCommit(peer, entry);
      for (const peer of this.#observers) this.#maybeTellCommit(peer, entry);
    }
  }

  #maybeTellCommit(peer: LearnerPeer, entry: HistoryEntry): void {
    if (peer.held?.mustWait(entry.zxid)) peer.held.hold(entry);
    else this.#tellCommit(peer, entry);
  }

  #tellCommit({ link, isObserver }: LearnerPeer, { zxid, payload }: HistoryEntry): void {
    if (isObserver) this.#effects.sendInform(link, zxid, payload);
    else this.#effects.send(link, { type: PacketType.commit, zxid });
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
    if (peer === undefined) return;
    peer.held?.onSync(this.#proposals.lastTxn);
    if (ticket <= this.lastSynced) this.#sendSync(peer);
    else this.#learnerSyncs.push({ ticket, peer });
  }

  /** True when this learner has been told that everything up to `zxid` is committed. */
  hasTold(link: LinkId, zxid: Zxid): boolean {
    return this.#committed >= zxid && this.#peers.get(link)?.held?.mustWait(zxid) !== true;
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
    if (ticket === null) return;
    this.#effects.synced(ticket);
    const waiting = this.#learnerSyncs;
    for (let oldest = waiting.peek(); oldest !== undefined && oldest.ticket <= ticket; oldest = waiting.peek()) {
      waiting.shift();
      if (this.#peers.get(oldest.peer.link) === oldest.peer) this.#sendSync(oldest.peer);
    }
  }

  #sendSync(peer: LearnerPeer): void {
    this.#effects.send(peer.link, { type: PacketType.sync });
    const { held } = peer;
    if (held === null) return;
    held.onSynced();
    for (let entry = held.take(); entry !== null; entry = held.take()) this.#tellCommit(peer, entry);
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
    this.#refuseRivals();
    this.#admitWinners();
    for (const peer of this.#peers.values()) {
      if (peer.isSilent(nowMs)) this.#close(peer, `${peer.name} is silent`);
      else if (this.#owesTooLong(peer, nowMs)) {
        this.#close(peer, `${peer.name} has not acknowledged ${formatZxid(peer.owed)} within syncLimit`);
      } else if (peer.held !== null && peer.held.bytes > HELD_BYTES_MAX) {
        this.#close(peer, `${peer.held.bytes} bytes of commits wait for the answer to a sync of ${peer.name}`);
      }
    }
    if (this.#phase === 'discovery') this.#maybeChooseEpoch();
    if (this.#phase !== 'broadcast') return;
    this.#isWholeTick = !this.#isWholeTick;
    if (!this.#isWholeTick && this.#findQuorum((peer) => peer.state !== PeerState.connected) === null) {
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

  /** This server and those of the voters' learners of which it holds, when they are a quorum. */
  #findQuorum(holds: (peer: LearnerPeer) => boolean): QuorumProof | null {
    const ids = [this.#options.serverId];
    for (const peer of this.#peers.values()) if (peer.isVoter && holds(peer)) ids.push(peer.serverId);
    return this.#electorate.proveQuorum(ids);
  }

  #close(peer: LearnerPeer, reason: string): void {
    this.#effects.closeLearner(peer.link, reason);
    this.#forget(peer);
  }

  #forget(peer: LearnerPeer): void {
    this.#peers.delete(peer.link);
    this.#rivals.forget(peer);
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
