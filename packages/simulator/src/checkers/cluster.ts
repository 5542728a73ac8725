/** The global view that every rule is checked against: the ghost state of the Zab proofs, kept by `LiveChecker`. */
import { epochOf, type Hierarchy, type Membership, type TxnEntry, type Zxid } from '@meerkat/protocol';
import { CommittedSequence } from './committed-sequence.ts';
import { isQuorum } from './quorum.ts';
import { ServerGhost } from './server-ghost.ts';
import type { Violations } from './violation.ts';

/** Who votes at the beginning; a committed reconfig changes it. */
export interface Members {
  readonly voters: readonly number[];
  readonly observers: readonly number[];
  /** Servers that follow without a vote until a change of the membership makes them participants. */
  readonly spares?: readonly number[] | undefined;
  /** Default, and null: majorities, each voter with the weight 1. */
  readonly hierarchy?: Hierarchy | null | undefined;
}

/** A txn that the leader of its epoch has broadcast, an element of P[e]. */
export interface Proposal {
  readonly hash: number;
  readonly entry: TxnEntry | null;
}

export class Cluster {
  readonly violations: Violations;
  readonly members: Members;
  readonly servers: ReadonlyMap<number, ServerGhost>;
  /** C */
  readonly committed: CommittedSequence = new CommittedSequence();
  /** P of all epochs, by zxid. */
  readonly proposals: Map<number, Proposal> = new Map();
  /** Last txn that was broadcast in each epoch. */
  readonly lastProposed: Map<number, number> = new Map();
  /** The leader of each epoch: the server, and its term. */
  readonly leaders: Map<number, { readonly server: number; readonly term: number }> = new Map();
  /** Epochs whose quorum has synchronized. */
  readonly establishedEpochs: Set<number> = new Set();
  readonly nowMs: () => number;
  /** Committed memberships, by their versions, the newest last. */
  readonly #memberships: Map<number, Electors> = new Map();
  /** Voters of proposed memberships. */
  readonly #proposed: Map<number, Electors> = new Map();

  constructor(members: Members, violations: Violations, nowMs: () => number) {
    this.members = members;
    this.violations = violations;
    this.nowMs = nowMs;
    const servers = new Map<number, ServerGhost>();
    for (const id of members.voters) servers.set(id, new ServerGhost(id, true));
    for (const id of members.observers) servers.set(id, new ServerGhost(id, false));
    for (const id of members.spares ?? []) servers.set(id, new ServerGhost(id, true));
    this.servers = servers;
    this.#memberships.set(0, { voters: members.voters, hierarchy: members.hierarchy ?? null });
  }

  /** Participants of the newest committed membership. */
  get voters(): readonly number[] {
    return this.#newest.voters;
  }

  get #newest(): Electors {
    return [...this.#memberships.values()].at(-1)!;
  }

  /** @returns false when this change was seen before */
  onMembershipProposed(version: number, { members, hierarchy }: Membership): boolean {
    if (this.#proposed.has(version)) return false;
    const voters = members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
    this.#proposed.set(version, { voters, hierarchy });
    return true;
  }

  /** An earlier change of the same leader that is not committed yet; null when there is none. */
  pendingMembership(version: number): number | null {
    const epoch = epochOf(version as Zxid);
    const pending = [...this.#proposed.keys()].find(
      (other) => other < version && epochOf(other as Zxid) === epoch && !this.#memberships.has(other),
    );
    return pending ?? null;
  }

  /** The txn is committed: if it changes the membership, its quorums count from now on. @returns true when it does */
  onMembershipCommitted(version: number): boolean {
    const electors = this.#proposed.get(version);
    if (electors === undefined) return false;
    this.#memberships.set(version, electors);
    return true;
  }

  /**
   * A voter of the newest committed membership, of one that was proposed after it, or of the one before it: a leader whose
   * history has a change commits it with its epoch, and hands over if the change removes it.
   */
  mayLead(id: number): boolean {
    return this.#electorsOfNow().some(({ voters }) => voters.includes(id));
  }

  #electorsOfNow(): readonly Electors[] {
    const newest = [...this.#memberships.keys()].at(-1)!;
    const before = [...this.#memberships.values()].slice(-2);
    const later = [...this.#proposed].filter(([version]) => version > newest).map(([, electors]) => electors);
    return [...before, ...later];
  }

  /** A quorum of any membership so far: for decisions of servers that do not know the newest one yet. */
  isQuorumOfAny(ids: readonly number[]): boolean {
    const all = [...this.#memberships.values(), ...this.#proposed.values()];
    return all.some(({ voters, hierarchy }) => isQuorum(voters, hierarchy, ids));
  }

  /**
   * A quorum of the list that a server may have been started with: a server that is no member is given the membership of
   * that time plus itself.
   */
  isQuorumOfOwnList(id: number, ids: readonly number[]): boolean {
    return [...this.#memberships.values()].some(
      ({ voters }) => !voters.includes(id) && isQuorum([...voters, id], null, ids),
    );
  }

  server(id: number): ServerGhost {
    const server = this.servers.get(id);
    if (server === undefined) throw new Error(`server ${id} is no member`);
    return server;
  }

  report(invariant: string, servers: readonly number[], message: string): void {
    this.violations.report(invariant, servers, message);
  }

  /** A voter with a weight. */
  canLead(id: number): boolean {
    const all = [...this.#memberships.values(), ...this.#proposed.values()];
    return all.some(({ voters, hierarchy }) => voters.includes(id) && (hierarchy?.weights.get(id) ?? 1) > 0);
  }

  /** A quorum of the newest committed membership. */
  isQuorum(ids: Iterable<number>): boolean {
    const { voters, hierarchy } = this.#newest;
    return isQuorum(voters, hierarchy, ids);
  }
}

/** The voters of a membership. */
interface Electors {
  readonly voters: readonly number[];
  readonly hierarchy: Hierarchy | null;
}
