import type { WatchEventType } from '@meerkat/client';
import {
  EventType,
  getInt,
  JuteReader,
  OpCode,
  readConnectRequest,
  readConnectResponse,
  readReplyHeader,
  readRequest,
  readWatcherEvent,
  type SetWatchesRequest,
  SpecialXid,
} from '@meerkat/protocol';
import type { History, Operation } from './history.ts';
import type { ClientTap } from './virtual-client.ts';

/**
 * Records in the history what one client sends and receives on the wire: which request belongs to which operation, the
 * zxid of each reply, the order of replies and notifications.
 *
 * A client sends its requests in the order in which operations were started, and resends those that are safe to repeat.
 * So a request belongs to the oldest pending operation of its kind and path. After a reconnect a client may also repeat
 * a request that was answered: a linearizable read whose sync was answered on the previous connection.
 */
export class HistoryTap {
  readonly #history: History;
  readonly #client: string;
  readonly #nextConnection: () => number;
  /** Operations that have not ended, oldest first. */
  readonly #pending: Set<Operation> = new Set();
  #sessionId = 0n;

  /** @param nextConnection returns connection numbers that are unique in the history */
  constructor(history: History, client: string, nextConnection: () => number) {
    this.#history = history;
    this.#client = client;
    this.#nextConnection = nextConnection;
  }

  onInvoked(operation: Operation): void {
    this.#pending.add(operation);
  }

  onEnded(operation: Operation): void {
    this.#pending.delete(operation);
  }

  readonly makeTap = (server: string): ClientTap =>
    new ConnectionTap(this.#history, this.#client, this.#nextConnection(), server, {
      claim: (opCode, path, connection, isBehindSync) => this.#claim(opCode, path, connection, isBehindSync),
      takeSession: (sessionId) => {
        const isNew = sessionId !== this.#sessionId;
        this.#sessionId = sessionId;
        return isNew;
      },
    });

  /** Of equal reads, the linearizable ones are those behind a sync of their own. */
  #claim(opCode: number, path: string | null, connection: number, isBehindSync: boolean): Operation | null {
    const alike: Operation[] = [];
    for (const operation of this.#pending) {
      if (operation.connection !== connection && isRequestOf(operation, opCode, path)) alike.push(operation);
    }
    const sameKind = alike.find(
      ({ request }) => !('isLinearizable' in request) || request.isLinearizable === isBehindSync,
    );
    return sameKind ?? alike[0] ?? null;
  }
}

interface Claims {
  claim(opCode: number, path: string | null, connection: number, isBehindSync: boolean): Operation | null;
  /** @returns whether it is another session than before */
  takeSession(sessionId: bigint): boolean;
}

interface SentRequest {
  readonly xid: number;
  readonly operation: Operation | null;
}

class ConnectionTap implements ClientTap {
  readonly #history: History;
  readonly #client: string;
  readonly #connection: number;
  readonly #server: string;
  readonly #claims: Claims;
  readonly #reader = new JuteReader();
  readonly #sent = new Frames();
  readonly #received = new Frames();
  /** Without a reply yet, oldest first. */
  readonly #inFlight: SentRequest[] = [];
  #lastZxidSeen = 0;
  #askedSessionId = 0n;
  #sessionId = 0n;
  /** SASL tokens without a reply; nothing else is sent meanwhile. */
  #saslTokens = 0;
  /** The previous request was a sync that the client sent for a read. */
  #isBehindSync = false;
  #isAsked = false;
  #isAnswered = false;
  #isClosed = false;

  constructor(history: History, client: string, connection: number, server: string, claims: Claims) {
    this.#history = history;
    this.#client = client;
    this.#connection = connection;
    this.#server = server;
    this.#claims = claims;
  }

  onSent(bytes: Uint8Array): void {
    this.#sent.take(bytes, (frame, start, end) => {
      this.#reader.reset(frame, start, end);
      if (this.#isAsked) this.#onRequest();
      else ({ lastZxidSeen: this.#lastZxidSeen, sessionId: this.#askedSessionId } = readConnectRequest(this.#reader));
      this.#isAsked = true;
    });
  }

  onReceived(bytes: Uint8Array): void {
    this.#received.take(bytes, (frame, start, end) => {
      this.#reader.reset(frame, start, end);
      if (this.#isAnswered) this.#onReply();
      else this.#onConnected();
      this.#isAnswered = true;
    });
  }

