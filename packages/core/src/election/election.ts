/**
 * Fast leader election (FastLeaderElection): how servers that have no leader agree on one. See docs/zab.md, "Election".
 *
 * Every server that looks for a leader votes, at first for itself, and tells all voters. Whoever hears a better vote
 * makes it its own and tells everybody again. When a quorum votes alike, that vote has won:
 *
 *     look ──► LOOKING ──┬─ a quorum votes as I do ──► settle ──┬──► decided: LEADING, FOLLOWING or OBSERVING
 *                ▲       └─ a quorum has a leader, and it says so ┘                │
 *                └──────────────── look: the role has ended ◄──────────────────────┘
 *
 * A round is one such attempt. Whoever hears of a later round joins it and begins there with its own vote; whoever is
 * in an earlier one is told. A server that is not looking answers those that are, which is how a late one finds the
 * leader.
 *
 * What a decision promises, and `#decide` asserts:
 *
 * 1. The leader is a voter with a weight, and its data may be trusted.
 * 2. Only voters are counted, and they are a quorum of every configuration that counts; where another server says that it
 *    leads, of the committed one.
 * 3. Either all of them voted for this vote in this round, or the leader itself says that it leads.
 * 4. In the first case the leader's history is at least as late as that of every one of them when the round began, but
 *    for servers without weight and newcomers (`Turns`); and a server leads only by a vote that it cast for itself, as a
 *    candidate.
 *
 * It does not promise that there is one leader: a server may hear a better vote after another has decided by its old
 * one. That two never lead in one epoch is what discovery adds.
 *
 * What the host does:
 *
 * - It calls `look` before anything else, and again whenever a role has ended. `decided` ends the search.
 * - It keeps a connection to every voter and tells of `onPeerConnected` and `onPeerUnreachable`. Notifications of one
 *   connection arrive in order; what was sent over one that breaks may be lost, and is said again by this machine when
 *   the peer is connected again.
 * - It calls `onTick` when `nextDeadlineMs` has come.
 */
