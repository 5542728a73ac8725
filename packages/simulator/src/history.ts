/**
 * What clients did and saw: one log, in order of occurrence, for checkers that read it at the end.
 *
 *     program ──invoked──► client ──► bytes ──► server
 *     program ◄─completed─ client ◄── bytes ◄── server
 *                                  └ reply, event: as they arrive on the wire, before the program is notified
 *
 * Two entries of the same virtual millisecond still have an order: `order` is the position in the log. An operation
 * that completed at a smaller order than another one was invoked precedes it for every client.
 */
import type { Outcome, Stat, WatchEventType, ZooKeeperCode } from '@meerkat/client';
import type { Acl } from '@meerkat/protocol';
import type { Identity } from './checkers/access.ts';

/** A write inside a multi, or on its own. `version` −1 is any. */
export type MultiWrite =
  | {
      readonly op: 'create';
      readonly path: string;
      readonly data: string;
      readonly mode: 'persistent' | 'ephemeral' | 'container';
      readonly isSequential: boolean;
      /** Milliseconds without a change after which the service may delete it; persistent only. */
      readonly ttlMs?: number | undefined;
      /** Default: all permissions for everyone. */
      readonly acl?: readonly Acl[] | undefined;
    }
  | { readonly op: 'set'; readonly path: string; readonly data: string; readonly version: number }
  | { readonly op: 'delete'; readonly path: string; readonly version: number };

export type WriteRequest =
  | MultiWrite
  | { readonly op: 'setAcl'; readonly path: string; readonly acl: readonly Acl[]; readonly version: number };

export type MultiPart = MultiWrite | { readonly op: 'check'; readonly path: string; readonly version: number };

export interface ReadRequest {
  readonly op: 'get' | 'exists' | 'children';
  readonly path: string;
  /** Leaves a one-shot watch. */
  readonly hasWatch: boolean;
  /** A sync is sent before it in the same round trip. */
  readonly isLinearizable: boolean;
}

export type OperationRequest =
  | WriteRequest
  | ReadRequest
  | { readonly op: 'multi'; readonly parts: readonly MultiPart[] }
  | { readonly op: 'sync'; readonly path: string }
  /** Arms a persistent watch. */
  | { readonly op: 'watch'; readonly path: string; readonly isRecursive: boolean }
  /** Ends the session. */
  | { readonly op: 'close' };

/** Of one write of a multi, in the order of its parts. */
export type PartResult =
  | { readonly op: 'create'; readonly path: string; readonly stat: Stat | null }
  | { readonly op: 'set'; readonly stat: Stat }
  | { readonly op: 'delete' | 'check' };

export type OperationResult =
  | { readonly op: 'create'; readonly path: string; readonly stat: Stat }
  | { readonly op: 'set' | 'setAcl'; readonly stat: Stat }
  | { readonly op: 'get'; readonly data: string; readonly stat: Stat }
  /** null: there is no such znode. */
  | { readonly op: 'exists'; readonly stat: Stat | null }
  | { readonly op: 'children'; readonly names: readonly string[]; readonly stat: Stat }
  | { readonly op: 'multi'; readonly results: readonly PartResult[] }
  | { readonly op: 'delete' | 'sync' | 'watch' | 'close' };

export interface OperationError {
  readonly code: ZooKeeperCode;
  /** `not-applied`: it has certainly changed nothing. `unknown`: it may have, once at most. */
  readonly outcome: Outcome;
  /** Of a multi that was refused: the part that was. null otherwise. */
  readonly failedPart: number | null;
}

/** One call of a client. The fields below `startMs` are filled in as it progresses. */
export interface Operation {
  /** Its position in `History.operations`. */
  readonly id: number;
  /** The client's host. */
  readonly client: string;
  readonly request: OperationRequest;
  readonly startMs: number;
  readonly startOrder: number;
  /** null: it was still pending when the history ended; its outcome is `unknown` then. */
  endMs: number | null;
  endOrder: number | null;
  /** Exactly one of the two once it has ended. */
  result: OperationResult | null;
  error: OperationError | null;
  /** Session of the connection over which it was sent last; 0n when it never was. */
  sessionId: bigint;
  /** Connection over which it was sent last; 0 when it never was. */
  connection: number;
  /** Number of the request on that connection; 0 when it never was sent. */
  xid: number;
  /** Host of the server that it was sent to last; null when it never was. */
  server: string | null;
  /**
   * As the reply's header says. Of a write: the txn's own zxid, of a refused one too unless the server refused it
   * without a txn. Of a read: the last zxid that the server had applied. null while there is no reply.
   */
  zxid: number | null;
  /** The reply's position in the log; null without a reply. */
  replyOrder: number | null;
  /** Of a read with a watch: a persistent one of this client serves it too, and the server was not asked for another. */
  isWatchCovered: boolean;
  /** For a persistent watch: when its program removed it; null while it has not. */
  unwatchedOrder: number | null;
}

interface Entry {
  /** Position in the log. */
  readonly order: number;
  /** Virtual milliseconds. */
  readonly atMs: number;
}

