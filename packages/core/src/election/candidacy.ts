/** What one server may propose in an election, and which votes it may back. */
import type { Standing } from './election-host.ts';
import type { Electorate } from './electorate.ts';
import { Turns } from './turns.ts';
import { compareVotes, isUntrusted, NO_VOTE, type Vote } from './vote.ts';

export class Candidacy {
  readonly #serverId: number;
  readonly #electorate: Electorate;
  readonly #turns: Turns;
  #standing: Standing | null = null;
  /** This server's own candidacy in this round; NO_VOTE when it is not a candidate. */
  #ownVote: Vote = NO_VOTE;

  /** @param turnMs length of a turn in milliseconds, see `Turns` */
  constructor(serverId: number, electorate: Electorate, turnMs: number) {
    this.#serverId = serverId;
    this.#electorate = electorate;
    this.#turns = new Turns(turnMs);
  }

  /** False until the first search. */
  get hasStanding(): boolean {
    return this.#standing !== null;
  }

  /** The server's standing when the search began; only valid once `hasStanding`. */
  get standing(): Standing {
    return this.#standing!;
  }

  get ownVote(): Vote {
    return this.#ownVote;
  }

  /** When this server's turn ends, by the monotonic clock; Infinity for never. */
  get turnEndsAtMs(): number {
    return this.#turns.endsAtMs;
  }

  /**
   * A search begins.
   *
   * @param failed vote that won the previous election without leading to an epoch; null for none
   */
  onSearch(standing: Standing, failed: Vote | null, nowMs: number): void {
    this.#standing = standing;
    if (failed !== null && this.#electorate.hasNewcomers) {
      this.#turns.onFailure(failed, this.#standingVote(), this.#isNewcomer, nowMs);
    }
  }

  endTurn(): void {
    this.#turns.end();
  }

  /**
   * A round begins. A server proposes itself if it is a voter, it is its turn, and followers can reach it; otherwise it
   * starts without a vote.
   *
   * @returns its vote
   */
  onRound(): Vote {
    this.#ownVote = this.#makeOwnVote();
    return this.#ownVote;
  }

  /**
   * True for every server that is not an observer (ZOOKEEPER-764). A server that is in no configuration it knows of
   * also votes, though never for itself: others may know of a change that makes it a voter, and wait for its vote.
   */
  get isVoter(): boolean {
    return this.standing.learnerType === 'participant';
  }

  /**
   * A candidate never backs a vote worse than its own. Neither does a voter that is not standing: it may have
   * acknowledged txns that the other leader lacks. The id is only a tie-breaker and is ignored here. A newcomer backs
   * every committed voter during the committed voters' turn.
   */
  mayBack(vote: Vote): boolean {
    const stands = this.standing.isCandidate && (this.#isItsTurn || this.#isNewcomer);
    if (stands || !this.#electorate.canLead(this.#serverId)) return true;
    return compareVotes(vote, { ...this.#standingVote(), leader: vote.leader }) >= 0;
  }

  /** True when this server is a candidate with a history at least as recent. */
  canLeadAs({ zxid, peerEpoch }: Pick<Vote, 'zxid' | 'peerEpoch'>): boolean {
    const own = this.#ownVote;
    return own !== NO_VOTE && !isUntrusted(own) && own.zxid >= zxid && own.peerEpoch >= peerEpoch;
  }

  #makeOwnVote(): Vote {
    if (!this.isVoter || !this.#electorate.voters.has(this.#serverId) || !this.#isItsTurn) return NO_VOTE;
    const vote = this.#standingVote();
    return this.standing.isCandidate || isUntrusted(vote) ? vote : NO_VOTE;
  }

  get #isItsTurn(): boolean {
    return !this.#electorate.hasNewcomers || this.#turns.isOfNewcomers === this.#isNewcomer;
  }

  /** True for a voter that is only in the proposed membership. */
  get #isNewcomer(): boolean {
    return this.#electorate.isNewcomer(this.#serverId);
  }

  /** The vote for this server, whether or not it may cast it. */
  #standingVote(): Vote {
    const { lastZxid, currentEpoch } = this.standing;
    return { leader: this.#serverId, zxid: lastZxid, peerEpoch: currentEpoch };
  }
}
