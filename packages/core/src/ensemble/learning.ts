/**
 * The host of a follower or an observer: its connection to the leader, its log, and its clients' requests.
 *
 *     WayToLeader ─► Learner ─► serve ─► clients are served
 *                      │ ▲
 *                      ▼ └── REQUEST ◄── LearnerServing ◄── clients
 *                   log, snapshot
 *
 * If an established link breaks, the role ends.
 */
import {
  hexZxid,
  type LearnerPacket,
  type Membership,
  OpCode,
  PacketType,
  type TxnEntry,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, EMPTY_HISTORY } from '../base/durable.ts';
import { TxnStopwatch } from '../base/meters/txn-stopwatch.ts';
import type { EnsembleOptions } from '../base/options.ts';
import type { LearnerView } from '../base/server-view.ts';
import type { Decision } from '../election/election-host.ts';
import type { LearnerServing } from '../request/learner-serving.ts';
import type { Database } from '../tree/database.ts';
import { LearnerLease } from '../zab/answer-lease.ts';
import type { Committed } from '../zab/committed.ts';
import { FollowedHistory } from '../zab/followed-history.ts';
import { hasAllOf } from '../zab/history.ts';
import { Learner } from '../zab/learner.ts';
import { endsWithItsFirst } from '../zab/learner-answers.ts';
import type { LearnerEffects } from '../zab/learner-host.ts';
import { LeaderConnector } from './leader-connector.ts';
import { LearnedDatabase } from './learned-database.ts';
import type { RecoveredState } from './member.ts';
import { hasSameQuorumAddress } from './members.ts';
import type { MembershipKeeper } from './membership-keeper.ts';
import { ObserverFeeding } from './observer-feeding.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { zabOptionsOf } from './zab-options-of.ts';

export class Learning implements Role, LearnerEffects {
  readonly leader: number;
  readonly #host: RoleHost;
  readonly #memberships: MembershipKeeper;
  readonly #events: RoleEvents;
  readonly #learner: Learner;
  readonly #isObserver: boolean;
  readonly #acks: TxnStopwatch;
  readonly #commits: TxnStopwatch;
  /** The membership in force when the role began, or the one proposed then if only that contains the leader. */
  readonly #membership: Membership;
  readonly #database: LearnedDatabase;
  #serving: LearnerServing | null = null;
  #isServing = false;
  readonly #ensemble: EnsembleOptions;
  /** The history that observers are fed from; null when this server does not feed observers. */
  #followed: FollowedHistory | null = null;
  #feeding: ObserverFeeding | null = null;
  readonly #connector: LeaderConnector;
  readonly #lease: LearnerLease = new LearnerLease();
  #isOver = false;

