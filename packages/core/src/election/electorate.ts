import type { Quorum } from './quorum.ts';
import { compareVotes, type Vote } from './vote.ts';

declare const quorum: unique symbol;
/** These servers are a quorum of every active configuration. Only an `Electorate` creates one. */
export type QuorumProof = readonly number[] & { readonly [quorum]: true };

/**
 * The current voters. While a new configuration is proposed but not committed there are two configurations, and every
 * decision needs a quorum of each (ZOOKEEPER-1699). All users share one instance, so a change takes effect everywhere
 * at once.
 */
export class Electorate {
  #current: Quorum;
  #lastSeen: Quorum | null;
  #voters: ReadonlySet<number>;
  #changes = 0;

  constructor(current: Quorum, lastSeen: Quorum | null = null) {
    this.#current = current;
    this.#lastSeen = lastSeen;
    this.#voters = votersOf(current, lastSeen);
  }

  /** The last committed configuration. */
  get current(): Quorum {
    return this.#current;
  }

  /** The last proposed one (`lastSeenQuorumVerifier`); null when it is the committed one. */
  get lastSeen(): Quorum | null {
    return this.#lastSeen;
  }

  /** The voters of either configuration, in ascending order. */
  get voters(): ReadonlySet<number> {
    return this.#voters;
  }

  /** True for a voter that is only in the proposed configuration. */
  isNewcomer(id: number): boolean {
    return this.#voters.has(id) && !this.#current.voters.has(id);
  }

  /** True when the proposed configuration has voters that the committed one lacks. */
  get hasNewcomers(): boolean {
    return this.#voters.size > this.#current.voters.size;
  }

  /** Number of changes so far; anything computed at a lower number must be recomputed. */
  get changes(): number {
    return this.#changes;
  }

  change(current: Quorum, lastSeen: Quorum | null): void {
    this.#current = current;
    this.#lastSeen = lastSeen;
    this.#voters = votersOf(current, lastSeen);
    this.#changes++;
  }

  /** True when these servers are a quorum of every active configuration. */
  isQuorum(ids: Iterable<number>): boolean {
    const list = [...ids];
    return this.current.isReachedBy(list) && (this.lastSeen === null || this.lastSeen.isReachedBy(list));
  }

  /** @returns the servers if they are a quorum, otherwise null */
  proveQuorum(ids: readonly number[]): QuorumProof | null {
    return this.isQuorum(ids) ? (ids as QuorumProof) : null;
  }

  /** True for a voter with non-zero weight, in the committed configuration if it is a member of that. */
  canLead(id: number): boolean {
    const { current, lastSeen } = this;
    return current.voters.has(id) ? current.weightOf(id) > 0 : (lastSeen?.weightOf(id) ?? 0) > 0;
  }

  /**
   * True when `vote` wins over `other`. Votes for servers that can lead are totally ordered; votes for others rank
   * below all of them and win over nothing, so that a server without weight does not cling to itself (ZOOKEEPER-498).
   */
  isBetter(vote: Vote, other: Vote): boolean {
    if (!this.canLead(vote.leader)) return false;
    return !this.canLead(other.leader) || compareVotes(vote, other) > 0;
  }
}

function votersOf(current: Quorum, lastSeen: Quorum | null): ReadonlySet<number> {
  return new Set([...current.voters, ...(lastSeen?.voters ?? [])].sort((a, b) => a - b));
}
