import type { EnsembleView, Trace, TraceEvent } from '@meerkat/core';
import type { Logger } from './logger.ts';

/** Milliseconds before the first line, which an election that goes well never comes to, and between the next ones. */
const FIRST_MS = 1000;
const NEXT_MS = 10_000;

/** Says what a server of an ensemble waits for, for as long as it looks for a leader. */
export class QuorumWait implements Trace {
  readonly #view: () => EnsembleView | null;
  readonly #serverId: number;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | null = null;

  constructor(view: () => EnsembleView | null, serverId: number, logger: Logger) {
    this.#view = view;
    this.#serverId = serverId;
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
      if (view !== null) this.#logger.log('info', describeWait(view, this.#serverId));
    }, ms);
    // What it says is not worth a process that has nothing else to do.
    this.#timer.unref();
  }
}

/** What the server waits for, in words. */
export function describeWait({ role, leader, membership, connectedServers }: EnsembleView, serverId: number): string {
  if (role === 'leading') return 'leads, and waits for a quorum to follow it and to catch up';
  if (leader !== null) return `waits for server ${leader} to lead a quorum, and to catch up with it`;
  const voters = membership.members.filter((member) => member.role === 'participant').map((member) => member.serverId);
  const missing = voters.filter((id) => id !== serverId && !connectedServers.includes(id));
  const reached = voters.length - missing.length;
  const counted = `${reached} of ${voters.length} voting servers ${reached === 1 ? 'is' : 'are'} reachable`;
  const self = voters.includes(serverId) ? ', this one included' : '';
  return `looks for a leader: ${counted}${self}${missing.length === 0 ? '' : `; without a connection: ${missing.join(', ')}`}`;
}
