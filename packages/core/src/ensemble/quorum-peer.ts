/**
 * The life of a server in an ensemble (QuorumPeer): it looks for a leader, leads or follows, and looks again.
 *
 *     recovered ─► LOOKING ──decided──► LEADING │ FOLLOWING │ OBSERVING ──ended──► the storage stops and recovers ─┐
 *                     ▲                                                                                            │
 *                     └────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Each role is a separate incarnation: it starts from what is on disk and leaves nothing behind in memory. Events of
 * the disk, the network and the clients that belong to an earlier role are dropped.
 */
import { type ElectionNotification, MAX_EPOCH, ZXID_NONE } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { EnsembleOptions } from '../base/options.ts';
import type { EnsembleView } from '../base/server-view.ts';
import { Election } from '../election/election.ts';
import {
  DEFAULT_ELECTION_OPTIONS,
  type Decision,
  type ElectionEffects,
  type Standing,
} from '../election/election-host.ts';
import { ElectionLinks } from '../links/election-links.ts';
import { authenticated } from '../links/peer-authentication.ts';
import type { Database } from '../tree/database.ts';
import { findOlderHistory } from '../zab/exclusion.ts';
import { describeEnd } from '../zab/promises.ts';
import { Leading } from './leading.ts';
import { Learning } from './learning.ts';
import { PAUSE_MAX_MS } from './look-pauses.ts';
import type { Member, RecoveredState } from './member.ts';
import type { Members } from './members.ts';
import { assessMembership } from './membership-gossip.ts';
import { MembershipKeeper } from './membership-keeper.ts';
import { PeerView } from './peer-view.ts';
import { QuorumPort } from './quorum-port.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';
import { Search } from './search.ts';
import { zabOptionsOf } from './zab-options-of.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Milliseconds that the first search waits for the quorum port: listening on a host name takes as long as resolving it.
 */
const PORT_WAIT_MS = 1000;

/** Minimum milliseconds of looking before reads are answered; at least one tick (QuorumPeer.run). */
const READ_ONLY_WAIT_MIN_MS = 2000;

const PORT_CLOSED = 'its followers cannot connect';

export interface PeerHost extends RoleHost {
  /** A role has ended: disconnects clients, stops and recovers the storage; `onRecovered` follows. */
  restartRole(reason: string): void;
  /** No leader has been found: starts answering reads from what is on disk. */
  beginReadOnly(database: Database): void;
  /** Does nothing unless in read-only mode. */
  endReadOnly(reason: string): void;
}

export class QuorumPeer implements Member, ElectionEffects {
  readonly view: EnsembleView;
  readonly #host: PeerHost;
  readonly #ensemble: EnsembleOptions;
  readonly #memberships: MembershipKeeper;
  readonly #election: Election;
  readonly #links: ElectionLinks;
  readonly #port: QuorumPort;
  #role: Role | null = null;
  #state: RecoveredState | null = null;
  readonly #search = new Search();
  /** When this leader hands over because its quorum port is closed, unless learners can connect again by then. */
  #portClosedUntilMs = NEVER;
  /** The first search waits until it is known whether this server can lead. */
  #isAwaitingPort = false;
  /** For the current or last search. */
  #isCandidate = false;
  /** Why this server does not stand for election although learners could connect, as a message; null when it does. */
  #unfitness: string | null = null;
  /** The next role starts empty, because the last one found the history on disk unusable. */
  #startsEmpty = false;
  /** Learners that this server must send a snapshot when it leads again, because syncing them txn by txn failed. */
  readonly #needSnapshot = new Set<number>();
  #isStopping = false;