import { Announcement, type ElectionNotification, leaseMsOf, ServerState, VOTE_NONE } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/ports.ts';
import { isPossible, ROUNDS_FAR } from './believable.ts';
import { Candidacy } from './candidacy.ts';
import type { ElectionEffects, ElectionOptions, Standing } from './election-host.ts';
import type { Electorate } from './electorate.ts';
import { Notifications, type Word } from './notifications.ts';
import { Peers } from './peers.ts';
import { type Claim, Tally } from './tally.ts';
import { isSameVote, isUntrusted, NO_VOTE, type Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** A turn, in times to settle: enough to hear all votes and to settle, also among Apache's servers. */
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
  /** The latest round that this server has voted in: a decision by the claims of others may be about an earlier one. */
  #roundMax = 0;
  /** While looking, what it proposes; it only ever gets better within a round. Afterwards, the vote that won. */
  #vote: Vote = NO_VOTE;
  readonly #tally = new Tally();
  readonly #peers = new Peers();
  /** What servers have announced; of voters, also when they are not connected any more. */
  readonly #leases: Map<number, number> = new Map();
  /** After a decision: the voters that it was made by and that have not gone back on it. */
  #supporters = new Set<number>();
  #isDecisionLost = false;
  /**
   * True until a decision came to nothing, and again once one has led to an epoch. A server that some reach and others
   * do not can make hasty ones undo each other for ever; those that wait hear of it through the others in time.
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

  /** What it proposes while it is looking, and afterwards the vote that won. */
  get vote(): Vote {
    return this.#vote;
  }

  /** Milliseconds of the monotonic clock; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#settleAtMs, this.#notifications.dueMs, this.#candidacy.turnEndsAtMs);
  }

  /** Epoch of the history with which a server stood for election last; null when it has not been heard. */
  historyEpochOf(id: number): number | null {
    return this.#peers.get(id).historyEpoch;
  }

  /** Milliseconds of the lease that a server has announced last; 0 for none, and of one that was never heard. */
  leaseMsOf(id: number): number {
    return this.#leases.get(id) ?? 0;
  }

  /* --------------------------------------------------------------------------------------------- events ---- */

  /** Begins a new round: at the start, and whenever a role has ended. */
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

  /** A connection to a peer stands, perhaps in place of another. Both ends say again what may have been missed. */
  onPeerConnected(id: number): void {
    this.#peers.connect(id);
    if (!this.#candidacy.hasStanding || this.#state !== ServerState.looking) return;
    this.#tally.forget(id);
    if (this.#electorate.voters.has(id)) this.#send(id);
    this.#notifications.schedule();
    this.#count();
  }

  /** The connection to a peer broke, or an attempt to make one failed. Its last word counts no more. */
  onPeerUnreachable(id: number): void {
    this.#peers.disconnect(id);
    // Anybody may say an id that no member has.
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
      this.#effects.configHeard(from, configText);

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
   * The leader has its quorum in a new epoch, or this learner has synchronized with it. From now on all members of the
   * ensemble say this epoch, whatever each of them voted with (ZOOKEEPER-1732).
   */
  onEpochEstablished(epoch: number): void {
    assert(this.#state !== ServerState.looking, 'an epoch is established after the election');
    this.#isEpochEstablished = true;
    this.#maySettleEarly = true;
    this.#vote = { ...this.#vote, peerEpoch: epoch };
    for (const id of this.#peers.takeAskers()) this.#send(id);
  }

  /**
   * The electorate has changed: another configuration has been proposed, committed or taken over.
   *
   * @param configText of the committed one, as it is told to others
   * @param standing while looking: how this server stands now; the search begins anew
   */
  onElectorateChanged(configText: string, standing: Standing | null): void {
    this.#configText = configText;
    if (standing !== null && this.#candidacy.hasStanding && this.#state === ServerState.looking) this.look(standing);
  }

  /* -------------------------------------------------------------------------------------------- looking ---- */

  /** A voter that is looking says what it votes for. */
  #onBallot(from: number, notification: ElectionNotification): void {
    // An observer waits until somebody leads. Apache's voters tell it in whose hands they were before, as if that were a
    // vote of this round.
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
    // Who has nobody to propose may still be ahead, and its voice may be needed; a vote for a stranger is of no use.
    if (electionEpoch > this.#round && (isForVoter || leader === VOTE_NONE)) this.#joinRound(electionEpoch);
    if (!isForVoter || electionEpoch > this.#round) return this.#tally.forget(from);
    if (this.#electorate.isBetter(ballot, this.#vote)) {
      if (leader === this.#options.serverId && !isSameVote(ballot, this.#candidacy.ownVote)) {
        // Others still vote for what this server had before its directory was lost, or when it stood. Only a later round
        // ends that.
        this.#beginRound(this.#round + 1);
        return true;
      }
      if (this.#candidacy.mayBack(ballot)) this.#propose(ballot);
    }
    return this.#tally.recordBallot(from, ballot);
  }

  /** A voter that has found a leader says whom. */
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
        this.#effects.keptOut(claim.leader, claim.peerEpoch);
      } else if (backers !== null) {
        this.#round = Math.min(claim.electionEpoch, this.#round + ROUNDS_FAR);
        this.#decide({ leader: claim.leader, zxid: claim.zxid, peerEpoch: claim.peerEpoch }, backers);
        return;
      }
    }
    this.#count();
  }

  /** The quorum behind the leader that a claim names, when that leader leads; null when there is none. */
  #findBackers(claim: Claim): readonly number[] | null {
    if (!this.#electorate.canLead(claim.leader)) return null;
    const isOfThisRound = claim.electionEpoch === this.#round;
    if (claim.leader === this.#options.serverId) {
      // Claims of an earlier round, or about data that it no longer has, are about what it was before (ZOOKEEPER-1514).
      if (!isOfThisRound || !this.#candidacy.canLeadAs(claim)) return null;
    } else if (!this.#tally.isLeading(claim.leader)) {
      return null;
    }
    const backers = [this.#tally.backersInAnyRound(claim), isOfThisRound ? this.#tally.backersInRound(claim) : []];
    return backers.find((ids) => this.#isEnoughFor(claim.leader, ids)) ?? null;
  }

  /** The leader has asked quorums of every membership that it knows of. */
  #isEnoughFor(leader: number, backers: readonly number[]): boolean {
    const isFound = leader !== this.#options.serverId && this.#tally.isLeading(leader);
    return isFound ? this.#electorate.current.isReachedBy(backers) : this.#electorate.isQuorum(backers);
  }

  /**
   * Looks whether the vote of this server has won.
   *
   * @param isNews true when the tally has changed, which lets the time to settle begin anew
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

  /**
   * True when no better vote is to be expected: every voter votes alike or cannot be reached, and all of them know this
   * rule.
   */
  #isUnanimous(): boolean {
    for (const id of this.#electorate.voters) {
      if (id === this.#options.serverId || this.#peers.isUnreachable(id)) continue;
      const ballot = this.#tally.ballotOf(id);
      if (ballot === undefined || !isSameVote(ballot, this.#vote) || !this.#peers.get(id).settlesEarly) return false;
    }
    return true;
  }

  /** The round is another server's word. When it is far ahead, what follows brings this server there step by step. */
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

  /** This is its vote from now on. */
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
    // Who is looking and has not voted alike would not find out by itself before its next notification.
    for (const id of this.#peers.lookers())
      if (!this.#tally.hasVotedFor(id, vote)) this.#notifications.reply(id, this.#word);
    this.#effects.decided({
      state,
      leader: vote.leader,
      historyEpoch: vote.peerEpoch,
      historyZxid: vote.zxid,
      judgesPromises: isOwn || this.#peers.get(vote.leader).judgesPromises,
      round: this.#round,
      supporters: backers,
    });
  }

  /** A voter is looking although this server has decided: it is answered, and it may be one that was relied on. */
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

  /** A server that would follow in the end, as Apache's does, might be gone from the election that it is to win. */
  #isOutranked(from: number, notification: ElectionNotification): boolean {
    if (this.#state !== ServerState.leading || !this.#isEpochEstablished) return false;
    const goesOnLooking = (notification.announces & Announcement.outlastsOlderEpochs) !== 0;
    const isHonest = isPossible(notification, this.#candidacy.standing.currentEpoch);
    const isLater = notification.leader === from && notification.peerEpoch > this.#vote.peerEpoch;
    return goesOnLooking && isLater && !isUntrusted(notification) && isHonest;
  }

  /* -------------------------------------------------------------------------------------- notifications ---- */

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