export type HistoryEntry =
  | (Entry & { readonly kind: 'invoked'; readonly operation: Operation })
  | (Entry & { readonly kind: 'completed'; readonly operation: Operation })
  /** A server has accepted a connection, and created or resumed a session. */
  | (Entry & {
      readonly kind: 'connected';
      readonly client: string;
      /** Never used twice in a history. */
      readonly connection: number;
      readonly server: string;
      readonly sessionId: bigint;
      /** The session differs from the client's previous one, or is its first. */
      readonly isNewSession: boolean;
      readonly timeoutMs: number;
      /** The largest zxid that the client had seen when it asked: a server that has less must refuse it. */
      readonly lastZxidSeen: number;
      /** The server has no leader, and answers reads only. */
      readonly isReadOnly: boolean;
    })
  /** A server says that the session is over. */
  | (Entry & {
      readonly kind: 'refused';
      readonly client: string;
      readonly connection: number;
      readonly server: string;
      /** The session that the client asked for; 0n for a new one. */
      readonly sessionId: bigint;
    })
  | (Entry & { readonly kind: 'disconnected'; readonly client: string; readonly connection: number })
  /** A request has left, xid > 0 (neither ping nor setWatches). `operation` null: sent by the client for itself. */
  | (Entry & {
      readonly kind: 'sent';
      readonly client: string;
      readonly connection: number;
      readonly xid: number;
      readonly opCode: number;
      readonly operation: Operation | null;
    })
  /** A reply has arrived, xid > 0. */
  | (Entry & {
      readonly kind: 'reply';
      readonly client: string;
      readonly connection: number;
      readonly xid: number;
      readonly zxid: number;
      /** Error code of the protocol; 0 is ok. */
      readonly errorCode: number;
      readonly operation: Operation | null;
    })
  /** A ping has left, or its answer has arrived. */
  | (Entry & { readonly kind: 'ping' | 'pong'; readonly client: string; readonly connection: number })
  /** setWatches or setWatches2 has left with what the client still waits for, and from which zxid on. */
  | (Entry & {
      readonly kind: 'rearmed';
      readonly client: string;
      readonly connection: number;
      readonly relativeZxid: number;
      readonly data: readonly string[];
      readonly exist: readonly string[];
      readonly child: readonly string[];
      readonly persistent: readonly string[];
      readonly recursive: readonly string[];
    })
  /** A notification of a watch has arrived. */
  | (Entry & {
      readonly kind: 'event';
      readonly client: string;
      readonly connection: number;
      readonly type: WatchEventType;
      readonly path: string;
      /** null when the server does not say (a replayed event). */
      readonly zxid: number | null;
    })
  /** The client has notified its program: for the one-shot watch of `operation`, or for a persistent one. */
  | (Entry & {
      readonly kind: 'notified';
      readonly client: string;
      readonly operation: Operation;
      readonly type: WatchEventType | 'gap';
      /** '' for a gap. */
      readonly path: string;
      readonly zxid: number | null;
    })
  | (Entry & {
      readonly kind: 'state';
      readonly client: string;
      readonly state: string;
      readonly sessionId: bigint;
      readonly sameSession: boolean;
      readonly reason: string;
    })
  /** A leader has expired a session; its closeSession may still never be committed. */
  | (Entry & { readonly kind: 'expired'; readonly sessionId: bigint })
  /**
   * All clients are idle: every request is answered, and all are connected. Between `begins` and `ends` another client
   * changes every znode that they could watch; `zxid` is the last one committed by then.
   */
  | (Entry & { readonly kind: 'stir'; readonly phase: 'begins' | 'ends'; readonly zxid: number })
  /** The world has done something to a server, a link or a disk; in words. */
  | (Entry & { readonly kind: 'fault'; readonly what: string });

/** Each member of a union without some of its keys. */
type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;

/** An entry that has no position in the log yet. */
export type Note = Without<HistoryEntry, 'order' | 'atMs'>;

export class History {
  readonly entries: HistoryEntry[] = [];
  readonly operations: Operation[] = [];
  /** The identity that each client has proved, on all of its connections. */
  readonly identities: Map<string, Identity> = new Map();
  readonly #nowMs: () => number;
  readonly #listeners: ((entry: HistoryEntry) => void)[] = [];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Calls `onEntry` for each entry from now on, as it is written. */
  listen(onEntry: (entry: HistoryEntry) => void): void {
    this.#listeners.push(onEntry);
  }

  note(what: Note): void {
    // The caller has created `what` for this call, so it can be extended in place.
    const entry = Object.assign(what, { order: this.entries.length, atMs: this.#nowMs() }) as HistoryEntry;
    this.entries.push(entry);
    for (const listener of this.#listeners) listener(entry);
  }

  invoke(client: string, request: OperationRequest): Operation {
    const operation: Operation = {
      id: this.operations.length,
      client,
      request,
      startMs: this.#nowMs(),
      startOrder: this.entries.length,
      endMs: null,
      endOrder: null,
      result: null,
      error: null,
      sessionId: 0n,
      connection: 0,
      xid: 0,
      server: null,
      zxid: null,
      replyOrder: null,
      isWatchCovered: false,
      unwatchedOrder: null,
    };
    this.operations.push(operation);
    this.note({ kind: 'invoked', operation });
    return operation;
  }

  complete(operation: Operation, result: OperationResult): void {
    operation.result = result;
    this.#end(operation);
  }

  /** A program removes a persistent watch. */
  unwatch(operation: Operation): void {
    operation.unwatchedOrder ??= this.entries.length;
  }

  fail(operation: Operation, error: OperationError): void {
    operation.error = error;
    this.#end(operation);
  }

  #end(operation: Operation): void {
    operation.endMs = this.#nowMs();
    operation.endOrder = this.entries.length;
    this.note({ kind: 'completed', operation });
  }
}
