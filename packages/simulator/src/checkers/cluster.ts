/** The global view that every rule is checked against: the ghost state of the Zab proofs, kept by `LiveChecker`. */
import type { Hierarchy, TxnEntry } from '@meerkat/protocol';
import { CommittedSequence } from './committed-sequence.ts';
import { isQuorum } from './quorum.ts';
import { ServerGhost } from './server-ghost.ts';
import type { Violations } from './violation.ts';

/** Who may vote. The simulator's membership does not change. */
export interface Members {
  readonly voters: readonly number[];
  readonly observers: readonly number[];
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
  /** Of the last txn that was broadcast in an epoch. */
  readonly lastProposed: Map<number, number> = new Map();
  /** Who leads, or has led, an epoch: the server, and its term. */
  readonly leaders: Map<number, { readonly server: number; readonly term: number }> = new Map();
  /** Epochs whose quorum has synchronized. */
  readonly establishedEpochs: Set<number> = new Set();
  readonly nowMs: () => number;

  constructor(members: Members, violations: Violations, nowMs: () => number) {
    this.members = members;
    this.violations = violations;
    this.nowMs = nowMs;
    const servers = new Map<number, ServerGhost>();
    for (const id of members.voters) servers.set(id, new ServerGhost(id, true));
    for (const id of members.observers) servers.set(id, new ServerGhost(id, false));
    this.servers = servers;
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
    return this.members.voters.includes(id) && (this.members.hierarchy?.weights.get(id) ?? 1) > 0;
  }

  isQuorum(ids: Iterable<number>): boolean {
    const { voters, hierarchy = null } = this.members;
    return isQuorum(voters, hierarchy, ids);
  }
}
