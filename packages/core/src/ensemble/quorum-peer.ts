/**
 * A server of an ensemble through its life (QuorumPeer): it looks for a leader, is one or follows one, and looks again.
 *
 *     recovered ─► LOOKING ──decided──► LEADING │ FOLLOWING │ OBSERVING ──ended──► the storage stops and recovers ─┐
 *                     ▲                                                                                            │
 *                     └────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Each role is an incarnation of its own: it begins with what the disk holds and leaves nothing behind in memory. What
 * the disk, the network and the clients have to say to an earlier one reaches nobody.
 */
import { type ElectionNotification, MAX_EPOCH, type Membership } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { EnsembleOptions } from '../base/options.ts';
import type { EnsembleView, LearnerView, ProposalSizesView } from '../base/server-view.ts';
import { Election } from '../election/election.ts';
import { DEFAULT_ELECTION_OPTIONS, type Decision, type ElectionEffects } from '../election/election-host.ts';
import { ElectionLinks } from '../links/election-links.ts';
import { authenticated } from '../links/peer-authentication.ts';
import { findOlderHistory } from '../zab/exclusion.ts';
import { describeEnd } from '../zab/promises.ts';
import { Leading } from './leading.ts';
import { Learning } from './learning.ts';
import type { Member, RecoveredState } from './member.ts';
import { Members } from './members.ts';
import { QuorumPort } from './quorum-port.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Pauses before looking again, in milliseconds, after roles that came to nothing one after the other: a decision that
 * cannot be carried out would otherwise be made again at once, for ever.
 */
const PAUSES_MS: readonly number[] = [0, 20, 50, 100, 200, 400, 800];

/** Milliseconds that the first search waits for the quorum port: to listen at a name takes as long as to look it up. */
const PORT_WAIT_MS = 1000;

const DEAF = 'its followers cannot connect';

export interface PeerHost extends RoleHost {
  /** A role has ended: clients are sent away, the storage stops and recovers; `onRecovered` follows. */
  beginAnew(reason: string): void;
}

export class QuorumPeer implements Member, ElectionEffects, EnsembleView {
  readonly #host: PeerHost;
  readonly #ensemble: EnsembleOptions;
  readonly #members: Members;
  readonly #election: Election;
  readonly #links: ElectionLinks;
  readonly #port: QuorumPort;
  #role: Role | null = null;
  #state: RecoveredState | null = null;
  /** When to look, after a pause. */
  #lookAtMs = NEVER;
  /** When this server hands over unless learners can connect again; it leads, and its quorum port is closed. */
  #deafUntilMs = NEVER;
  /** The first search is about to begin, once it is known whether this server can lead. */
  #isAwaitingPort = false;
  #isLooking = false;
  /** In the present search, or the last one. */
  #isCandidate = false;
  /** Why this server does not stand for election although learners could connect, for people; null when it does. */
  #unfitness: string | null = null;
  #failures = 0;
  /** Milliseconds that the next search waits at least. */
  #pauseMinMs = 0;
  /** Why it looks for a leader, for people. */
  #lookReason = 'it has just started';
  /** The next role begins with nothing, as the last one found its history to be of no use. */
  #beginsAnew = false;
  /** Learners that are to be sent a snapshot when this server leads again: what it tried last ended in a dead end. */
  readonly #needSnapshot = new Set<number>();
  #isStopping = false;

