/** How one server stands in the election: what it may propose, and whom it may back. */
import type { Standing } from './election-host.ts';
import type { Electorate } from './electorate.ts';
import { Turns } from './turns.ts';
import { compareVotes, isUntrusted, NO_VOTE, type Vote } from './vote.ts';

export class Candidacy {
  readonly #serverId: number;
  readonly #electorate: Electorate;
  readonly #turns: Turns;
  #standing: Standing | null = null;
  /** What this server stands for in this round; NO_VOTE when it is no candidate. */
  #ownVote: Vote = NO_VOTE;

  /** @param turnMs milliseconds of a turn, see `Turns` */
  constructor(serverId: number, electorate: Electorate, turnMs: number) {
    this.#serverId = serverId;
    this.#electorate = electorate;
    this.#turns = new Turns(turnMs);
  }

  /** False until the first search. */
  get hasStanding(): boolean {
    return this.#standing !== null;
  }

  /** What the server brought into the search; there is one. */
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
   * @param failed the vote that won before and led to no epoch; null for none
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
   * A round begins. A server proposes itself when it is a voter whose turn it is, and followers can reach it; others begin
   * with nobody.
   *
   * @returns its vote
   */
  onRound(): Vote {
    this.#ownVote = this.#makeOwnVote();
    return this.#ownVote;
  }

  /**
   * True of every server that is no observer (ZOOKEEPER-764). One that no configuration has as far as it knows votes too,
   * though never for itself: others may know of a change that gives it a say, and wait for it.
   */
  get isVoter(): boolean {
    return this.standing.learnerType === 'participant';
  }

  /**
   * A candidate never backs a worse vote than its own. A server that does not stand must not either: it may have
   * acknowledged what that leader lacks. The id, which only decides between equals, is left out. A newcomer backs every
   * committed voter in the turn of those.
   */
  mayBack(vote: Vote): boolean {
    const stands = this.standing.isCandidate && (this.#isItsTurn || this.#isNewcomer);
    if (stands || !this.#electorate.canLead(this.#serverId)) return true;
    return compareVotes(vote, { ...this.#standingVote(), leader: vote.leader }) >= 0;
  }

  /** True when it stands with a history at least as late. */
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

  /** True of a voter that only the proposed membership has. */
  get #isNewcomer(): boolean {
    return this.#electorate.isNewcomer(this.#serverId);
  }

  /** The vote for this server, whether it may cast it or not. */
  #standingVote(): Vote {
    const { lastZxid, currentEpoch } = this.standing;
    return { leader: this.#serverId, zxid: lastZxid, peerEpoch: currentEpoch };
  }
}