  onClosed(): void {
    if (this.#isClosed || !this.#isAnswered) return;
    this.#isClosed = true;
    this.#history.note({ kind: 'disconnected', client: this.#client, connection: this.#connection });
  }

  #onConnected(): void {
    const { timeoutMs, sessionId, readOnly: isReadOnly } = readConnectResponse(this.#reader);
    const about = { client: this.#client, connection: this.#connection, server: this.#server };
    if (timeoutMs <= 0) {
      this.#history.note({ kind: 'refused', ...about, sessionId: this.#askedSessionId });
      return;
    }
    this.#sessionId = sessionId;
    const isNewSession = this.#claims.takeSession(sessionId);
    const lastZxidSeen = this.#lastZxidSeen;
    this.#history.note({ kind: 'connected', ...about, sessionId, isNewSession, timeoutMs, lastZxidSeen, isReadOnly });
    // Requests may have been sent behind the connect request, before its reply.
    for (const { operation } of this.#inFlight) if (operation !== null) operation.sessionId = sessionId;
  }

  #onRequest(): void {
    const reader = this.#reader;
    const xid = reader.int();
    const opCode = reader.int();
    const request = readRequest(opCode, reader);
    const about = { client: this.#client, connection: this.#connection };
    if (xid === SpecialXid.setWatches && request !== null && isSetWatches(request)) {
      this.#history.note({
        kind: 'rearmed',
        ...about,
        relativeZxid: request.relativeZxid,
        data: [...request.dataWatches],
        exist: [...request.existWatches],
        child: [...request.childWatches],
        persistent: [...request.persistentWatches],
        recursive: [...request.persistentRecursiveWatches],
      });
    }
    if (xid === SpecialXid.ping) this.#history.note({ kind: 'ping', ...about });
    if (opCode === OpCode.sasl) this.#saslTokens++;
    if (xid <= 0 || opCode === OpCode.sasl) return;
    const path = request !== null && 'path' in request ? request.path : null;
    const operation = this.#claims.claim(opCode, path, this.#connection, this.#isBehindSync);
    this.#isBehindSync = opCode === OpCode.sync && operation === null;
    if (operation !== null) {
      operation.connection = this.#connection;
      operation.sessionId = this.#sessionId;
      operation.server = this.#server;
      operation.xid = xid;
      operation.zxid = null;
      operation.replyOrder = null;
      operation.isWatchCovered = request !== null && 'watch' in request && !request.watch;
    }
    this.#inFlight.push({ xid, operation });
    this.#history.note({ kind: 'sent', ...about, xid, opCode, operation });
  }

  #onReply(): void {
    const { xid, zxid, error: errorCode } = readReplyHeader(this.#reader);
    const about = { client: this.#client, connection: this.#connection };
    if (xid === SpecialXid.notification) {
      const { type, path } = readWatcherEvent(this.#reader);
      const name = EVENT_NAMES.get(type);
      if (name === undefined) return;
      this.#history.note({ kind: 'event', ...about, type: name, path, zxid: zxid > 0 ? zxid : null });
    }
    if (xid === SpecialXid.ping) this.#history.note({ kind: 'pong', ...about });
    if (xid <= 0) return;
    if (this.#saslTokens > 0) {
      this.#saslTokens--;
      return;
    }
    // Not the first in flight: something is wrong, and the checker sees it.
    const at = this.#inFlight.findIndex((sent) => sent.xid === xid);
    const operation = at < 0 ? null : (this.#inFlight.splice(at, 1)[0]?.operation ?? null);
    if (operation !== null) {
      operation.zxid = zxid;
      operation.replyOrder = this.#history.entries.length;
    }
    this.#history.note({ kind: 'reply', ...about, xid, zxid, errorCode, operation });
  }
}

const EVENT_NAMES: ReadonlyMap<number, WatchEventType> = new Map<number, WatchEventType>([
  [EventType.nodeCreated, 'created'],
  [EventType.nodeDeleted, 'deleted'],
  [EventType.nodeDataChanged, 'changed'],
  [EventType.nodeChildrenChanged, 'children'],
]);

const CREATES: ReadonlySet<number> = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
]);

function isSetWatches(request: { readonly op: number }): request is SetWatchesRequest {
  return request.op === OpCode.setWatches || request.op === OpCode.setWatches2;
}

function isRequestOf({ request }: Operation, opCode: number, path: string | null): boolean {
  switch (request.op) {
    case 'create':
      return CREATES.has(opCode) && path === request.path;
    case 'set':
      return opCode === OpCode.setData && path === request.path;
    case 'setAcl':
      return opCode === OpCode.setACL && path === request.path;
    case 'delete':
      return opCode === OpCode.delete && path === request.path;
    case 'get':
      return opCode === OpCode.getData && path === request.path;
    case 'exists':
      return opCode === OpCode.exists && path === request.path;
    case 'children':
      return opCode === OpCode.getChildren2 && path === request.path;
    case 'multi':
      return opCode === OpCode.multi;
    case 'sync':
      return opCode === OpCode.sync && path === request.path;
    case 'watch':
      return opCode === OpCode.addWatch && path === request.path;
    case 'close':
      return opCode === OpCode.closeSession;
  }
}

/** `int length, bytes` again and again, in chunks that end anywhere. */
class Frames {
  #rest: Uint8Array = new Uint8Array(0);

  take(chunk: Uint8Array, onFrame: (bytes: Uint8Array, start: number, end: number) => void): void {
    let bytes = chunk;
    if (this.#rest.length > 0) {
      bytes = new Uint8Array(this.#rest.length + chunk.length);
      bytes.set(this.#rest);
      bytes.set(chunk, this.#rest.length);
    }
    let at = 0;
    while (at + 4 <= bytes.length) {
      const end = at + 4 + getInt(bytes, at);
      if (end > bytes.length) break;
      onFrame(bytes, at + 4, end);
      at = end;
    }
    // The caller may reuse a chunk.
    this.#rest = at === bytes.length ? EMPTY : bytes.slice(at);
  }
}

const EMPTY = new Uint8Array(0);