  constructor(host: PeerHost, ensemble: EnsembleOptions) {
    this.#host = host;
    this.#ensemble = ensemble;
    const { serverId } = host.options;
    this.#memberships = new MembershipKeeper({
      serverId,
      membership: ensemble.membership,
      isReconfigEnabled: host.options.reconfigEnabled,
      store: host.ports.membershipStore ?? null,
      trace: host.trace,
      wallMs: () => host.turn.wallMs(),
    });
    this.#memberships.onChanged = () => this.#onMembershipChanged();
    this.#election = new Election(
      { serverId, ...DEFAULT_ELECTION_OPTIONS, leaseMs: this.#leaseMs },
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
        refusalOfClaim: (id, hosts) => this.#members.refusalOfClaim(id, hosts),
      },
      {
        onPeerConnected: (id) => this.#election.onPeerConnected(id),
        onPeerUnreachable: (id) => {
          this.#election.onPeerUnreachable(id);
          this.#onPeerLost(id);
        },
        onNotification: (from, notification) => this.#election.onNotification(from, notification),
      },
    );
    this.view = new PeerView(serverId, this.#memberships, this.#links, () => this.#role);
    const listeners = this.#members.quorumListenersOf(serverId, ensemble.listensOnAllIps);
    const { network, peerAuthentication = null } = host.ports;
    const portNetwork = authenticated(network, peerAuthentication, 'quorum', host.trace);
    this.#port = new QuorumPort({ ...host.ports, network: portNetwork, trace: host.trace }, listeners, () =>
      this.#onPortChanged(),
    );
  }

  get #members(): Members {
    return this.#memberships.members;
  }

  get #leaseMs(): number {
    return zabOptionsOf(this.#host.options, this.#ensemble).leaseMs;
  }

  /**
   * The lease that all voters have announced, if it is the same: any of them may lead one day, and then waits for it.
   */
  get sharedLeaseMs(): number | null {
    const leaseMs = this.#leaseMs;
    if (leaseMs === 0 || (this.#role instanceof Learning && !this.#role.isLeased)) return null;
    const { serverId } = this.#host.options;
    for (const id of this.#members.electorate.voters) {
      if (id !== serverId && this.#election.leaseMsOf(id) !== leaseMs) return null;
    }
    return leaseMs;
  }

  get isLeaving(): boolean {
    return this.#role?.isLeaving ?? false;
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  /** The storage has recovered, at startup or after a role. */
  onRecovered(state: RecoveredState): void {
    assert(this.#role === null, 'a role ends before the next storage recovers');
    const isStart = this.#state === null;
    this.#state = state;
    this.#memberships.onRecovered(state.database);
    if (isStart) {
      this.#isAwaitingPort = true;
      this.#search.schedule(this.#host.turn.nowMs() + PORT_WAIT_MS);
      this.#port.start();
      this.#onPortChanged();
      return;
    }
    const nowMs = this.#host.turn.nowMs();
    this.#search.schedule(nowMs + this.#search.pauses.take());
    if (this.#search.isDue(nowMs)) this.#look();
  }

  onTick(): void {
    const nowMs = this.#host.turn.nowMs();
    if (this.#search.takeReadOnly(nowMs)) this.#host.beginReadOnly(this.#state!.database);
    if (this.#search.isDue(nowMs)) this.#look();
    if (nowMs >= this.#portClosedUntilMs) this.#handOverPortClosed();
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
    return Math.min(
      this.#search.nextDeadlineMs,
      this.#portClosedUntilMs,
      linksMs,
      this.#election.nextDeadlineMs,
      roleMs,
    );
  }

  /** Takes no further role. A leader hands over first. */
  stop(): void {
    this.#isStopping = true;
    this.#search.cancel();
    this.#role?.leave('the server is stopping');
    if (this.#role === null) this.#closePorts();
  }

  isReadyToStop(): boolean {
    return this.#role === null;
  }

  abandon(): void {
    this.#isStopping = true;
    this.#role?.abandon();
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
    this.#isAwaitingPort = false;
    // Untrusted data is not an older state that clients may read.
    const isReadable = this.#ensemble.readOnlyEnabled && this.#state!.history.lastZxid !== ZXID_NONE;
    const waitMs = isReadable ? Math.max(READ_ONLY_WAIT_MIN_MS, this.#host.options.tickTimeMs) : NEVER;
    this.#search.begin(this.#host.turn.nowMs() + waitMs);
    this.#isCandidate = this.#maybeStand();
    this.#host.trace.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: this.#search.reason });
    this.#host.trace.emit({ kind: 'election-started', zxid: Math.max(this.#state!.history.lastZxid, 0) });
    this.#links.connectAll();
    this.#election.look(this.#standing);
    // Only now: notifications received before this server is looking would be lost.
    if (isFirst) this.#links.start();
  }

  get #standing(): Standing {
    const { lastZxid, currentEpoch } = this.#state!.history;
    const learnerType = this.#members.isObserver(this.#host.options.serverId) ? 'observer' : 'participant';
    return { lastZxid, currentEpoch, learnerType, isCandidate: this.#isCandidate };
  }

  /** Checks whether this server can lead; warns when it is unfit. */
  #maybeStand(): boolean {
    const { acceptedEpoch } = this.#state!.history;
    if (acceptedEpoch >= MAX_EPOCH) this.#unfitness = describeEnd(acceptedEpoch);
    if (this.#unfitness !== null) this.#warn(this.#unfitness);
    return this.#unfitness === null && this.#port.isOpen;
  }

  /** Learners can connect now, or no longer can. */
  #onPortChanged(): void {
    if (this.#isAwaitingPort) {
      if (this.#port.isSettled) this.#look();
    } else if (this.#search.isUnderWay) {
      if (this.#unfitness !== null || this.#port.isOpen === this.#isCandidate) return;
      this.#search.reason = this.#port.isOpen ? 'it can lead now' : 'it can no longer lead';
      this.#look();
    } else if (!(this.#role instanceof Leading) || this.#port.isOpen) {
      this.#portClosedUntilMs = NEVER;
    } else if (!this.#role.isEstablished) {
      this.#role.leave(PORT_CLOSED);
    } else if (this.#portClosedUntilMs === NEVER) {
      this.#portClosedUntilMs = this.#host.turn.nowMs() + this.#ensemble.syncLimit * this.#host.options.tickTimeMs;
    }
  }

  /**
   * Connected learners stay, but one that reconnects or restarts could not come back. So this leader hands over once a
   * voter is synchronized; while there is none, no server could serve without this one, and it stays.
   */
  #handOverPortClosed(): void {
    this.#portClosedUntilMs = NEVER;
    if (!(this.#role instanceof Leading)) return;
    if (this.#role.learners().some(({ isVoter, isSynchronized }) => isVoter && isSynchronized))
      this.#role.leave(PORT_CLOSED);
    else this.#portClosedUntilMs = this.#host.turn.nowMs() + this.#host.options.tickTimeMs;
  }

  sendNotification(to: number, notification: ElectionNotification): void {
    this.#links.send(to, notification);
  }

  decided(decision: Decision): void {
    if (this.#isStopping) return;
    const { leader, round } = decision;
    this.#search.end();
    this.#host.endReadOnly('this server has found a leader');
    const isLeader = leader === this.#host.options.serverId;
    if (!isLeader && this.#members.quorumEndpointsOf(leader).length === 0) {
      this.#warn(`server ${leader} leads, but this server does not know its address: it looks for a leader again`);
      this.#search.schedule(this.#host.turn.nowMs() + PAUSE_MAX_MS);
      return;
    }
    const learnerRole = this.#members.isObserver(this.#host.options.serverId) ? 'observing' : 'following';
    this.#host.trace.emit({
      kind: 'role-changed',
      role: isLeader ? 'leading' : learnerRole,
      leader,
      reason: `round ${round} of the election has decided`,
    });
    const recovered = this.#state!;
    const startsEmpty = this.#startsEmpty && !isLeader;
    this.#startsEmpty = false;
    const events: RoleEvents = {
      onEstablished: (epoch, lastApplied) => {
        this.#search.pauses.onEstablished();
        this.#unfitness = null;
        this.#host.trace.emit({ kind: 'epoch-established', epoch, zxid: lastApplied });
        this.#election.onEpochEstablished(epoch);
      },
      onEnded: (reason) => this.#onRoleEnded(role, reason),
    };
    const memory = { peerVotes: this.#election, needSnapshot: this.#needSnapshot };
    const role = isLeader
      ? new Leading(this.#host, this.#ensemble, this.#memberships, memory, recovered, events)
      : new Learning(this.#host, this.#ensemble, this.#memberships, decision, recovered, startsEmpty, events);
    this.#role = role;
    // The election is still inside its event: the role begins in a separate one.
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
      if (this.#role === role && !role.isEstablished) role.leave('too few servers still support the decision');
    });
  }

  outranked(serverId: number, historyEpoch: number): void {
    const role = this.#role;
    if (!(role instanceof Leading)) return;
    this.#host.turn.defer(() => {
      if (this.#role === role) role.onOutranked(serverId, historyEpoch);
    });
  }

  olderEpochLeads(leader: number, historyEpoch: number): void {
    const { currentEpoch } = this.#state!.history;
    const reason = findOlderHistory(`server ${leader}, which leads,`, historyEpoch, currentEpoch);
    if (reason !== null) this.#warn(reason);
  }

  /** Another server follows a different membership. */
  configReceived(from: number, configText: string): void {
    const assessed = assessMembership(from, configText, {
      members: this.#members,
      isReconfigEnabled: this.#host.options.reconfigEnabled,
      rules: this.#ensemble.membershipRules,
      acceptedEpoch: this.#state!.history.acceptedEpoch,
    });
    if (assessed === null) return;
    if ('warning' in assessed) {
      this.#warn(assessed.warning);
      return;
    }
    // The election is still inside its event.
    this.#host.turn.defer(() => {
      if (this.#search.isUnderWay && !this.#isStopping) this.#memberships.commit(assessed.newer);
    });
  }

  /** A new membership is proposed or in force. A role checks for itself whether it can continue. */
  #onMembershipChanged(): void {
    const { serverId } = this.#host.options;
    this.#links.onMembershipChanged(this.#members.all);
    // Closing a port notifies its owner, which may end the role that is still inside its event.
    this.#host.turn.defer(() =>
      this.#port.moveTo(this.#members.quorumListenersOf(serverId, this.#ensemble.listensOnAllIps)),
    );
    const isSearching = this.#search.isUnderWay && this.#state !== null && !this.#isStopping;
    if (isSearching) this.#links.connectAll();
    this.#election.onElectorateChanged(this.#members.configText, isSearching ? this.#standing : null);
  }

  #warn(message: string): void {
    this.#host.trace.emit({ kind: 'warning', message });
  }

  #onPeerLost(serverId: number): void {
    const role = this.#role;
    if (!(role instanceof Learning) || role.leader !== serverId || role.isEstablished) return;
    this.#host.turn.defer(() => {
      if (this.#role === role) role.onLeaderLost();
    });
  }

  #onRoleEnded(role: Role, reason: string): void {
    if (this.#role !== role) return;
    this.#role = null;
    this.#portClosedUntilMs = NEVER;
    this.#port.hold();
    this.#search.reason = reason;
    if (!role.isEstablished) this.#search.pauses.onFailed();
    if (role instanceof Learning && role.mustStartEmpty) this.#startsEmpty = true;
    if (role instanceof Learning && role.exclusion !== null) {
      this.#warn(role.exclusion);
      this.#search.pauses.extend(this.#ensemble.syncLimit * this.#host.options.tickTimeMs);
    }
    if (role instanceof Leading) this.#unfitness = role.unfitness;
    if (this.#isStopping) this.#closePorts();
    this.#host.restartRole(reason);
  }
}
