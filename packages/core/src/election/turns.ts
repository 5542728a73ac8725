/**
 * Which servers stand for election while a membership change is proposed.
 *
 * A leader that knows of the change needs a quorum of the committed voters and one of the proposed voters, none of
 * which may have a later history. Usually a committed voter leads, as with Apache: servers that do not know of the
 * change count no votes for a newcomer, a server that is only in the proposed membership. But newcomers may have
 * received more:
 *
 *     in force {5}, proposed {5,2}         5: … the change, 1c      2: … the change, 1c, 1d
 *     in force {1,2,3}, proposed {3,4}     1, 2: …                  3: … the change             4: … the change, 1d
 *
 * In the first case 5 needs 2 but must not lead it: the txns that only 2 has may be committed. So 2 has to lead. In the
 * second, 3 likewise needs 4, and 1 and 2 would not follow 4; but they can do without 3. So there are two turns, and a
 * server changes its turn when an election has failed:
 *
 *                      ── led, and could not begin its epoch (a committed voter) ──►
 *     committed stand  ── followed one that is behind and could not (a newcomer) ──►   newcomers stand
 *                      ◄──────────────── not elected in time, or election failed ───
 *
 * This is safe: an election only proposes a leader, and discovery does the rest. A leader asks quorums of each
 * membership that it knows of for their promise and their history, and leads no server with a later history before its
 * epoch begins. Two quorums of one membership share a server. Whether the leader itself is a member does not matter.
 * Nor does it matter what a follower knows: it may follow the leader of a quorum of the committed voters even if these
 * do not know of the change. It then drops the change; had the change been committed, one of them would know of it.
 *
 * It terminates once all servers can be reached. If quorums of both memberships know of the change, the latest history
 * of all wins, in one turn or the other. If a quorum of the committed voters does not know of it, that quorum finds a
 * leader by itself in the second turn. One case remains: of an even number of voters exactly half know of the change,
 * and they need a newcomer whose history is later. No server leads until one of the other voters learns of the change.
 */
import { compareVotes, type Vote } from './vote.ts';

const NEVER = Number.POSITIVE_INFINITY;

export class Turns {
  readonly #lengthMs: number;
  #endsAtMs = NEVER;

  /** @param lengthMs milliseconds within which newcomers are elected, or turn out not to be needed */
  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** True during the newcomers' turn, as far as this server knows. */
  get isOfNewcomers(): boolean {
    return this.#endsAtMs !== NEVER;
  }

  /** When the newcomers' turn ends, by the monotonic clock; Infinity when it is not their turn. */
  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  /**
   * A leader failed to begin its epoch.
   *
   * @param elected the vote by which it was elected
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
