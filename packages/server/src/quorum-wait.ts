import type { Endpoint, EnsembleView, Trace, TraceEvent } from '@meerkat/core';
import type { Member } from '@meerkat/protocol';
import type { Logger } from './logger.ts';

/** Milliseconds before the first line, which an election that goes well never comes to, and between the next ones. */
const FIRST_MS = 1000;
const NEXT_MS = 10_000;

/** Why the last attempt to connect to an address has failed, in words; null when it did not. */
export type FailureAt = (at: Endpoint) => string | null;

/** Says what a server of an ensemble waits for, for as long as it looks for a leader. */
export class QuorumWait implements Trace {
  readonly #view: () => EnsembleView | null;
  readonly #serverId: number;
  readonly #failureAt: FailureAt;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | null = null;

  constructor(view: () => EnsembleView | null, serverId: number, failureAt: FailureAt, logger: Logger) {
    this.#view = view;
    this.#serverId = serverId;
    this.#failureAt = failureAt;
    this.#logger = logger;
  }

  emit(event: TraceEvent): void {
    if (event.kind === 'epoch-established') this.stop();
    else if (event.kind === 'role-changed' && this.#timer === null) this.#waitFor(FIRST_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #waitFor(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#waitFor(NEXT_MS);
      const view = this.#view();
      if (view !== null) this.#logger.log('info', describeWait(view, this.#serverId, this.#failureAt));
    }, ms);
    // What it says is not worth a process that has nothing else to do.
    this.#timer.unref();
  }
}

/** What the server waits for, in words. */
export function describeWait(view: EnsembleView, serverId: number, failureAt: FailureAt): string {
  const { role, leader, membership, connectedServers } = view;
  if (role === 'leading') return 'leads, and waits for a quorum to follow it and to catch up';
  if (leader !== null) return `waits for server ${leader} to lead a quorum, and to catch up with it`;
  const voters = membership.members.filter((member) => member.role === 'participant');
  const missing = voters.filter((voter) => voter.serverId !== serverId && !connectedServers.includes(voter.serverId));
  const reached = voters.length - missing.length;
  const counted = `${reached} of ${voters.length} voting servers ${reached === 1 ? 'is' : 'are'} reachable`;
  const self = voters.some((voter) => voter.serverId === serverId) ? ', this one included' : '';
  if (missing.length === 0) return `looks for a leader: ${counted}${self}`;
  const reasons = missing.map((voter) => describeMissing(voter, failureAt));
  return `looks for a leader: ${counted}${self}; without a connection: ${reasons.join(', ')}`;
}

function describeMissing({ serverId, addresses }: Member, failureAt: FailureAt): string {
  const failures = addresses.flatMap(({ host, electionPort }) => failureAt({ host, port: electionPort }) ?? []);
  return failures.length === 0 ? String(serverId) : `${serverId} (${failures.join(', ')})`;
}
