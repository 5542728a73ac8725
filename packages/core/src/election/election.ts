/**
 * Fast leader election (FastLeaderElection): how servers that have no leader agree on one. See docs/zab.md, "Election".
 *
 * Every server without a leader votes, at first for itself, and sends its vote to all voters. On receiving a better
 * vote it adopts that vote and sends it to all voters. When a quorum holds the same vote, that vote has won:
 *
 *     look ──► LOOKING ──┬─ a quorum votes as I do ──► settle ──┬──► decided: LEADING, FOLLOWING or OBSERVING
 *                ▲       └─ a quorum has a leader, and it says so ┘                │
 *                └──────────────── look: the role has ended ◄──────────────────────┘
 *
 * A round is one such attempt. A server that learns of a later round joins it and starts with its own vote; a server in
 * an earlier round is sent this server's vote. A server that is not looking replies to those that are, so latecomers
 * find the leader.
 *
 * What a decision guarantees, asserted by `#decide`:
 *
 * 1. The leader is a voter with non-zero weight, and its data may be trusted.
 * 2. Only voters are counted, and they form a quorum of every active configuration; when another server claims to lead,
 *    of the committed configuration only.
 * 3. Either all of them voted for this vote in this round, or the leader itself claims to lead.
 * 4. In the first case the leader's history is at least as recent as that of each of them when the round began, except
 *    for servers without weight and newcomers (`Turns`). A server leads only by a vote that it cast for itself, as a
 *    candidate.
 *
 * There may be more than one leader: a server may receive a better vote after another has decided on the old one.
 * Discovery ensures that two servers never lead in the same epoch.
 *
 * The host
 *
 * - calls `look` before anything else, and again whenever a role has ended; `decided` ends the search;
 * - keeps a connection to every voter and calls `onPeerConnected` and `onPeerUnreachable`. Notifications on one
 *   connection arrive in order. Those in flight when it breaks may be lost; this class resends them when the peer
 *   reconnects;
 * - calls `onTick` when `nextDeadlineMs` is reached.
 */
