/**
 * The host of a leader: the links to its learners, its log, and the requests of all clients.
 *
 *     QuorumPort ──► LearnerLink ─► Leader ─► established ─► clients are served
 *                        ▲            │ ▲
 *          PROPOSAL …    └────────────┘ └── propose ◄── LeaderServing ◄── REQUEST, clients
 */
import {
  type ForwardedRequestPacket,
  type LeaderPacket,
  OpCode,
  PacketType,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';
import type { LearnerMeter } from '../base/meters/learner-meters.ts';
import type { EnsembleOptions } from '../base/options.ts';
import type { ByteStream, StreamEvents } from '../base/ports.ts';
import type { LearnerView } from '../base/server-view.ts';
import { LearnerLink } from '../links/learner-link.ts';
import type { LeaderServing } from '../request/leader-serving.ts';
import type { Database } from '../tree/database.ts';
import type { Committed } from '../zab/committed.ts';
import type { History } from '../zab/history.ts';
import { Leader } from '../zab/leader.ts';
import type { LeaderEffects, LinkId, PeerVotes } from '../zab/leader-host.ts';
import { PeerState } from '../zab/learner-peer.ts';
import { findRefusalOfClaim } from './claims.ts';
import { readHistory } from './history-reading.ts';
import { chooseForRoom } from './learner-room.ts';
import type { RecoveredState } from './member.ts';
import type { MembershipKeeper } from './membership-keeper.ts';
import { ProposalSizes } from './proposal-sizes.ts';
import { Reconfiguration } from './reconfiguration.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { WaitingRevalidations } from './waiting-revalidations.ts';
import { zabOptionsOf } from './zab-options-of.ts';

/** State that outlives one leadership. */
export interface LeadershipMemory {
  readonly peerVotes: PeerVotes;
  /** Learners that this server, as leader, cannot bring up to date txn by txn. */
  readonly needSnapshot: Set<number>;
}

const REFUSED: StreamEvents = { onBytes() {}, onDrain() {}, onClosed() {} };

export class Leading implements Role, LeaderEffects {
  readonly proposalSizes: ProposalSizes = new ProposalSizes();
  readonly #host: RoleHost;
  readonly #ensemble: EnsembleOptions;
  readonly #memberships: MembershipKeeper;
  readonly #events: RoleEvents;
  readonly #leader: Leader;
  readonly #links = new Map<LinkId, LearnerLink>();
  readonly #database: Database;
  readonly #revalidations = new WaitingRevalidations();
  readonly #ownMeter: LearnerMeter | null;
  #serving: LeaderServing | null = null;
  #nextLink: LinkId = 1;
  #isOver = false;

  constructor(
    host: RoleHost,
    ensemble: EnsembleOptions,
    memberships: MembershipKeeper,
    memory: LeadershipMemory,
    state: RecoveredState,
    events: RoleEvents,
  ) {
    this.#host = host;
    this.#ensemble = ensemble;
    this.#memberships = memberships;
    this.#events = events;
    this.#database = state.database;
    this.#ownMeter = host.turn.meters.learners.of(host.options.serverId);
    this.#ownMeter?.acks.forget();
    const history: History = state.history;
    this.#leader = new Leader({
      options: zabOptionsOf(host.options, ensemble),
      clock: host.ports.clock,
      electorate: memberships.members.electorate,
      membership: memberships,
      history,
      effects: this,
      ...memory,
    });
  }

  get leader(): number {
    return this.#host.options.serverId;
  }

  get pendingSyncs(): number {
    return this.#leader.pendingSyncs;
  }

  get rememberedTxns(): number {
    return this.#leader.rememberedTxns;
  }

  get isEstablished(): boolean {
    return this.#serving !== null;
  }

  /** Why this server should not stand for election again, as a message; null when nothing prevents it. */
  get unfitness(): string | null {
    return this.#leader.unfitness;
  }

  /** A voter stands for election with a history of this epoch, which is later than this leader's. */
  onOutranked(serverId: number, historyEpoch: number): void {
    this.#leader.onOutranked(serverId, historyEpoch);
  }

  /** The learners that have identified themselves. */
  learners(): readonly LearnerView[] {
    const identified = [...this.#leader.learners].filter(({ state }) => state !== PeerState.connected);
    return identified.map(({ serverId, isObserver, isVoter, state }) => ({
      serverId,
      isObserver,
      isVoter,
      isSynchronized: state === PeerState.serving,
    }));
  }

  get isLeaving(): boolean {
    return this.#isOver || this.#leader.isHandingOver;
  }

  start(): void {
    this.#host.storage.reportTo(this.#leader);
    this.#leader.start();
  }

  leave(reason: string): void {
    if (this.#serving !== null) this.#leader.handOver(reason);
    else this.stepDown(reason);
  }

  abandon(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.storage.reportTo(null);
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  onTick(): void {
    if (this.#host.ports.clock.monotonicMs() >= this.#leader.nextDeadlineMs) this.#leader.onTick();
  }

  onTurnEnd(): void {
    if (this.#isOver) return;
    this.#leader.onTurnEnd();
    this.#revalidations.answer(this.#hasSentCommit, this.#answerRevalidation);
  }

  nextDeadlineMs(): number {
    return this.#leader.nextDeadlineMs;
  }

  /** A learner, or a stranger claiming to be one, has connected to the quorum port. */
  accept(stream: ByteStream): StreamEvents {
    if (!this.#makeRoom(stream.isCrowding ?? false)) {
      stream.destroy();
      return REFUSED;
    }
    const id = this.#nextLink++;
    const link = new LearnerLink(stream, this.#host, {
      onPacket: (packet) => {
        if (this.#isOver) return;
        const refusal = findRefusalOfClaim(stream, packet, this.#memberships.members);
        if (refusal === null) this.#leader.onLearnerPacket(id, packet);
        else this.#shed(id, refusal);
      },
      onRoom: () => this.#onRoom(id),
      onProgress: () => {
        if (!this.#isOver) this.#leader.onLearnerProgress(id);
      },
      onLinkClosed: (reason) => {
        if (!this.#links.delete(id) || this.#isOver) return;
        this.#revalidations.forget(id);
        this.#traceClosed(id, reason);
        this.#leader.onLearnerClosed(id, reason);
      },
    });
    this.#links.set(id, link);
    if (this.#isOver) link.close();
    else this.#leader.onLearnerConnected(id);
    return link;
  }

  /** @returns false when there is no room for another one */
  #makeRoom(isCrowded: boolean): boolean {
    const choice = chooseForRoom(
      {
        learners: this.#leader.learners,
        remoteOf: (link) => this.#links.get(link)?.remote ?? null,
        isMember: (serverId) => this.#memberships.members.isMember(serverId),
      },
      isCrowded,
    );
    if (choice === 'none' || choice === 'full') return choice === 'none';
    this.#shed(choice.link, choice.reason);
    return true;
  }

  #shed(link: LinkId, reason: string): void {
    this.closeLearner(link, reason);
    this.#leader.onLearnerClosed(link, reason);
  }

  /* ------------------------------------------------------------------------------------- what the leader asks ---- */

  send(link: LinkId, packet: Exclude<LeaderPacket, UnknownPacket>): void {
    this.#links.get(link)?.send(packet);
  }

  sendProposal(link: LinkId, zxid: Zxid, payload: Uint8Array): void {
    const learner = this.#links.get(link);
    learner?.sendProposal(zxid, payload);
    if (learner?.meter?.acks.isIdle) learner.meter.acks.start(zxid, this.#host.turn.startedMs());
  }

  sendInform(link: LinkId, zxid: Zxid, payload: Uint8Array): void {
    this.#links.get(link)?.sendInform(zxid, payload);
  }

  sendSnapshot(link: LinkId, zxid: Zxid): void {
    // What is sent after it continues from what is committed now.
    this.#serving?.pipeline.applyAll(this.#host.turn.nowMs());
    this.#links.get(link)?.sendSnapshot(this.#database, zxid);
  }

  readHistory(link: LinkId, from: Zxid, upTo: Zxid): void {
    readHistory(this.#host, this.#ensemble, { from, upTo }, (entries) => this.#onHistoryRead(link, entries));
  }

  #onHistoryRead(link: LinkId, entries: History['tail']): void {
    if (!this.#isOver && this.#links.has(link)) this.#leader.onHistoryRead(link, entries);
  }

  closeLearner(link: LinkId, reason: string): void {
    this.#traceClosed(link, reason);
    const closing = this.#links.get(link);
    this.#links.delete(link);
    this.#revalidations.forget(link);
    closing?.close();
  }

  #traceClosed(id: LinkId, reason: string): void {
    const learner = [...this.#leader.learners].find(({ link }) => link === id);
    const isKnown = learner !== undefined && learner.state !== PeerState.connected;
    this.#host.trace.emit({ kind: 'learner-closed', serverId: isKnown ? learner.serverId : null, reason });
  }

  acceptEpoch(epoch: number): void {
    this.#host.storage.writeEpoch('acceptedEpoch', epoch);
  }

  adoptEpoch(epoch: number): void {
    this.#memberships.onEpochChosen(epoch);
    this.#host.storage.writeEpoch('currentEpoch', epoch);
  }

  append(zxid: Zxid, payload: Uint8Array): void {
    this.proposalSizes.onProposed(payload.length);
    this.#host.trace.emit({ kind: 'proposed', zxid });
    if (this.#ownMeter?.acks.isIdle) this.#ownMeter.acks.start(zxid, this.#host.turn.startedMs());
    this.#host.storage.appendPayload(zxid, payload);
  }

  acknowledged(link: LinkId | null, zxid: Durable<Zxid>): void {
    const meter = link === null ? this.#ownMeter : this.#links.get(link)?.meter;
    if (meter?.acks.awaits(zxid)) meter.acks.stop(this.#host.turn.startedMs());
  }

  membershipProposed(_zxid: Zxid, data: Uint8Array | null): void {
    this.#memberships.onProposed(data);
  }

  membershipCommitted(zxid: Zxid): void {
    this.#memberships.onCommitted(zxid);
  }

  membershipEstablished(): void {
    this.#memberships.onEstablished();
    this.#memberships.show(this.#database);
  }

  established(epoch: number, history: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: history });
    const reconfiguration = new Reconfiguration(
      this.#memberships,
      this.#leader,
      this.#ensemble.membershipRules,
      this.#host.trace,
    );
    const { sessionLeases, lease } = this.#leader;
    const serving = this.#host.servings.makeLeaderServing(this.#database, this.#leader, reconfiguration, sessionLeases);
    this.#serving = serving;
    this.#host.storage.allowSnapshots();
    this.#events.onEstablished(epoch, this.#database.lastZxid);
    this.#host.beginServing(serving, epoch, lease);
  }

  committed(watermark: Committed<Zxid>): void {
    this.#host.trace.emit({ kind: 'committed', zxid: watermark });
    this.#serving?.onCommitted(watermark, this.#host.turn.nowMs());
  }

  synced(ticket: number): void {
    this.#serving?.onSynced(ticket);
  }

  requested(link: LinkId, serverId: number, request: ForwardedRequestPacket): void {
    // The learner sees this role end, and its client retries.
    if (this.#serving === null || this.isLeaving) return;
    const nowMs = request.op === OpCode.createSession ? this.#receivedMs : this.#host.turn.nowMs();
    const onTicket = (ticket: number): void => this.#leader.sendSync(link, ticket);
    this.#serving.onForwarded(serverId, request, nowMs, this.#host.turn.wallMs(), onTicket);
  }

  revalidated(link: LinkId, serverId: number, { sessionId, timeoutMs }: RevalidateRequestPacket): void {
    const isValid = this.#serving?.revalidate(serverId, sessionId, timeoutMs, this.#receivedMs) ?? false;
    const { lastCommitted, lastTxn } = this.#leader;
    // The learner must first receive everything committed, so that it knows the session. An observer is not sent
    // proposals: it must first receive everything that the session requested elsewhere. Otherwise it would take such a
    // txn for the answer to a request that the session makes at the observer.
    const isObserver = [...this.#leader.learners].some((learner) => learner.link === link && learner.isObserver);
    const zxid = isObserver ? lastTxn : lastCommitted;
    const hasAllCommits = this.#leader.hasSentCommit(link, zxid);
    if (!isValid || hasAllCommits) this.send(link, { type: PacketType.revalidate, sessionId, isValid });
    else this.#revalidations.add(link, zxid, sessionId);
  }

  readonly #hasSentCommit = (link: LinkId, zxid: Zxid): boolean => this.#leader.hasSentCommit(link, zxid);

  readonly #answerRevalidation = (link: LinkId, sessionId: bigint): void => {
    const isValid = this.#serving?.sessions.isLive(sessionId) ?? false;
    this.send(link, { type: PacketType.revalidate, sessionId, isValid });
  };

  touched(sessions: readonly SessionTimeout[]): void {
    this.#serving?.touch(sessions, this.#receivedMs);
  }

  answered(serverId: number): void {
    if (this.isLeaving) return;
    this.#serving?.onAnswered(serverId, this.#host.turn.nowMs(), this.#host.turn.wallMs());
  }

  /** A session expires that long after its ping arrived, not after the start of the turn in which the ping was read. */
  get #receivedMs(): number {
    return Math.ceil(this.#host.ports.clock.monotonicMs());
  }

  stepDown(reason: string): void {
    if (this.#isOver) return;
    this.abandon();
    this.#events.onEnded(reason);
  }

  staysOut(reason: string): void {
    this.#host.trace.emit({ kind: 'warning', message: reason });
  }

  synchronizing(serverId: number, mode: 'diff' | 'trunc' | 'snap', from: Zxid, zxid: Zxid): void {
    this.#host.trace.emit({ kind: 'learner-synchronizing', serverId, mode, from, zxid });
    const learner = [...this.#leader.learners].findLast((peer) => peer.serverId === serverId);
    const link = learner === undefined ? undefined : this.#links.get(learner.link);
    if (link === undefined) return;
    link.meter = this.#host.turn.meters.learners.of(serverId);
    link.meter?.acks.forget();
  }

  synchronized(serverId: number, zxid: Zxid): void {
    this.#host.trace.emit({ kind: 'learner-synchronized', serverId, zxid });
  }

  #onRoom(id: LinkId): void {
    if (!this.#isOver && this.#links.has(id)) this.#leader.onLearnerRoom(id);
  }
}
