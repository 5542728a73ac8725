import type { Asked, LiveChecker } from './checkers/index.ts';
import type { HistoryEntry } from './history.ts';

/** A client's connection to a server, and its unanswered requests. */
interface Contact {
  readonly server: number;
  readonly sessionId: bigint;
  readonly requests: Map<number, Asked>;
  readonly pings: Asked[];
}

/** Derives from a history when servers were asked and when they answered, and reports it to the checker. */
export class ClientContact {
  readonly #checker: LiveChecker;
  readonly #serverIdOf: (host: string) => number | null;
  readonly #contacts: Map<number, Contact> = new Map();

  constructor(checker: LiveChecker, serverIdOf: (host: string) => number | null) {
    this.#checker = checker;
    this.#serverIdOf = serverIdOf;
  }

  readonly onEntry = (entry: HistoryEntry): void => {
    if (entry.kind === 'connected') {
      const server = this.#serverIdOf(entry.server);
      if (server === null) return;
      const { connection, sessionId } = entry;
      this.#contacts.set(connection, { server, sessionId, requests: new Map(), pings: [] });
      return;
    }
    if (!('connection' in entry)) return;
    const contact = this.#contacts.get(entry.connection);
    if (contact === undefined) return;
    const { server, sessionId, requests, pings } = contact;
    switch (entry.kind) {
      case 'sent':
        requests.set(entry.xid, this.#checker.onAsked(server, sessionId));
        return;
      case 'ping':
        pings.push(this.#checker.onAsked(server, sessionId));
        return;
      case 'reply': {
        const asked = requests.get(entry.xid);
        requests.delete(entry.xid);
        if (asked !== undefined) this.#checker.onAnswered(sessionId, asked);
        return;
      }
      case 'pong': {
        const asked = pings.shift();
        if (asked !== undefined) this.#checker.onAnswered(sessionId, asked);
        return;
      }
      case 'disconnected':
        this.#contacts.delete(entry.connection);
        return;
      default:
        return;
    }
  };
}
