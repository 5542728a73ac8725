/** What each client saw in which order: C1, C2, W2, and the place of an event before the replies that show its change (W1). */
import { hexZxid } from '@meerkat/protocol';
import type { Operation } from '../history.ts';
import { type ClientLog, type Connected, type ConnectionLog, describe, type Sent, type State } from './client-log.ts';
import type { Violations } from './violation.ts';

export function checkOrder(log: ClientLog, violations: Violations): void {
  for (const [client, connections] of log.byClient) {
    const ends = log.ends.filter((end) => end.client === client);
    const order = new ClientOrder(ends, violations);
    for (const connection of connections) order.check(connection);
  }
}

/** One client, connection by connection. */
class ClientOrder {
  readonly #ends: readonly State[];
  readonly #violations: Violations;
  readonly #repeats = new Repeats();
  /** The largest zxid of a reply in this session. */
  #seen = 0;
  #lastOrder = 0;

  constructor(ends: readonly State[], violations: Violations) {
    this.#ends = ends;
    this.#violations = violations;
  }

  check({ connected, passed }: ConnectionLog): void {
    this.#begin(connected);
    const waiting: number[] = [];
    let replied = 0;
    let lastEvent = 0;
    const report = (atMs: number, invariant: string, message: string): void =>
      this.#violations.reportAt(atMs, invariant, [], `client ${connected.client} at ${connected.server}: ${message}`);
    for (const entry of passed) {
      if (entry.kind === 'sent') {
        waiting.push(entry.xid);
        const fault = this.#repeats.faultOf(entry);
        if (fault !== null) report(entry.atMs, 'C1', fault);
      } else if (entry.kind === 'reply') {
        const expected = waiting.shift();
        if (expected !== entry.xid) {
          report(entry.atMs, 'C1', `the reply to request ${entry.xid} comes where ${expected ?? 'none'} is expected`);
        }
        if (entry.zxid <= 0) continue;
        if (entry.zxid < this.#seen) {
          report(entry.atMs, 'C2', `a reply of ${hexZxid(entry.zxid)} comes after one of ${hexZxid(this.#seen)}`);
        }
        // What a server without a leader shows may never be committed.
        if (!connected.isReadOnly) this.#seen = Math.max(this.#seen, entry.zxid);
        replied = Math.max(replied, entry.zxid);
      } else if (entry.kind === 'event' && entry.zxid !== null && entry.zxid > 0) {
        const what = `the event ${entry.type} ${entry.path} of ${hexZxid(entry.zxid)}`;
        if (entry.zxid < lastEvent) report(entry.atMs, 'W2', `${what} comes after one of ${hexZxid(lastEvent)}`);
        if (entry.zxid <= replied) report(entry.atMs, 'W1', `${what} comes after a reply of ${hexZxid(replied)}`);
        lastEvent = entry.zxid;
      }
    }
  }

  #begin(connected: Connected): void {
    this.#repeats.onConnected();
    // Another program that resumes a session knows nothing of what the previous one has seen.
    const since = this.#lastOrder;
    const isNewProgram = this.#ends.some(({ order }) => order > since && order < connected.order);
    this.#lastOrder = connected.order;
    if (connected.isNewSession || isNewProgram) this.#seen = Math.min(this.#seen, connected.lastZxidSeen);
  }
}

/**
 * A read is resent on the next connection, and keeps its place before later requests: behind them, it would show their
 * effects. A linearizable read starts over with its sync, and writes are not resent.
 */
class Repeats {
  /** When each call sent its first request. */
  readonly #firstOrder = new Map<Operation, number>();
  /** The largest of those on this connection. */
  #newest = 0;

  onConnected(): void {
    this.#newest = 0;
  }

  faultOf({ operation, order }: Sent): string | null {
    if (operation === null) return null;
    const first = this.#firstOrder.get(operation) ?? order;
    this.#firstOrder.set(operation, first);
    const isLate = first < this.#newest && isPlainRead(operation);
    this.#newest = Math.max(this.#newest, first);
    return isLate ? `${describe(operation)} is sent again behind a request that was made later` : null;
  }
}

function isPlainRead({ request }: Operation): boolean {
  return (request.op === 'get' || request.op === 'exists' || request.op === 'children') && !request.isLinearizable;
}