import { Announcement, type ElectionNotification, leaseMsOf, ServerState, VOTE_NONE } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/ports.ts';
import { Candidacy } from './candidacy.ts';
import type { ElectionEffects, ElectionOptions, Standing } from './election-host.ts';
import type { Electorate } from './electorate.ts';
import { Notifications, type Word } from './notifications.ts';
import { Peers } from './peers.ts';
import { isPossible, ROUNDS_FAR } from './plausible.ts';
import { type Claim, Tally } from './tally.ts';
import { isSameVote, isUntrusted, NO_VOTE, type Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** Length of a turn in units of `settleMs`: enough to receive all votes and settle, even with Apache servers. */
const TURN_SETTLES = 10;

export class Election {
  readonly #options: ElectionOptions;
  readonly #clock: Clock;
  readonly #effects: ElectionEffects;
  readonly #electorate: Electorate;
  #configText: string;

  #state: ServerState = ServerState.looking;
  /** `logicalclock`: in memory only; the first round is 1. */
  #round = 0;
  /**
   * Latest round in which this server has voted. `#round` may be earlier: a decision based on claims takes over their
   * round.
   */
  #roundMax = 0;
  /** While looking, the current proposal, which only improves within a round. Afterwards, the vote that won. */
  #vote: Vote = NO_VOTE;
  readonly #tally = new Tally();
  readonly #peers = new Peers();
  /** Lease announced by each server; kept for voters that have disconnected. */
  readonly #leases: Map<number, number> = new Map();
  /** After a decision: the voters behind it that have not withdrawn. */
  #supporters = new Set<number>();
  #isDecisionLost = false;
  /**
   * True until a decision fails, and again once one has led to an epoch. With a server that only some peers can reach,
   * early decisions could undo each other forever; servers that wait learn of it from the others in time.
   */
  #maySettleEarly = true;
  #isEpochEstablished = false;
  #settleAtMs = NEVER;
  readonly #candidacy: Candidacy;
  readonly #notifications: Notifications;

  constructor(
    options: ElectionOptions,
    clock: Clock,
    electorate: Electorate,
    configText: string,
    effects: ElectionEffects,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#electorate = electorate;
    this.#configText = configText;
    this.#effects = effects;
    this.#candidacy = new Candidacy(options.serverId, electorate, TURN_SETTLES * options.settleMs);
    this.#notifications = new Notifications(options, clock, this.#peers, effects);
  }

  get state(): ServerState {
    return this.#state;
  }

  get round(): number {
    return this.#round;
  }

  /** The current proposal while looking; afterwards the vote that won. */
  get vote(): Vote {
    return this.#vote;
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#settleAtMs, this.#notifications.dueMs, this.#candidacy.turnEndsAtMs);
  }

  /** Epoch of the history with which a server last stood for election; null if unknown. */
  historyEpochOf(id: number): number | null {
    return this.#peers.get(id).historyEpoch;
  }

  /** The lease, in milliseconds, that a server last announced; 0 if none or unknown. */
  leaseMsOf(id: number): number {
    return this.#leases.get(id) ?? 0;
  }

  /* --------------------------------------------------------------------------------------------- events ---- */

  /** Starts a new round: at startup, and whenever a role has ended. */
  look(standing: Standing): void {
    const hasFailed = this.#state !== ServerState.looking && !this.#isEpochEstablished;
    if (hasFailed) this.#maySettleEarly = false;
    this.#candidacy.onSearch(standing, hasFailed ? this.#vote : null, this.#clock.monotonicMs());
    this.#state = ServerState.looking;
    this.#tally.clear();
    this.#supporters.clear();
    this.#beginRound(Math.max(this.#round, this.#roundMax) + 1);
    this.#broadcast();
    this.#count();
  }

  /** A peer has connected, perhaps replacing an earlier connection. Both ends resend what may have been missed. */
  onPeerConnected(id: number): void {
    this.#peers.connect(id);
    if (!this.#candidacy.hasStanding) return;
    if (this.#state !== ServerState.looking) {
      // It may have decided as well, and then would never learn of this server's lease.
      if (this.#givesLeases) this.#send(id);
      return;
    }
    this.#tally.forget(id);
    if (this.#electorate.voters.has(id)) this.#send(id);
    this.#notifications.schedule();
    this.#count();
  }

  /** The connection to a peer broke, or a dial failed. Its last notification no longer counts. */
  onPeerUnreachable(id: number): void {
    this.#peers.disconnect(id);
    // Strangers may use any id: keep no lease for them.
    if (!this.#electorate.voters.has(id)) this.#leases.delete(id);
    if (!this.#candidacy.hasStanding || this.#state !== ServerState.looking) return;
    this.#tally.forget(id);
    this.#count();
  }

  onNotification(from: number, notification: ElectionNotification): void {
    if (!this.#candidacy.hasStanding || from === this.#options.serverId) return;
    const { state, configText } = notification;
    const isLooking = this.#state === ServerState.looking;
    const isSenderLooking = state === ServerState.looking;
    if (isLooking && configText !== null && configText !== this.#configText)
      this.#effects.configReceived(from, configText);

    this.#peers.onNotification(from, notification);
    this.#leases.set(from, leaseMsOf(notification.announces));
    if (!this.#electorate.voters.has(from)) {
      if (isSenderLooking && this.#candidacy.isVoter) this.#notifications.replyToOutsider(from, this.#word);
    } else if (!isLooking) {
      if (isSenderLooking) this.#onDoubt(from, notification);
    } else if (isSenderLooking) {
      this.#onBallot(from, notification);
    } else {
      this.#onClaim(from, notification);
    }
  }

  onTick(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#settleAtMs) {
      this.#decide(this.#vote, this.#tally.votersFor(this.#vote));
    } else if (nowMs >= this.#candidacy.turnEndsAtMs) {
      this.#candidacy.endTurn();
      this.#beginRound(this.#roundMax + 1);
      this.#broadcast();
      this.#count();
    } else if (nowMs >= this.#notifications.dueMs) {
      this.#broadcast();
      this.#notifications.scheduleNext(nowMs);
    }
  }

  /**
   * The leader has a quorum in a new epoch, or this learner has synchronized with the leader. From now on all members
   * of the ensemble announce this epoch, regardless of the vote they decided with (ZOOKEEPER-1732).
   */
  onEpochEstablished(epoch: number): void {
    assert(this.#state !== ServerState.looking, 'an epoch is established after the election');
    this.#isEpochEstablished = true;
    this.#maySettleEarly = true;
    this.#vote = { ...this.#vote, peerEpoch: epoch };
    for (const id of this.#peers.takeAskers()) this.#send(id);
  }

  /**
   * The electorate has changed: another configuration has been proposed, committed or adopted.
   *
   * @param configText text of the committed configuration, as sent to others
   * @param standing this server's current standing, which restarts a search in progress; null when not looking
   */
  onElectorateChanged(configText: string, standing: Standing | null): void {
    this.#configText = configText;
    if (standing !== null && this.#candidacy.hasStanding && this.#state === ServerState.looking) this.look(standing);
  }

  /* -------------------------------------------------------------------------------------------- looking ---- */

  /** A looking voter has sent its vote. */
  #onBallot(from: number, notification: ElectionNotification): void {
    // An observer waits until there is a leader. Apache voters send it their previous leader as if it were a vote of
    // this round.
    if (!this.#candidacy.isVoter) return;
    const missedMyVote = this.#peers.get(from).missedMyVote;
    this.#peers.get(from).missedMyVote = false;
    if (notification.electionEpoch < this.#round) {
      this.#tally.forget(from);
      this.#send(from);
      this.#count();
      return;
    }
    const isHonest = isPossible(notification, this.#candidacy.standing.currentEpoch);
    const isAbsurd = this.#electorate.voters.has(notification.leader) && !isHonest;
    if (isAbsurd || isUntrusted(notification) || isUntrusted(this.#candidacy.ownVote)) {
      this.#tally.forget(from);
      this.#count();
      return;
    }
    const roundBefore = this.#round;
    const voteBefore = this.#vote;
    const isNews = this.#takeBallot(from, notification);
    if (this.#round !== roundBefore || this.#vote !== voteBefore) this.#broadcast();
    else if (missedMyVote) this.#send(from);
    this.#count(isNews);
  }

  /** @returns true when the ballot changes the tally */
  #takeBallot(from: number, { leader, zxid, peerEpoch, electionEpoch }: ElectionNotification): boolean {
    const ballot: Vote = { leader, zxid, peerEpoch };
    const isForVoter = this.#electorate.voters.has(leader);
    // A server with no candidate may still be in a later round, and its vote may be needed; a vote for a non-voter is
    // useless.
    if (electionEpoch > this.#round && (isForVoter || leader === VOTE_NONE)) this.#joinRound(electionEpoch);
    if (!isForVoter || electionEpoch > this.#round) return this.#tally.forget(from);
    if (this.#electorate.isBetter(ballot, this.#vote)) {
      if (leader === this.#options.serverId && !isSameVote(ballot, this.#candidacy.ownVote)) {
        // Others still vote for this server as it was before it lost its data directory, or when it was a candidate.
        // Only a later round ends that.
        this.#beginRound(this.#round + 1);
        return true;
      }
      if (this.#candidacy.mayBack(ballot)) this.#propose(ballot);
    }
    return this.#tally.recordBallot(from, ballot);
  }

  /** A voter that has found a leader has named it. */
  #onClaim(from: number, claim: Claim): void {
    this.#peers.get(from).missedMyVote = true;
    if (claim.state === ServerState.observing || !this.#electorate.voters.has(claim.leader)) {
      this.#tally.forget(from);
    } else {
      this.#tally.recordClaim(from, claim, this.#round);
      const backers = this.#findBackers(claim);
      const isOutranked =
        claim.leader !== this.#options.serverId && claim.peerEpoch < this.#candidacy.standing.currentEpoch;
      if (backers !== null && isOutranked) {
        this.#effects.olderEpochLeads(claim.leader, claim.peerEpoch);
      } else if (backers !== null) {
        this.#round = Math.min(claim.electionEpoch, this.#round + ROUNDS_FAR);
        this.#decide({ leader: claim.leader, zxid: claim.zxid, peerEpoch: claim.peerEpoch }, backers);
        return;
      }
    }
    this.#count();
  }

  /** The quorum behind the leader named by a claim, if that server leads; otherwise null. */
  #findBackers(claim: Claim): readonly number[] | null {
    if (!this.#electorate.canLead(claim.leader)) return null;
    const isOfThisRound = claim.electionEpoch === this.#round;
    if (claim.leader === this.#options.serverId) {
      // Claims of an earlier round, or about data that this server no longer has, refer to its former self
      // (ZOOKEEPER-1514).
      if (!isOfThisRound || !this.#candidacy.canLeadAs(claim)) return null;
    } else if (!this.#tally.isLeading(claim.leader)) {
      return null;
    }
    const backers = [this.#tally.backersInAnyRound(claim), isOfThisRound ? this.#tally.backersInRound(claim) : []];
    return backers.find((ids) => this.#isEnoughFor(claim.leader, ids)) ?? null;
  }

  /**
   * A leader that already leads has asked quorums of every membership it knows of, so the committed one is enough here.
   */
  #isEnoughFor(leader: number, backers: readonly number[]): boolean {
    const isFound = leader !== this.#options.serverId && this.#tally.isLeading(leader);
    return isFound ? this.#electorate.current.isReachedBy(backers) : this.#electorate.isQuorum(backers);
  }

  /**
   * Checks whether this server's vote has won.
   *
   * @param isNews true when the tally has changed, which restarts the settle time
   */
  #count(isNews = false): void {
    const backers = this.#tally.votersFor(this.#vote);
    const hasWon = this.#electorate.canLead(this.#vote.leader) && this.#electorate.isQuorum(backers);
    if (!hasWon) this.#settleAtMs = NEVER;
    else if (this.#maySettleEarly && this.#isUnanimous()) this.#decide(this.#vote, backers);
    else if (isNews || this.#settleAtMs === NEVER) {
      this.#settleAtMs = this.#clock.monotonicMs() + this.#options.settleMs;
    }
  }

  /** True when no better vote is expected: every voter holds the same vote and settles early, or cannot be reached. */
  #isUnanimous(): boolean {
    for (const id of this.#electorate.voters) {
      if (id === this.#options.serverId || this.#peers.isUnreachable(id)) continue;
      const ballot = this.#tally.ballotOf(id);
      if (ballot === undefined || !isSameVote(ballot, this.#vote) || !this.#peers.get(id).settlesEarly) return false;
    }
    return true;
  }

  /**
   * The round comes from another server. When it is far ahead, later notifications advance this server step by step.
   */
  #joinRound(round: number): void {
    this.#beginRound(Math.min(round, this.#round + ROUNDS_FAR));
  }

  #beginRound(round: number): void {
    this.#round = round;
    this.#roundMax = Math.max(this.#roundMax, round);
    const ownVote = this.#candidacy.onRound();
    this.#tally.startRound();
    this.#adopt(ownVote);
  }

  #propose(vote: Vote): void {
    assert(this.#electorate.isBetter(vote, this.#vote), 'within a round a proposal only gets better');
    this.#adopt(vote);
  }

  #adopt(vote: Vote): void {
    this.#vote = vote;
    this.#settleAtMs = NEVER;
    if (this.#candidacy.isVoter && !isUntrusted(vote)) this.#tally.recordBallot(this.#options.serverId, vote);
    this.#notifications.schedule();
  }

  /* ------------------------------------------------------------------------------------------- decision ---- */

  #decide(vote: Vote, backers: readonly number[]): void {
    const isOwn = vote.leader === this.#options.serverId;
    assert(this.#isEnoughFor(vote.leader, backers), 'a quorum of every configuration decides');
    assert(this.#electorate.canLead(vote.leader), 'a leader is a voter with a weight');
    assert(!isOwn || this.#candidacy.canLeadAs(vote), 'a server leads only with data that it has and trusts');
    assert(
      isOwn || this.#tally.isLeading(vote.leader) || backers.every((id) => this.#tally.hasVotedFor(id, vote)),
      'the leader says that it leads, or every vote that is counted is of this round',
    );
    const learnerState =
      this.#candidacy.standing.learnerType === 'observer' ? ServerState.observing : ServerState.following;
    const state = isOwn ? ServerState.leading : learnerState;
    this.#state = state;
    this.#vote = vote;
    this.#supporters = new Set(backers);
    this.#isDecisionLost = false;
    this.#isEpochEstablished = false;
    this.#settleAtMs = NEVER;
    this.#candidacy.endTurn();
    this.#notifications.stop();
    this.#peers.forgetAskers();
    // Looking servers that have not voted alike would otherwise learn of the decision only after their next
    // notification.
    for (const id of this.#peers.lookers())
      if (!this.#tally.hasVotedFor(id, vote)) this.#notifications.reply(id, this.#word);
    // Observers are sent no votes, so one that connected before the decision knows of no lease of this server either.
    if (this.#givesLeases) for (const id of this.#peers.settled()) if (!this.#electorate.voters.has(id)) this.#send(id);
    this.#effects.decided({
      state,
      leader: vote.leader,
      historyEpoch: vote.peerEpoch,
      historyZxid: vote.zxid,
      checksPromises: isOwn || this.#peers.get(vote.leader).checksPromises,
      round: this.#round,
      supporters: backers,
    });
  }

  /** A voter is looking although this server has decided: it gets a reply, and the decision may have relied on it. */
  #onDoubt(from: number, notification: ElectionNotification): void {
    const { electionEpoch, leader } = notification;
    if (this.#state !== ServerState.observing) this.#notifications.reply(from, this.#word);
    if (this.#isOutranked(from, notification)) {
      this.#effects.outranked(from, notification.peerEpoch);
      return;
    }
    const standsByMe = electionEpoch === this.#round && leader === this.#vote.leader;
    if (this.#state === ServerState.leading) {
      if (standsByMe) this.#supporters.add(from);
      else this.#supporters.delete(from);
    }
    const isLost =
      this.#state === ServerState.leading
        ? !this.#electorate.isQuorum(this.#supporters)
        : from === this.#vote.leader && !standsByMe;
    if (!isLost || this.#isDecisionLost) return;
    this.#isDecisionLost = true;
    this.#effects.decisionLost();
  }

  /**
   * Only counts servers that keep looking. One that would eventually follow, as Apache's does, might leave the election
   * that it is meant to win.
   */
  #isOutranked(from: number, notification: ElectionNotification): boolean {
    if (this.#state !== ServerState.leading || !this.#isEpochEstablished) return false;
    const goesOnLooking = (notification.announces & Announcement.refusesOlderEpochs) !== 0;
    const isHonest = isPossible(notification, this.#candidacy.standing.currentEpoch);
    const isLater = notification.leader === from && notification.peerEpoch > this.#vote.peerEpoch;
    return goesOnLooking && isLater && !isUntrusted(notification) && isHonest;
  }

  /* -------------------------------------------------------------------------------------- notifications ---- */

  get #givesLeases(): boolean {
    return this.#candidacy.isVoter && (this.#options.leaseMs ?? 0) > 0;
  }

  get #word(): Word {
    return { state: this.#state, round: this.#round, vote: this.#vote, configText: this.#configText };
  }

  #broadcast(): void {
    this.#notifications.broadcast(this.#electorate.voters, this.#word);
  }

  #send(to: number): void {
    this.#notifications.send(to, this.#word);
  }
}
