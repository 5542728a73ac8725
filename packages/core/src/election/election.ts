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
 * 2. Only voters are counted, and they are a quorum of every configuration that counts.
 * 3. Either all of them voted for this vote in this round, or the leader itself says that it leads.
 * 4. In the first case the leader's history is at least as late as that of every one of them when the round began, but
 *    for servers without weight; and a server leads only by a vote that it cast for itself, as a candidate.
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
import {
  Announcement,
  type ElectionNotification,
  NOTIFICATION_VERSION,
  ServerState,
  VOTE_NONE,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/ports.ts';
import { isPossible, ROUNDS_FAR } from './believable.ts';
import type { ElectionEffects, ElectionOptions, Standing } from './election-host.ts';
import type { Electorate } from './electorate.ts';
import { Peers } from './peers.ts';
import { type Claim, Tally } from './tally.ts';
import { compareVotes, isSameVote, isUntrusted, NO_VOTE, type Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** What every notification says of its sender. */
const ANNOUNCES = Announcement.settlesEarly + Announcement.outlastsOlderEpochs;

export class Election {
  readonly #options: ElectionOptions;
  readonly #clock: Clock;
  readonly #effects: ElectionEffects;
  #electorate: Electorate;
  #configText: string;

  #state: ServerState = ServerState.looking;
  #standing: Standing | null = null;
  /** `logicalclock`: in memory only; the first round is 1. */
  #round = 0;
  /** The latest round that this server has voted in: a decision by the claims of others may be about an earlier one. */
  #roundMax = 0;
  /** What this server stands for in this round; NO_VOTE when it is no candidate. */
  #ownVote: Vote = NO_VOTE;
  /** While looking, what it proposes; it only ever gets better within a round. Afterwards, the vote that won. */
  #vote: Vote = NO_VOTE;
  readonly #tally = new Tally();
  readonly #peers = new Peers();
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
  #notifyAtMs = NEVER;
  #notifyIntervalMs = 0;

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
    return Math.min(this.#settleAtMs, this.#notifyAtMs);
  }

  /** Epoch of the history with which a server stood for election last; null when it has not been heard. */
  historyEpochOf(id: number): number | null {
    return this.#peers.get(id).historyEpoch;
  }

  /* --------------------------------------------------------------------------------------------- events ---- */

  /** Begins a new round: at the start, and whenever a role has ended. */
  look(standing: Standing): void {
    if (this.#state !== ServerState.looking && !this.#isEpochEstablished) this.#maySettleEarly = false;
    this.#standing = standing;
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
    if (this.#standing === null || this.#state !== ServerState.looking) return;
    this.#tally.forget(id);
    if (this.#electorate.voters.has(id)) this.#send(id);
    this.#scheduleNotifications();
    this.#count();
  }

  /** The connection to a peer broke, or an attempt to make one failed. Its last word counts no more. */
  onPeerUnreachable(id: number): void {
    this.#peers.disconnect(id);
    if (this.#standing === null || this.#state !== ServerState.looking) return;
    this.#tally.forget(id);
    this.#count();
  }

  onNotification(from: number, notification: ElectionNotification): void {
    if (this.#standing === null || from === this.#options.serverId) return;
    const { state, configText, announces } = notification;
    const isLooking = this.#state === ServerState.looking;
    const isSenderLooking = state === ServerState.looking;
    if (isLooking && configText !== null && configText !== this.#configText)
      this.#effects.configHeard(from, configText);

    const peer = this.#peers.get(from);
    peer.isLooking = isSenderLooking;
    if ((announces & Announcement.settlesEarly) !== 0) peer.settlesEarly = true;
    if ((announces & Announcement.outlastsOlderEpochs) !== 0) peer.judgesPromises = true;
    if (isSenderLooking && notification.leader === from) peer.historyEpoch = notification.peerEpoch;
    if (!this.#electorate.voters.has(from)) {
      if (isSenderLooking) this.#replyToOutsider(from);
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
    } else if (nowMs >= this.#notifyAtMs) {
      this.#broadcast();
      this.#notifyIntervalMs = Math.min(2 * this.#notifyIntervalMs, this.#options.notificationIntervalMaxMs);
      this.#notifyAtMs = nowMs + this.#notifyIntervalMs;
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

  /** Another configuration has been proposed, committed or taken over. While looking, the search begins anew. */
  onElectorateChanged(electorate: Electorate, configText: string): void {
    this.#electorate = electorate;
    this.#configText = configText;
    if (this.#standing !== null && this.#state === ServerState.looking) this.look(this.#standing);
  }

  /* -------------------------------------------------------------------------------------------- looking ---- */

  /** A voter that is looking says what it votes for. */
  #onBallot(from: number, notification: ElectionNotification): void {
    // An observer waits until somebody leads. Apache's voters tell it in whose hands they were before, as if that were a
    // vote of this round.
    if (!this.#isVoter()) return;
    const missedMyVote = this.#peers.get(from).missedMyVote;
    this.#peers.get(from).missedMyVote = false;
    if (notification.electionEpoch < this.#round) {
      this.#tally.forget(from);
      this.#send(from);
      this.#count();
      return;
    }
    const isAbsurd = this.#electorate.voters.has(notification.leader) && !this.#isPossible(notification);
    if (isAbsurd || isUntrusted(notification) || isUntrusted(this.#ownVote)) {
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
      if (leader === this.#options.serverId && !isSameVote(ballot, this.#ownVote)) {
        // Others still vote for what this server had before its directory was lost, or when it stood. Only a later round
        // ends that.
        this.#beginRound(this.#round + 1);
        return true;
      }
      if (this.#mayBack(ballot)) this.#propose(ballot);
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
      const isOutranked = claim.leader !== this.#options.serverId && claim.peerEpoch < this.#standing!.currentEpoch;
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
      if (!isOfThisRound || !this.#canLeadAs(claim)) return null;
    } else if (!this.#tally.isLeading(claim.leader)) {
      return null;
    }
    const backers = [this.#tally.backersInAnyRound(claim), isOfThisRound ? this.#tally.backersInRound(claim) : []];
    return backers.find((ids) => this.#electorate.isQuorum(ids)) ?? null;
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

  #isPossible(vote: Vote): boolean {
    return isUntrusted(vote) || isPossible(vote, this.#standing!.currentEpoch);
  }

  #beginRound(round: number): void {
    this.#round = round;
    this.#roundMax = Math.max(this.#roundMax, round);
    this.#ownVote = this.#makeOwnVote();
    this.#vote = this.#ownVote;
    this.#settleAtMs = NEVER;
    this.#tally.startRound();
    this.#castOwnBallot();
    this.#scheduleNotifications();
  }

  #propose(vote: Vote): void {
    assert(this.#electorate.isBetter(vote, this.#vote), 'within a round a proposal only gets better');
    this.#vote = vote;
    this.#settleAtMs = NEVER;
    this.#castOwnBallot();
    this.#scheduleNotifications();
  }

  #castOwnBallot(): void {
    if (this.#isVoter() && !isUntrusted(this.#vote)) this.#tally.recordBallot(this.#options.serverId, this.#vote);
  }

  /**
   * A server proposes itself when the committed configuration has it as a voter and followers can reach it; others begin
   * with nobody.
   */
  #makeOwnVote(): Vote {
    const { isCandidate } = this.#standing!;
    if (!this.#isVoter() || !this.#electorate.current.voters.has(this.#options.serverId)) return NO_VOTE;
    const vote = this.#standingVote();
    return isCandidate || isUntrusted(vote) ? vote : NO_VOTE;
  }

  /** The vote for this server, whether it may cast it or not. */
  #standingVote(): Vote {
    const { lastZxid, currentEpoch } = this.#standing!;
    return { leader: this.#options.serverId, zxid: lastZxid, peerEpoch: currentEpoch };
  }

  /**
   * A candidate never backs a worse vote than its own. A server that does not stand must not either: it may have
   * acknowledged what that leader lacks. The id, which only decides between equals, is left out.
   */
  #mayBack(vote: Vote): boolean {
    const { serverId } = this.#options;
    if (this.#standing!.isCandidate || !this.#electorate.canLead(serverId)) return true;
    return compareVotes(vote, { ...this.#standingVote(), leader: vote.leader }) >= 0;
  }

  /** True when this server's vote counts: it and the configuration agree that it is no observer (ZOOKEEPER-764). */
  #isVoter(): boolean {
    return this.#standing!.learnerType === 'participant' && this.#electorate.voters.has(this.#options.serverId);
  }

  #canLeadAs({ zxid, peerEpoch }: Pick<Vote, 'zxid' | 'peerEpoch'>): boolean {
    const own = this.#ownVote;
    return own !== NO_VOTE && !isUntrusted(own) && own.zxid >= zxid && own.peerEpoch >= peerEpoch;
  }

  /* ------------------------------------------------------------------------------------------- decision ---- */

  #decide(vote: Vote, backers: readonly number[]): void {
    const { serverId } = this.#options;
    const isOwn = vote.leader === serverId;
    assert(this.#electorate.isQuorum(backers), 'a quorum of every configuration decides');
    assert(this.#electorate.canLead(vote.leader), 'a leader is a voter with a weight');
    assert(!isOwn || this.#canLeadAs(vote), 'a server leads only with data that it has and trusts');
    assert(
      isOwn || this.#tally.isLeading(vote.leader) || backers.every((id) => this.#hasVotedFor(id, vote)),
      'the leader says that it leads, or every vote that is counted is of this round',
    );
    const { leading, following, observing } = ServerState;
    const learnerState = this.#standing!.learnerType === 'observer' ? observing : following;
    const state = isOwn ? leading : learnerState;
    this.#state = state;
    this.#vote = vote;
    this.#supporters = new Set(backers);
    this.#isDecisionLost = false;
    this.#isEpochEstablished = false;
    this.#settleAtMs = NEVER;
    this.#notifyAtMs = NEVER;
    this.#peers.forgetAskers();
    // Who is looking and has not voted alike would not find out by itself before its next notification.
    for (const id of this.#peers.lookers()) if (!this.#hasVotedFor(id, vote)) this.#reply(id);
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

  #hasVotedFor(id: number, vote: Vote): boolean {
    const ballot = this.#tally.ballotOf(id);
    return ballot !== undefined && isSameVote(ballot, vote);
  }

  /** A voter is looking although this server has decided: it is answered, and it may be one that was relied on. */
  #onDoubt(from: number, notification: ElectionNotification): void {
    const { electionEpoch, leader } = notification;
    if (this.#state !== ServerState.observing) this.#reply(from);
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
    const isLater = notification.leader === from && notification.peerEpoch > this.#vote.peerEpoch;
    return goesOnLooking && isLater && !isUntrusted(notification) && this.#isPossible(notification);
  }

  /* -------------------------------------------------------------------------------------- notifications ---- */

  #broadcast(): void {
    for (const id of this.#electorate.voters) {
      if (id !== this.#options.serverId && this.#peers.isConnected(id)) this.#send(id);
    }
  }

  #scheduleNotifications(): void {
    this.#notifyIntervalMs = this.#options.notificationIntervalMinMs;
    this.#notifyAtMs = this.#clock.monotonicMs() + this.#notifyIntervalMs;
  }

  /** Answers one that is looking; it is told again should the answer change. */
  #reply(to: number): void {
    this.#peers.get(to).hasAsked = true;
    this.#send(to);
  }

  /**
   * Answers a server that is no voter, an observer for instance, but the same thing only once per interval: an Apache
   * observer of a later round answers every answer, and the two would never stop (ZOOKEEPER-1807).
   */
  #replyToOutsider(to: number): void {
    if (!this.#isVoter()) return;
    const peer = this.#peers.get(to);
    const nowMs = this.#clock.monotonicMs();
    const answer = { state: this.#state, round: this.#round, vote: this.#vote };
    const last = peer.lastAnswer;
    const isRepeated = last?.state === answer.state && last.round === answer.round && last.vote === answer.vote;
    if (isRepeated && nowMs < last.atMs + this.#options.notificationIntervalMinMs) return;
    peer.lastAnswer = { ...answer, atMs: nowMs };
    this.#reply(to);
  }

  #send(to: number): void {
    const { leader, zxid, peerEpoch } = this.#vote;
    this.#effects.sendNotification(to, {
      state: this.#state,
      leader,
      zxid,
      electionEpoch: this.#round,
      peerEpoch,
      version: NOTIFICATION_VERSION,
      configText: this.#configText,
      announces: ANNOUNCES,
    });
  }
}
