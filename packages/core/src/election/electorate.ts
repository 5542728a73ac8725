import type { Quorum } from './quorum.ts';
import { compareVotes, type Vote } from './vote.ts';

declare const quorum: unique symbol;
/** These servers are a quorum of every configuration that counts: only an `Electorate` says so. */
export type QuorumProof = readonly number[] & { readonly [quorum]: true };

/**
 * Who votes at the moment. While a new configuration has been proposed but not committed there are two, and whatever is
 * decided needs a quorum of each (ZOOKEEPER-1699). It is shared by all who count: what changes counts for all at once.
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

  /** Everybody who has a say in one of the two, in ascending order. */
  get voters(): ReadonlySet<number> {
    return this.#voters;
  }

  /** True of a voter that only the proposed configuration has. */
  isNewcomer(id: number): boolean {
    return this.#voters.has(id) && !this.#current.voters.has(id);
  }

  /** True when the proposed configuration has voters that the committed one lacks. */
  get hasNewcomers(): boolean {
    return this.#voters.size > this.#current.voters.size;
  }

  /** How often it has changed: what was computed from it before is to be computed again. */
  get changes(): number {
    return this.#changes;
  }

  change(current: Quorum, lastSeen: Quorum | null): void {
    this.#current = current;
    this.#lastSeen = lastSeen;
    this.#voters = votersOf(current, lastSeen);
    this.#changes++;
  }

  /** True when these servers are a quorum of every configuration that counts. */
  isQuorum(ids: Iterable<number>): boolean {
    const list = [...ids];
    return this.current.isReachedBy(list) && (this.lastSeen === null || this.lastSeen.isReachedBy(list));
  }

  /** @returns the servers, when they are a quorum; null when they are not */
  proveQuorum(ids: readonly number[]): QuorumProof | null {
    return this.isQuorum(ids) ? (ids as QuorumProof) : null;
  }

  /** True of a voter that has a weight, in the committed configuration if it is a member of that. */
  canLead(id: number): boolean {
    const { current, lastSeen } = this;
    return current.voters.has(id) ? current.weightOf(id) > 0 : (lastSeen?.weightOf(id) ?? 0) > 0;
  }

  /**
   * True when `vote` wins over `other`. Votes for servers that can lead are totally ordered; votes for others are below
   * all of them and win over nothing, so that a server without weight does not cling to itself (ZOOKEEPER-498).
   */
  isBetter(vote: Vote, other: Vote): boolean {
    if (!this.canLead(vote.leader)) return false;
    return !this.canLead(other.leader) || compareVotes(vote, other) > 0;
  }
}

function votersOf(current: Quorum, lastSeen: Quorum | null): ReadonlySet<number> {
  return new Set([...current.voters, ...(lastSeen?.voters ?? [])].sort((a, b) => a - b));
}
