import { type ElectionNotification, ServerState } from '@meerkat/protocol';
import { isSameVote, type Vote } from './vote.ts';

/** Notification of a server that is not looking: it leads, or it names the leader that it follows. */
export type Claim = Pick<ElectionNotification, 'state' | 'leader' | 'zxid' | 'peerEpoch' | 'electionEpoch' | 'version'>;

/**
 * The last notification of every voter, as far as it helps to find a leader. Two kinds are kept apart:
 *
 * - a *ballot* is the vote of a looking server in this server's round (`recvset`);
 * - a *claim* is sent by a server that has found its leader, in any round (`outofelection`).
 *
 * Only the last notification of a server counts. A claim replaces the server's ballot unless it says that the ballot
 * won, and a ballot replaces its claim: a leader that is looking again no longer leads.
 */
export class Tally {
  readonly #ballots = new Map<number, Vote>();
  readonly #claims = new Map<number, Claim>();

  /** Ballots only count in one round; claims are kept. */
  startRound(): void {
    this.#ballots.clear();
  }

  clear(): void {
    this.#ballots.clear();
    this.#claims.clear();
  }

  ballotOf(id: number): Vote | undefined {
    return this.#ballots.get(id);
  }

  hasVotedFor(id: number, vote: Vote): boolean {
    const ballot = this.#ballots.get(id);
    return ballot !== undefined && isSameVote(ballot, vote);
  }

  /** @returns true when this is new */
  recordBallot(id: number, vote: Vote): boolean {
    this.#claims.delete(id);
    const known = this.#ballots.get(id);
    if (known !== undefined && isSameVote(known, vote)) return false;
    this.#ballots.set(id, vote);
    return true;
  }

  /** @param round the round of this server, to which the ballots belong */
  recordClaim(id: number, claim: Claim, round: number): void {
    const ballot = this.#ballots.get(id);
    const didBallotWin = ballot?.leader === claim.leader && claim.electionEpoch === round;
    if (!didBallotWin) this.#ballots.delete(id);
    this.#claims.set(id, claim);
  }

  /** @returns true when there was anything to forget */
  forget(id: number): boolean {
    const hadBallot = this.#ballots.delete(id);
    return this.#claims.delete(id) || hadBallot;
  }

  votersFor(vote: Vote): number[] {
    return idsWhere(this.#ballots, (ballot) => isSameVote(ballot, vote));
  }

  /**
   * The servers behind the leader named by `claim`, when the claim is of this server's round: those that voted for it
   * and those that found it. Within a round the leader's id identifies the vote, because a server stands for election
   * with one vote per round; the epochs of claims differ while servers are still taking over the new one.
   */
  backersInRound(claim: Claim): number[] {
    const voters = idsWhere(this.#ballots, ({ leader }) => leader === claim.leader);
    const others = idsWhere(
      this.#claims,
      ({ leader, electionEpoch }) => leader === claim.leader && electionEpoch === claim.electionEpoch,
    );
    return [...new Set([...voters, ...others])];
  }

  /**
   * The servers that make the same claim, in any round: members of one ensemble may have found their leader in
   * different rounds and know different zxids of it (ZOOKEEPER-1732, 1805).
   */
  backersInAnyRound(claim: Claim): number[] {
    return idsWhere(this.#claims, (other) => isSameClaim(other, claim));
  }

  isLeading(id: number): boolean {
    return this.#claims.get(id)?.state === ServerState.leading;
  }
}

/** Votes of version 0 carry no true epoch and are compared by leader only (Vote.equals). */
function isSameClaim(a: Claim, b: Claim): boolean {
  if (a.leader !== b.leader) return false;
  const isOneOld = (a.version === 0) !== (b.version === 0);
  return isOneOld || a.peerEpoch === b.peerEpoch;
}

function idsWhere<T>(words: ReadonlyMap<number, T>, isMeant: (word: T) => boolean): number[] {
  const ids: number[] = [];
  for (const [id, word] of words) if (isMeant(word)) ids.push(id);
  return ids;
}
