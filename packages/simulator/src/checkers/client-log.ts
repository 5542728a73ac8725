/** A history, ordered as the rules need it: by connection, by session, by request. */
import type { History, HistoryEntry, Operation } from '../history.ts';
import type { Identity } from './access.ts';

export type Sent = HistoryEntry & { readonly kind: 'sent' };
export type Reply = HistoryEntry & { readonly kind: 'reply' };
export type Event = HistoryEntry & { readonly kind: 'event' };
export type Rearmed = HistoryEntry & { readonly kind: 'rearmed' };
export type Notification = HistoryEntry & { readonly kind: 'notified' };
export type Connected = HistoryEntry & { readonly kind: 'connected' };
export type State = HistoryEntry & { readonly kind: 'state' };

/** One connection of a client, with everything that passed over it, in order. */
export interface ConnectionLog {
  readonly connected: Connected;
  readonly passed: (Sent | Reply | Event | Rearmed)[];
}

export class ClientLog {
  readonly history: History;
  readonly connections: Map<number, ConnectionLog> = new Map();
  /** Connections of each client, in order. */
  readonly byClient: Map<string, ConnectionLog[]> = new Map();
  readonly notifications: Map<Operation, Notification[]> = new Map();
  /** Programs that ended; another one may continue under the same name. */
  readonly ends: State[] = [];
  /** Everything that was sent under a session and an xid; each connection starts its xids again. */
  readonly #sent: Map<string, Sent[]> = new Map();
  readonly #sessions: Set<bigint> = new Set();

  constructor(history: History) {
    this.history = history;
    for (const entry of history.entries) this.#add(entry);
  }

  /** What a session has sent under this xid, in order. */
  sentBy(sessionId: bigint, xid: number): readonly Sent[] {
    return this.#sent.get(`${sessionId}/${xid}`) ?? [];
  }

  /** It was answered by a server without a leader: what that shows may be stale, or never committed. */
  isReadOnly({ connection }: Operation): boolean {
    return this.connections.get(connection)?.connected.isReadOnly ?? false;
  }

  /** The identity that a client has proved. */
  identityOf(client: string): Identity {
    return this.history.identities.get(client) ?? null;
  }

  /** One of these clients had the session. */
  knowsSession(sessionId: bigint): boolean {
    return this.#sessions.has(sessionId);
  }

  #add(entry: HistoryEntry): void {
    switch (entry.kind) {
      case 'connected': {
        const connection = { connected: entry, passed: [] };
        this.connections.set(entry.connection, connection);
        this.#sessions.add(entry.sessionId);
        const list = this.byClient.get(entry.client);
        if (list === undefined) this.byClient.set(entry.client, [connection]);
        else list.push(connection);
        return;
      }
      case 'sent': {
        const connection = this.connections.get(entry.connection);
        if (connection === undefined) return;
        connection.passed.push(entry);
        const key = `${connection.connected.sessionId}/${entry.xid}`;
        const list = this.#sent.get(key);
        if (list === undefined) this.#sent.set(key, [entry]);
        else list.push(entry);
        return;
      }
      case 'reply':
      case 'event':
      case 'rearmed':
        this.connections.get(entry.connection)?.passed.push(entry);
        return;
      case 'notified': {
        const list = this.notifications.get(entry.operation);
        if (list === undefined) this.notifications.set(entry.operation, [entry]);
        else list.push(entry);
        return;
      }
      case 'state':
        if (entry.state === 'closed') this.ends.push(entry);
        return;
      default:
        return;
    }
  }
}

/** How messages name an operation: `client c1: set /a (operation 17)`. */
export function describe({ client, request, id }: Operation): string {
  const path = 'path' in request ? ` ${request.path}` : '';
  return `client ${client}: ${request.op}${path} (operation ${id})`;
}
