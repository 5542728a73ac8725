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
import type { ElectionNotification, Membership, Zxid } from '@meerkat/protocol';
import { Election } from '../election/election.ts';
import { DEFAULT_ELECTION_OPTIONS, type Decision, type ElectionEffects } from '../election/election-host.ts';
import { ElectionLinks } from '../links/election-links.ts';
import type { EnsembleOptions } from '../options.ts';
import type { EnsembleView, LearnerView, ProposalSizesView } from '../server-view.ts';
import type { Durable } from '../storage/durable.ts';
import type { EpochFileName } from '../storage/epoch-files.ts';
import { Leading } from './leading.ts';
import { Learning } from './learning.ts';
import type { Member, RecoveredState } from './member.ts';
import { Members } from './members.ts';
import type { Role } from './role.ts';
import type { RoleEvents, RoleHost } from './role-host.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Pauses before looking again, in milliseconds, after roles that came to nothing one after the other: a decision that
 * cannot be carried out would otherwise be made again at once, for ever.
 */
const PAUSES_MS: readonly number[] = [0, 20, 50, 100, 200, 400, 800];

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
  #role: Role | null = null;
  #state: RecoveredState | null = null;
  /** When to look, after a pause. */
  #lookAtMs = NEVER;
  #failures = 0;
  /** Why it looks for a leader, for people. */
  #lookReason = 'it has just started';
  /** The next role begins with nothing, as the last one found its history to be of no use. */
  #beginsAnew = false;
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
      { serverId, membership: ensemble.membership, connectTimeoutMs: ensemble.electionConnectTimeoutMs },
      {
        onPeerConnected: (id) => this.#election.onPeerConnected(id),
        onPeerUnreachable: (id) => this.#election.onPeerUnreachable(id),
        onNotification: (from, notification) => this.#election.onNotification(from, notification),
      },
    );
  }

  get isLeaving(): boolean {
    return this.#role?.isLeaving ?? false;
  }

  /* --------------------------------------------------------------------------------------- events of the core ---- */

  /** The storage has recovered: at the start, after a role, or in the middle of one that had the log truncated. */
  onRecovered(state: RecoveredState): void {
    if (this.#role !== null) {
      this.#role.onRecovered(state);
      return;
    }
    const isStart = this.#state === null;
    this.#state = state;
    this.#lookAtMs = this.#host.nowMs() + PAUSES_MS[Math.min(this.#failures, PAUSES_MS.length - 1)]!;
    if (this.#lookAtMs <= this.#host.nowMs()) this.#look();
    // Only now: what others say before this server looks for a leader would be lost.
    if (isStart) this.#links.start();
  }

  onLogSynced(durable: Durable<Zxid>): void {
    this.#role?.onLogSynced(durable);
  }

  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void {
    this.#role?.onEpochDurable(name, epoch);
  }

  onTruncateRefused(reason: string): void {
    this.#role?.onTruncateRefused(reason);
  }

  onSnapshotInstalled(): void {
    this.#role?.onSnapshotInstalled();
  }

  onTick(): void {
    const nowMs = this.#host.nowMs();
    if (nowMs >= this.#lookAtMs) this.#look();
    const preciseMs = this.#host.ports.clock.monotonicMs();
    if (preciseMs >= this.#links.nextDeadlineMs()) this.#links.onTick();
    if (preciseMs >= this.#election.nextDeadlineMs) this.#election.onTick();
    this.#role?.onTick();
  }

  onTurnEnd(): void {
    this.#role?.onTurnEnd();
  }

  nextDeadlineMs(): number {
    const roleMs = this.#role?.nextDeadlineMs() ?? NEVER;
    return Math.min(this.#lookAtMs, this.#links.nextDeadlineMs(), this.#election.nextDeadlineMs, roleMs);
  }

  /** Takes no role any more. A leader hands over first. */
  stop(): void {
    this.#isStopping = true;
    this.#lookAtMs = NEVER;
    this.#role?.leave('the server is stopping');
    if (this.#role === null) this.#links.stop();
  }

  isReadyToStop(): boolean {
    return this.#role === null;
  }

  /** The server cannot go on: everything is closed, nothing is told. */
  abandon(reason: string): void {
    this.#isStopping = true;
    this.#role?.abandon(reason);
    this.#role = null;
    this.#links.stop();
  }

  /* ------------------------------------------------------------------------------------------------ election ---- */

  #look(): void {
    this.#lookAtMs = NEVER;
    const { history } = this.#state!;
    const { serverId } = this.#host.options;
    this.#host.trace.emit({ kind: 'role-changed', role: 'looking', leader: null, reason: this.#lookReason });
    this.#links.connectAll();
    this.#election.look({
      lastZxid: history.lastZxid,
      currentEpoch: history.currentEpoch,
      learnerType: this.#members.isParticipant(serverId) ? 'participant' : 'observer',
    });
  }

  sendNotification(to: number, notification: ElectionNotification): void {
    this.#links.send(to, notification);
  }

  decided({ leader, round }: Decision): void {
    if (this.#isStopping) return;
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
        this.#host.trace.emit({ kind: 'epoch-established', epoch, zxid: lastApplied });
        this.#election.onEpochEstablished(epoch);
      },
      onEnded: (reason) => this.#onRoleEnded(role, reason),
    };
    const role: Role = isLeader
      ? new Leading(this.#host, this.#ensemble, this.#members, recovered, events)
      : new Learning(this.#host, this.#ensemble, this.#members, leader, recovered, isAnew, events);
    this.#role = role;
    // The election's event is still running: the role begins with one of its own.
    this.#host.defer(() => {
      if (this.#role === role) role.start();
    });
  }

  decisionLost(): void {
    const role = this.#role;
    if (role === null || role.isEstablished) return;
    this.#host.defer(() => {
      if (this.#role === role && !role.isEstablished) role.leave('too few servers stand by the decision any more');
    });
  }

  /** Another membership can only be taken over once memberships change at run time. */
  configHeard(from: number, configText: string): void {
    this.#host.trace.emit({
      kind: 'warning',
      message: `server ${from} follows a membership that differs from this one's: ${configText.replaceAll('\n', ', ')}. Servers of an ensemble need the same list`,
    });
  }

  #onRoleEnded(role: Role, reason: string): void {
    if (this.#role !== role) return;
    this.#role = null;
    this.#lookReason = reason;
    if (!role.isEstablished) this.#failures++;
    if (role instanceof Learning && role.mustBeginAnew) this.#beginsAnew = true;
    if (this.#isStopping) this.#links.stop();
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

  get proposalSizes(): ProposalSizesView | null {
    return this.#role instanceof Leading ? this.#role.proposalSizes : null;
  }
}
