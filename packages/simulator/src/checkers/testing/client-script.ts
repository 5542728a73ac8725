/**
 * Scripts what clients of a small service could have done and seen. The script's defaults violate no invariant; a test
 * changes the one reply, event or txn that it is about.
 */
import { Stat } from '@meerkat/client';
import {
  type Acl,
  type CreateTxn,
  type DeleteTxn,
  JuteReader,
  JuteWriter,
  makeZxid,
  OPEN_ACL,
  OpCode,
  type SetDataTxn,
  type Txn,
  type TxnEntry,
  writeStat,
  type Zxid,
} from '@meerkat/protocol';
import {
  History,
  type MultiWrite,
  type Operation,
  type OperationError,
  type OperationRequest,
  type OperationResult,
} from '../../history.ts';
import { CommittedTree } from '../committed-tree.ts';
import type { FinalState } from '../final-rules.ts';
import { checkHistory } from '../history.ts';
import { statOf } from '../znode-state.ts';

interface Line {
  readonly client: string;
  readonly connection: number;
  readonly sessionId: bigint;
  nextXid: number;
}

export interface ReplyChanges {
  readonly zxid?: number;
  readonly result?: OperationResult;
  readonly error?: OperationError;
}

export class ClientScript {
  nowMs = 0;
  readonly history: History = new History(() => this.nowMs);
  readonly committed: TxnEntry[] = [];
  finalStates: FinalState[] = [];
  readonly #lines: Map<string, Line> = new Map();
  readonly #created: Map<string, number> = new Map();
  #nextConnection = 1;
  #lastSeen: Map<string, number> = new Map();

  /** Numbers of the violated invariants, each once, sorted. */
  get broken(): string[] {
    return [...new Set(this.violations.map(({ invariant }) => invariant))].sort();
  }

  get violations(): ReturnType<typeof checkHistory> {
    return checkHistory(this.history, this.committed, { finalStates: this.finalStates, knowsExpiries: true });
  }

  get lastZxid(): Zxid {
    return this.committed.at(-1)?.header.zxid ?? makeZxid(0, 0);
  }

  get tree(): CommittedTree {
    return new CommittedTree(this.committed, () => {});
  }

  /** Commits a txn. */
  commit(txn: Txn, sessionId = 0n, cxid = 0): number {
    const zxid = makeZxid(1, this.committed.length + 1);
    this.committed.push({ header: { sessionId, cxid, zxid, time: 1000 + this.committed.length }, txn, digest: null });
    return zxid;
  }

