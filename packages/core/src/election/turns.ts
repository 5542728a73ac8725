/**
 * Who stands for election while a change of the membership is proposed.
 *
 * A leader that knows of the change needs a quorum of the committed voters and one of the proposed ones, and nobody among
 * them that is ahead of its history. As a rule a committed voter leads, as at Apache's: who does not know of the change
 * counts no vote for a newcomer, a server that only the proposed membership has. But newcomers may have heard more:
 *
 *     in force {5}, proposed {5,2}         5: … the change, 1c      2: … the change, 1c, 1d
 *     in force {1,2,3}, proposed {3,4}     1, 2: …                  3: … the change             4: … the change, 1d
 *
 * In the first case 5 needs 2, and must not lead it: what 2 has beyond it may be committed. So 2 is to lead. In the second
 * 3 needs 4 likewise, and 1 and 2 would not follow 4. But they can do without 3. So there are two turns, and a server
 * changes its turn when an election has led to nothing:
 *
 *                      ── led, and could not begin its epoch (a committed voter) ──►
 *     committed stand  ── followed one that is behind and could not (a newcomer) ──►   newcomers stand
 *                      ◄──────────────── not elected in time, or elected in vain ───
 *
 * That is safe: an election only proposes a leader, and the rest is up to discovery. A leader asks quorums of each
 * membership that it knows of for their promise and their history, and leads nobody that is ahead of it before its epoch
 * begins. Two quorums of one membership share a server. Where the leader itself is a member plays no part in that. Nor is
 * a follower asked: it may follow whom a quorum of the committed voters follows, although they know of no change. It gives
 * up the change then; had that been committed, one of them would know of it.
 *
 * It ends, once all can be reached. Either quorums of both memberships know of the change: then the latest history of all
 * wins, in the one turn or the other. Or a quorum of the committed voters does not know of it: in the second turn it finds
 * a leader by itself. One case is left, of an even number of voters of which just half know of the change, behind a newcomer
 * that is needed: nobody leads until one of the others has come to know it.
 */
import { compareVotes, type Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;

export class Turns {
  readonly #lengthMs: number;
  #endsAtMs = NEVER;

  /** @param lengthMs milliseconds in which newcomers are elected, or not needed */
  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** True in the turn of the newcomers, as far as this server knows. */
  get isOfNewcomers(): boolean {
    return this.#endsAtMs !== NEVER;
  }

  /** When the turn of the newcomers ends, by the monotonic clock; Infinity while it is not theirs. */
  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  /**
   * A leader has not begun its epoch.
   *
   * @param elected the vote that it was elected by
   * @param own the vote for this server
   */
  onFailure(elected: Vote, own: Vote, isNewcomer: boolean, nowMs: number): void {
    const hasLed = elected.leader === own.leader;
    const isAhead = compareVotes(own, { ...elected, leader: own.leader }) > 0;
    if (isNewcomer ? isAhead && !hasLed : hasLed) this.#endsAtMs = nowMs + this.#lengthMs;
  }

  end(): void {
    this.#endsAtMs = NEVER;
  }
}