  /** @param startsEmpty start empty, as the history on disk cannot be reconciled with the leader's */
  constructor(
    host: RoleHost,
    ensemble: EnsembleOptions,
    memberships: MembershipKeeper,
    { leader, historyEpoch, historyZxid, checksPromises }: Decision,
    state: RecoveredState,
    startsEmpty: boolean,
    events: RoleEvents,
  ) {
    this.#host = host;
    const { meters } = host.turn;
    this.#acks = new TxnStopwatch(meters.ackDelay, 1);
    this.#commits = new TxnStopwatch(meters.commitDelay, 1);
    this.#ensemble = ensemble;
    this.leader = leader;
    this.#memberships = memberships;
    this.#events = events;
    this.#database = new LearnedDatabase(host, state, startsEmpty, {
      onReady: (database, lastZxid) => this.#begin(database, lastZxid),
      onTruncateRefused: (reason) =>
        this.stop(`the leader requires a truncation that is not possible (${reason}): this server starts empty`),
    });
    const { members } = memberships;
    this.#isObserver = members.isObserver(host.options.serverId);
    this.#membership = members.isCommittedMember(leader) ? members.membership : members.newest;
    this.#connector = new LeaderConnector(host, ensemble, () => memberships.members, leader, this.#isObserver, {
      onConnected: () => this.#learner.onConnected(),
      onPacket: (packet) => this.#learner.onPacket(packet),
      onProgress: () => this.#learner.onSnapshotProgress(),
      onSnapshot: (database) => {
        this.#database.receive(database);
        this.#learner.onSnapshotReceived();
      },
      onLinkClosed: (reason) => this.#learner.onLinkClosed(reason),
      onUnreachable: (reason) => this.stop(reason),
    });
    this.#learner = new Learner(
      {
        ...zabOptionsOf(host.options, ensemble),
        kind: this.#isObserver ? 'observer' : 'follower',
        configVersion: members.membership.version,
        leaderHistoryEpoch: historyEpoch,
        leaderChecksPromises: checksPromises,
        logsInforms: ensemble.syncEnabled,
        isCounted: !startsEmpty || hasAllOf({ currentEpoch: historyEpoch, lastZxid: historyZxid }, state.history),
      },
      host.ports.clock,
      startsEmpty ? { ...state.history, lastZxid: EMPTY_HISTORY, tail: [] } : state.history,
      this,
      this.#lease,
    );
  }

  /** For an observer: the server that feeds it, the leader or a follower. */
  get observerMaster(): number {
    return this.#connector.master;
  }

  get feedsObservers(): boolean {
    return this.#feeding !== null;
  }

  /** The observers fed by this server. */
  learners(): readonly LearnerView[] {
    return this.#feeding?.learners() ?? [];
  }

  /** False when its leader gives it no lease: an Apache server, one with another lease, or an observer master. */
  get isLeased(): boolean {
    return this.#lease.isHeld;
  }

  get rememberedTxns(): number {
    return this.#followed?.log.length ?? 0;
  }

  get isEstablished(): boolean {
    return this.#isServing;
  }

  get isLeaving(): boolean {
    return this.#isOver;
  }

  /** True when this server's history cannot be reconciled with the leader's: the next role starts empty. */
  get mustStartEmpty(): boolean {
    return this.#database.wasTruncateRefused || this.#learner.hasFoundGap;
  }

  /** Why this server stays out for longer than until the next attempt, as a message; null when it need not. */
  get exclusion(): string | null {
    return this.#learner.exclusion;
  }

  start(): void {
    this.#host.storage.reportTo(this.#learner);
    this.#connector.start();
  }

  leave(reason: string): void {
    this.stop(reason);
  }

  abandon(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.storage.reportTo(null);
    this.#feeding?.stop();
    this.#connector.close();
  }

  /** The leader's election connection has broken. */
  onLeaderLost(): void {
    if (!this.#isOver) this.#connector.onLeaderLost();
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  onTick(): void {
    this.#connector.onTick();
    if (!this.#isOver && this.#host.ports.clock.monotonicMs() >= this.#learner.nextDeadlineMs) this.#learner.onTick();
    if (!this.#isOver) this.#feeding?.onTick();
  }

  onTurnEnd(): void {
    if (this.#isOver) return;
    if (this.#serving !== null) this.#connector.onApplied(this.#serving.lastApplied);
    this.#feeding?.onTurnEnd();
  }

  nextDeadlineMs(): number {
    const feedingMs = this.#feeding?.nextDeadlineMs() ?? Number.POSITIVE_INFINITY;
    return Math.min(this.#connector.nextDeadlineMs, this.#learner.nextDeadlineMs, feedingMs);
  }

  /* ------------------------------------------------------------------------------------ what the learner asks ---- */

  send(packet: Exclude<LearnerPacket, UnknownPacket>): void {
    if (packet.type === PacketType.ack && this.#acks.awaits(packet.zxid)) this.#acks.stop(this.#host.turn.wallMs());
    this.#connector.send(packet);
  }

  pauseLink(): void {
    this.#connector.pause();
  }

  resumeLink(): void {
    this.#connector.resume();
  }

  acceptEpoch(epoch: number): void {
    this.#host.storage.writeEpoch('acceptedEpoch', epoch);
  }

  adoptEpoch(epoch: number): void {
    this.#host.storage.writeEpoch('currentEpoch', epoch);
  }

  append(zxid: Zxid, payload: Uint8Array): void {
    this.#host.storage.appendPayload(zxid, payload);
    // The payload is a view of a stream chunk: copy it so that the chunk is not retained.
    this.#followed?.push({ zxid, payload: payload.slice() });
  }

  synchronizing(mode: 'diff' | 'trunc' | 'snap', zxid: Zxid): void {
    this.#host.trace.emit({ kind: 'catching-up', leader: this.leader, mode, zxid });
  }

  keepHistory(): void {
    this.#database.keep();
  }

  truncate(zxid: Zxid): void {
    this.#database.truncate(zxid);
  }

  installSnapshot(): void {
    this.#database.installReceived();
  }

  /** The database is in the state that the leader asked for. */
  #begin(database: Database, lastZxid: Durable<Zxid>): void {
    if (this.#isOver) return;
    this.#serving = this.#host.servings.makeLearnerServing(database, {
      forward: (packet) => {
        if (packet.op === OpCode.sync) this.#feeding?.onOwnSync();
        this.send(packet);
      },
      revalidate: (packet) => {
        this.#feeding?.onOwnRevalidate(packet.sessionId);
        this.send(packet);
      },
    });
    this.#serving.sessions.holdsLeases = this.#lease.isHeld;
    const { observerMasterPort, commitLogCount } = this.#ensemble;
    const isParticipant = this.#memberships.members.isParticipant(this.#host.options.serverId);
    if (observerMasterPort > 0 && isParticipant) {
      this.#followed = new FollowedHistory(lastZxid, commitLogCount);
    }
    this.#learner.onReady(lastZxid);
  }

  proposed(entry: TxnEntry): void {
    const { zxid, time } = entry.header;
    if (this.#isServing) {
      this.#acks.start(zxid, time);
      this.#commits.start(zxid, time);
    }
    this.#feeding?.onProposed(entry);
    this.#serving?.onProposed(entry);
  }

  filled(first: Zxid, last: Zxid): void {
    const range = first === last ? `zxid ${hexZxid(first)}` : `the zxids ${hexZxid(first)} to ${hexZxid(last)}`;
    this.#host.trace.emit({
      kind: 'warning',
      message: `server ${this.leader}, an Apache leader, has skipped ${range}, as it does when a client sends it a multi with a null path. An error txn is logged instead; nothing is lost`,
    });
  }

  committed(watermark: Committed<Zxid>): void {
    if (this.#commits.awaits(watermark)) this.#commits.stop(this.#host.turn.wallMs());
    this.#host.trace.emit({ kind: 'committed', zxid: watermark });
    this.#serving?.onCommitted(watermark, this.#host.turn.nowMs());
    const followed = this.#followed;
    if (followed === null) return;
    const before = followed.committed;
    followed.commit(watermark);
    this.#feeding?.onCommitted(before);
    followed.trim();
  }

  membershipAgreed(zxid: Zxid, designatedLeader: number): void {
    this.#feeding?.activate(zxid, designatedLeader);
  }

  membershipProposed(_zxid: Zxid, data: Uint8Array | null): void {
    this.#memberships.onProposed(data);
  }

  membershipAnnounced(configText: string, pending: Zxid | null): void {
    this.#memberships.onAnnounced(configText, pending);
  }

  /** What is committed is answered before the role ends. */
  membershipCommitted(zxid: Zxid, designatedLeader: number): void {
    this.#memberships.onCommitted(zxid);
    const reason = this.#findReasonToLeave(designatedLeader);
    if (reason !== null) this.#host.turn.defer(() => this.stop(reason));
  }

  /**
   * Checks for a membership in which this server has another role, another server leads, or the leader has another
   * address.
   */
  #findReasonToLeave(designatedLeader: number | null): string | null {
    if (!this.#memberships.isReconfigEnabled) return null;
    const { members } = this.#memberships;
    const isObserver = members.isObserver(this.#host.options.serverId);
    if (isObserver !== this.#isObserver)
      return `this server is ${isObserver ? 'an observer' : 'not an observer'} in the new membership`;
    if (designatedLeader !== null && designatedLeader !== this.leader) {
      return `server ${designatedLeader} is to lead the new membership`;
    }
    if (!members.isParticipant(this.leader)) return `server ${this.leader} is not a participant of the new membership`;
    const isSame = hasSameQuorumAddress(this.#membership, members.membership, this.leader);
    return isSame ? null : `the leader, server ${this.leader}, has another address in the new membership`;
  }

  serve(epoch: number): void {
    assert(this.#serving !== null, 'a learner serves from a database');
    this.#memberships.onUpToDate(this.#learner.lastCommitted);
    const reason = this.#findReasonToLeave(null);
    if (reason !== null) {
      this.#host.turn.defer(() => this.stop(reason));
      return;
    }
    this.#memberships.show(this.#database.current);
    this.#isServing = true;
    this.#host.storage.allowSnapshots();
    this.#events.onEstablished(epoch, this.#database.current.lastZxid);
    this.#host.beginServing(this.#serving, epoch, this.#lease);
    if (this.#followed !== null) this.#beginFeeding(this.#followed, this.#serving, epoch);
  }

  #beginFeeding(history: FollowedHistory, serving: LearnerServing, epoch: number): void {
    history.beginEpoch(epoch);
    this.#feeding = new ObserverFeeding({
      host: this.#host,
      ensemble: this.#ensemble,
      memberships: this.#memberships,
      history,
      serving,
      ask: (packet) => this.send(packet),
    });
    this.#feeding.start();
  }

  synced(count: number): void {
    this.#serving?.onSynced(this.#feeding?.onSynced(count) ?? count);
  }

  revalidated(sessionId: bigint, isValid: boolean): void {
    if (this.#feeding?.onRevalidated(sessionId, isValid)) return;
    this.#serving?.onRevalidated(sessionId, isValid);
  }

  pinged(zxid: Zxid): void {
    const nowMs = this.#host.ports.clock.monotonicMs();
    const sessions = this.#serving?.takeTouched(nowMs) ?? [];
    this.#lease.onAnswering(nowMs, !endsWithItsFirst(sessions));
    this.send({ type: PacketType.ping, zxid, sessions });
  }

  handedOver(): void {
    this.stop('the leader hands over');
  }

  stop(reason: string): void {
    if (this.#isOver) return;
    this.abandon();
    this.#events.onEnded(reason);
  }
}