  create(
    path: string,
    changes: { data?: string; isEphemeral?: boolean; parentCversion?: number; acl?: readonly Acl[] } = {},
  ): CreateTxn {
    const parent = path.slice(0, path.lastIndexOf('/')) || '/';
    const parentCversion = changes.parentCversion ?? (this.#created.get(parent) ?? 0) + 1;
    this.#created.set(parent, parentCversion);
    const data = new TextEncoder().encode(changes.data ?? '');
    const { acl = OPEN_ACL, isEphemeral = false } = changes;
    return { type: OpCode.create, path, data, acl, isEphemeral, parentCversion };
  }

  /** A client connects; its first connection makes its session. */
  connect(client: string, changes: { sessionId?: bigint; lastZxidSeen?: number; isReadOnly?: boolean } = {}): Line {
    const before = this.#lines.get(client);
    const sessionId = changes.sessionId ?? before?.sessionId ?? BigInt(this.#lines.size + 0x100);
    const isNewSession = before === undefined;
    if (isNewSession) this.commit({ type: OpCode.createSession, timeoutMs: 4000 }, sessionId);
    const connection = this.#nextConnection++;
    const lastZxidSeen = changes.lastZxidSeen ?? this.#lastSeen.get(client) ?? 0;
    const { isReadOnly = false } = changes;
    const line = { client, connection, sessionId, nextXid: 1 };
    this.#lines.set(client, line);
    const about = { client, connection, server: 's1', sessionId };
    this.history.note({ kind: 'connected', ...about, isNewSession, timeoutMs: 4000, lastZxidSeen, isReadOnly });
    return line;
  }

  /** A request leaves. */
  send(client: string, request: OperationRequest): Operation {
    const operation = this.history.invoke(client, request);
    this.sendAgain(operation);
    return operation;
  }

  /** The same request leaves on the connection that the client has now. */
  sendAgain(operation: Operation): void {
    const { client } = operation;
    const line = this.#lines.get(client)!;
    operation.sessionId = line.sessionId;
    operation.connection = line.connection;
    operation.xid = line.nextXid++;
    operation.server = 's1';
    const { connection } = line;
    this.history.note({ kind: 'sent', client, connection, xid: operation.xid, opCode: 0, operation });
  }

  /** The reply arrives and the operation ends. */
  reply(operation: Operation, zxid: number, end: { result: OperationResult } | { error: OperationError }): void {
    const { client, connection, xid } = operation;
    operation.zxid = zxid;
    operation.replyOrder = this.history.entries.length;
    const errorCode = 'error' in end ? -101 : 0;
    this.history.note({ kind: 'reply', client, connection, xid, zxid, errorCode, operation });
    this.#lastSeen.set(client, Math.max(zxid, this.#lastSeen.get(client) ?? 0));
    if ('error' in end) this.history.fail(operation, end.error);
    else this.history.complete(operation, end.result);
  }

  /** A write from the call to its reply. */
  write(client: string, request: OperationRequest, txn: Txn, changes: ReplyChanges = {}): Operation {
    const operation = this.send(client, request);
    const zxid = this.commit(txn, operation.sessionId, operation.xid);
    const end =
      changes.error === undefined
        ? { result: changes.result ?? this.#resultOf(request, txn, zxid) }
        : { error: changes.error };
    this.reply(operation, changes.zxid ?? zxid, end);
    return operation;
  }

  /** Creates a znode. */
  make(
    client: string,
    path: string,
    changes: { data?: string; isEphemeral?: boolean; acl?: readonly Acl[] } = {},
  ): Operation {
    const request = createRequest(path, changes.data, changes.isEphemeral);
    const { acl } = changes;
    return this.write(client, acl === undefined ? request : { ...request, acl }, this.create(path, changes));
  }

  set(client: string, path: string, data: string, version: number): Operation {
    return this.write(client, { op: 'set', path, data, version: -1 }, setTxn(path, data, version));
  }

  /** A read of the newest state, or of what a test specifies. */
  read(
    client: string,
    op: 'get' | 'exists' | 'children',
    path: string,
    changes: ReplyChanges & { hasWatch?: boolean; isLinearizable?: boolean } = {},
  ): Operation {
    const { hasWatch = false, isLinearizable = false } = changes;
    const operation = this.send(client, { op, path, hasWatch, isLinearizable });
    this.answer(operation, changes);
    return operation;
  }

  answer(operation: Operation, changes: ReplyChanges = {}): void {
    const zxid = changes.zxid ?? this.lastZxid;
    if (changes.error !== undefined) this.reply(operation, zxid, { error: changes.error });
    else this.reply(operation, zxid, { result: changes.result ?? this.#readAt(operation.request, zxid) });
  }

  sync(client: string, zxid: number = this.lastZxid): Operation {
    const operation = this.send(client, { op: 'sync', path: '/' });
    this.reply(operation, zxid, { result: { op: 'sync' } });
    return operation;
  }

  event(client: string, type: 'created' | 'deleted' | 'changed' | 'children', path: string, zxid: number | null): void {
    const { connection } = this.#lines.get(client)!;
    this.history.note({ kind: 'event', client, connection, type, path, zxid });
  }

  notified(
    operation: Operation,
    type: 'created' | 'deleted' | 'changed' | 'children' | 'gap',
    path: string,
    zxid: number | null,
  ): void {
    this.history.note({ kind: 'notified', client: operation.client, operation, type, path, zxid });
  }

  rearm(
    client: string,
    relativeZxid: number,
    watches: { data?: string[]; exist?: string[]; child?: string[]; recursive?: string[] },
  ): void {
    const { connection } = this.#lines.get(client)!;
    const { data = [], exist = [], child = [], recursive = [] } = watches;
    const about = { client, connection, relativeZxid, data, exist, child };
    this.history.note({ kind: 'rearmed', ...about, persistent: [], recursive });
  }

  /** All clients are idle while another client changes what is watched, which `changes` does here. */
  stir(changes: () => void): void {
    this.history.note({ kind: 'stir', phase: 'begins', zxid: this.lastZxid });
    changes();
    this.history.note({ kind: 'stir', phase: 'ends', zxid: this.lastZxid });
  }

  /** The program of a client ends. */
  end(client: string): void {
    const { sessionId } = this.#lines.get(client)!;
    const about = { client, sessionId, sameSession: true, reason: 'closed by the user' };
    this.history.note({ kind: 'state', ...about, state: 'closed' });
  }

  /** A server reports that a client's session has ended. */
  refuse(client: string): void {
    const { sessionId } = this.#lines.get(client)!;
    this.history.note({ kind: 'refused', client, connection: this.#nextConnection++, server: 's1', sessionId });
  }

  /** The stat that a client should be told. */
  stat(path: string, zxid: number = this.lastZxid, changes: Partial<ReturnType<typeof statOf>> = {}): Stat {
    const writer = new JuteWriter();
    writeStat(writer, { ...statOf(this.tree.stateAt(path, zxid)!), ...changes });
    return new Stat(new JuteReader(writer.toBytes()));
  }

  #resultOf(request: OperationRequest, txn: Txn, zxid: number): OperationResult {
    switch (request.op) {
      case 'create': {
        const path = 'path' in txn ? txn.path : request.path;
        return { op: 'create', path, stat: this.stat(path, zxid) };
      }
      case 'set':
        return { op: 'set', stat: this.stat(request.path, zxid) };
      case 'multi':
        return { op: 'multi', results: [] };
      default:
        return { op: 'delete' };
    }
  }

  #readAt(request: OperationRequest, zxid: number): OperationResult {
    if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return { op: 'sync' };
    const { op, path } = request;
    const state = this.tree.stateAt(path, zxid);
    if (state === null) return { op: 'exists', stat: null };
    const stat = this.stat(path, zxid);
    if (op === 'get') return { op, data: new TextDecoder().decode(state.data ?? undefined), stat };
    if (op === 'exists') return { op, stat };
    return { op, names: this.tree.childrenAt(path, zxid), stat };
  }
}

type CreateWrite = Extract<MultiWrite, { readonly op: 'create' }>;

export function createRequest(path: string, data = '', isEphemeral = false, isSequential = false): CreateWrite {
  return { op: 'create', path, data, mode: isEphemeral ? 'ephemeral' : 'persistent', isSequential };
}

export function setTxn(path: string, data: string, version: number): SetDataTxn {
  return { type: OpCode.setData, path, data: new TextEncoder().encode(data), version };
}

export function deleteTxn(path: string): DeleteTxn {
  return { type: OpCode.delete, path };
}

export const ERROR_TXN: Txn = { type: OpCode.error, error: -101 };