  constructor(host: PeerHost, ensemble: EnsembleOptions) {
    this.#host = host;
    this.#ensemble = ensemble;
    this.#members = new Members(ensemble.membership);
    const { serverId } = host.options;
    this.#election = new Election(
      { serverId, ...DEFAULT_ELECTION_OPTIONS },
      host.ports.clock,
      this.#members.electorate,
      this.#members.configText,
      this,
    );
    this.#links = new ElectionLinks(
      host,
      {
        serverId,
        membership: ensemble.membership,
        connectTimeoutMs: ensemble.electionConnectTimeoutMs,
        addressTimeoutMs: ensemble.addressTimeoutMs,
        listensOnAllIps: ensemble.listensOnAllIps,
      },
      {
        onPeerConnected: (id) => this.#election.onPeerConnected(id),
        onPeerUnreachable: (id) => this.#election.onPeerUnreachable(id),
        onNotification: (from, notification) => this.#election.onNotification(from, notification),
      },
    );
    // An observer never leads.
    const listeners = this.#members.isParticipant(serverId)
      ? this.#members.quorumListenersOf(serverId, ensemble.listensOnAllIps)
      : [];
    const { network, peerAuthentication = null } = host.ports;
    const portNetwork = authenticated(network, peerAuthentication, 'quorum', host.trace);
    this.#port = new QuorumPort({ ...host.ports, network: portNetwork, trace: host.trace }, listeners, () =>
      this.#onPortChanged(),
    );
  }

  get isLeaving(): boolean {
    return this.#role?.isLeaving ?? false;
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  /** The storage has recovered: at the start, or after a role. */
  onRecovered(state: RecoveredState): void {
    assert(this.#role === null, 'a role ends before the next storage recovers');
    const isStart = this.#state === null;
    this.#state = state;
    if (isStart) {
      this.#isAwaitingPort = true;
      this.#lookAtMs = this.#host.turn.nowMs() + PORT_WAIT_MS;
      this.#port.start();
      this.#onPortChanged();
      return;
    }
    const pauseMs = PAUSES_MS[Math.min(this.#failures, PAUSES_MS.length - 1)]!;
    this.#lookAtMs = this.#host.turn.nowMs() + Math.max(pauseMs, this.#pauseMinMs);
    this.#pauseMinMs = 0;
    if (this.#lookAtMs <= this.#host.turn.nowMs()) this.#look();
  }

  onTick(): void {
    const nowMs = this.#host.turn.nowMs();
    if (nowMs >= this.#lookAtMs) this.#look();
    if (nowMs >= this.#deafUntilMs) this.#handOverDeaf();
    const preciseMs = this.#host.ports.clock.monotonicMs();
    if (preciseMs >= this.#port.nextDeadlineMs) this.#port.onTick();
    if (preciseMs >= this.#links.nextDeadlineMs()) this.#links.onTick();
    if (preciseMs >= this.#election.nextDeadlineMs) this.#election.onTick();
    this.#role?.onTick();
  }

  onTurnEnd(): void {
    this.#role?.onTurnEnd();
  }

  nextDeadlineMs(): number {
    const roleMs = this.#role?.nextDeadlineMs() ?? NEVER;
    const linksMs = Math.min(this.#port.nextDeadlineMs, this.#links.nextDeadlineMs());
    return Math.min(this.#lookAtMs, this.#deafUntilMs, linksMs, this.#election.nextDeadlineMs, roleMs);
  }

  /** Takes no role any more. A leader hands over first. */
  stop(): void {
    this.#isStopping = true;
    this.#lookAtMs = NEVER;
    this.#role?.leave('the server is stopping');
    if (this.#role === null) this.#closePorts();
  }

  isReadyToStop(): boolean {
    return this.#role === null;
  }

  /** The server cannot go on: everything is closed, nothing is told. */
  abandon(reason: string): void {
    this.#isStopping = true;
    this.#role?.abandon(reason);
    this.#role = null;
    this.#closePorts();
  }

  #closePorts(): void {
    this.#port.stop();
    this.#links.stop();
  }

  /* ------------------------------------------------------------------------------------------------ election ---- */

  #look(): void {
    const isFirst = this.#election.round === 0;
    this.#lookAtMs = NEVER;
    this.#isAwaitingPort = false;
    this.#isLooking = true;
    this.#isCandidate = this.#maybeStand();
    const { history } = this.#state!;
    const { serverId } = this.#host.options;
    this.#host.trace.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: this.#lookReason });
    this.#links.connectAll();
    this.#election.look({
      lastZxid: history.lastZxid,
      currentEpoch: history.currentEpoch,
      learnerType: this.#members.isParticipant(serverId) ? 'participant' : 'observer',
      isCandidate: this.#isCandidate,
    });
    // Only now: what others say before this server looks for a leader would be lost.
    if (isFirst) this.#links.start();
  }

  /** @returns false when this server cannot lead: whom it could not lead hears of it */
  #maybeStand(): boolean {
    const { acceptedEpoch } = this.#state!.history;
    if (acceptedEpoch >= MAX_EPOCH) this.#unfitness = describeEnd(acceptedEpoch);
    if (this.#unfitness !== null) this.#warn(this.#unfitness);
    return this.#unfitness === null && this.#port.isOpen;
  }

  /** Learners can connect now, or no more. */
  #onPortChanged(): void {
    if (this.#isAwaitingPort) {
      if (this.#port.isSettled) this.#look();
    } else if (this.#isLooking) {
      if (this.#unfitness !== null || this.#port.isOpen === this.#isCandidate) return;
      this.#lookReason = this.#port.isOpen ? 'it can lead now' : 'it cannot lead any more';
      this.#look();
    } else if (!(this.#role instanceof Leading) || this.#port.isOpen) {
      this.#deafUntilMs = NEVER;
    } else if (!this.#role.isEstablished) {
      this.#role.leave(DEAF);
    } else if (this.#deafUntilMs === NEVER) {
      this.#deafUntilMs = this.#host.turn.nowMs() + this.#ensemble.syncLimit * this.#host.options.tickTimeMs;
    }
  }

  /**
   * Learners that are connected stay, but none that breaks or starts could come back. So this leader makes room for one of
   * them that has everything; where there is none, nobody would serve without it, and it stays.
   */
  #handOverDeaf(): void {
    this.#deafUntilMs = NEVER;
    if (!(this.#role instanceof Leading)) return;
    if (this.learners().some(({ isVoter, isSynchronized }) => isVoter && isSynchronized)) this.#role.leave(DEAF);
    else this.#deafUntilMs = this.#host.turn.nowMs() + this.#host.options.tickTimeMs;
  }

  sendNotification(to: number, notification: ElectionNotification): void {
    this.#links.send(to, notification);
  }

  decided(decision: Decision): void {
    if (this.#isStopping) return;
    const { leader, round } = decision;
    this.#isLooking = false;
    const isLeader = leader === this.#host.options.serverId;
    const learnerRole = this.#members.isParticipant(this.#host.options.serverId) ? 'following' : 'observing';
    this.#host.trace.emit({
      kind: 'role-changed',
      role: isLeader ? 'leading' : learnerRole,
      leader,
      reason: `round ${round} of the election has decided`,
    });
    const recovered = this.#state!;
    const isAnew = this.#beginsAnew && !isLeader;
    this.#beginsAnew = false;
    const events: RoleEvents = {
      onEstablished: (epoch, lastApplied) => {
        this.#failures = 0;
        this.#unfitness = null;
        this.#host.trace.emit({ kind: 'epoch-established', epoch, zxid: lastApplied });
        this.#election.onEpochEstablished(epoch);
      },
      onEnded: (reason) => this.#onRoleEnded(role, reason),
    };
    const memory = { heardVotes: this.#election, needSnapshot: this.#needSnapshot };
    const role = isLeader
      ? new Leading(this.#host, this.#ensemble, this.#members, memory, recovered, events)
      : new Learning(this.#host, this.#ensemble, this.#members, decision, recovered, isAnew, events);
    this.#role = role;
    // The election's event is still running: the role begins with one of its own.
    this.#host.turn.defer(() => {
      if (this.#role !== role) return;
      role.start();
      if (this.#role !== role) return;
      if (role instanceof Leading) this.#port.open((stream) => role.accept(stream));
      else this.#port.close();
    });
  }

  decisionLost(): void {
    const role = this.#role;
    if (role === null || role.isEstablished) return;
    this.#host.turn.defer(() => {
      if (this.#role === role && !role.isEstablished) role.leave('too few servers stand by the decision any more');
    });
  }

  outranked(serverId: number, historyEpoch: number): void {
    const role = this.#role;
    if (!(role instanceof Leading)) return;
    this.#host.turn.defer(() => {
      if (this.#role === role) role.onOutranked(serverId, historyEpoch);
    });
  }

  keptOut(leader: number, historyEpoch: number): void {
    const { currentEpoch } = this.#state!.history;
    const reason = findOlderHistory(`server ${leader}, which leads,`, historyEpoch, currentEpoch);
    if (reason !== null) this.#warn(reason);
  }

  /** Another membership can only be taken over once memberships change at run time. */
  configHeard(from: number, configText: string): void {
    const theirs = configText.replaceAll('\n', ', ');
    this.#warn(
      `server ${from} follows a membership that differs from this one's: ${theirs}. Servers of an ensemble need the same list`,
    );
  }

  #warn(message: string): void {
    this.#host.trace.emit({ kind: 'warning', message });
  }

  #onRoleEnded(role: Role, reason: string): void {
    if (this.#role !== role) return;
    this.#role = null;
    this.#deafUntilMs = NEVER;
    this.#port.hold();
    this.#lookReason = reason;
    if (!role.isEstablished) this.#failures++;
    if (role instanceof Learning && role.mustBeginAnew) this.#beginsAnew = true;
    if (role instanceof Learning && role.exclusion !== null) {
      this.#warn(role.exclusion);
      this.#pauseMinMs = this.#ensemble.syncLimit * this.#host.options.tickTimeMs;
    }
    if (role instanceof Leading) this.#unfitness = role.unfitness;
    if (this.#isStopping) this.#closePorts();
    this.#host.beginAnew(reason);
  }

  /* -------------------------------------------------------------------------------------- for administrators ---- */

  get membership(): Membership {
    return this.#members.membership;
  }

  get role(): EnsembleView['role'] {
    if (this.#role === null) return 'looking';
    if (this.#role instanceof Leading) return 'leading';
    return this.#members.isParticipant(this.#host.options.serverId) ? 'following' : 'observing';
  }

  get leader(): number | null {
    return this.#role?.leader ?? null;
  }

  get connectedServers(): readonly number[] {
    return this.#links.connectedServers;
  }

  learners(): readonly LearnerView[] {
    return this.#role instanceof Leading ? this.#role.learners() : [];
  }

  get pendingSyncs(): number {
    return this.#role instanceof Leading ? this.#role.pendingSyncs : 0;
  }

  get proposalSizes(): ProposalSizesView | null {
    return this.#role instanceof Leading ? this.#role.proposalSizes : null;
  }
}
