import {
  type CloseSessionTxn,
  CreateMode,
  type CreateRequest,
  ErrorCode,
  type ForwardedRequestPacket,
  JuteReader,
  OpCode,
  readRequest,
  type Txn,
  type TxnEntry,
} from '@meerkat/protocol';
import { ApacheDatabase, parentOf } from './apache-database.ts';
import type { LogRecord } from './apache-disk.ts';
import type { ApacheHost } from './apache-host.ts';

interface TrackedSession {
  readonly timeoutMs: number;
  readonly expiresMs: number;
  readonly isClosing: boolean;
  /** What created or revalidated it last: a handler, null for the leader itself, undefined for none yet. */
  readonly owner: object | null | undefined;
}

/**
 * Where a 3.8.0 leader turns requests into txns (PrepRequestProcessor), taking outstanding proposals into account; and
 * its sessions, which only the leader expires. Supports creates, deletes, data, ACLs and sessions; a multi is refused.
 */
export class ApachePreparer {
  readonly #host: ApacheHost;
  /** The database as it will be once all proposals are committed. */
  readonly #prepared: ApacheDatabase;
  readonly #sessions = new Map<bigint, TrackedSession>();

  constructor(host: ApacheHost) {
    this.#host = host;
    this.#prepared = new ApacheDatabase(0, host.configText);
    this.#prepared.readSnapshot(host.database.writeSnapshot());
    this.#prepared.lastProcessedZxid = host.database.lastProcessedZxid;
    for (const [sessionId, timeoutMs] of host.database.sessions) this.#track(sessionId, timeoutMs, undefined);
  }

  onProposed(record: LogRecord, entry: TxnEntry): void {
    this.#prepared.apply(record, entry);
  }

  /** @returns the txn to propose, possibly an error; null for a request that takes no zxid */
  prepare(request: ForwardedRequestPacket, owner: object | null): Txn | null {
    const { op, sessionId } = request;
    switch (op) {
      case OpCode.createSession: {
        const reader = new JuteReader(request.body);
        const timeoutMs = reader.int();
        if (reader.failed) this.#host.complain('createSession without a timeout');
        this.#track(sessionId, timeoutMs, owner);
        return { type: op, timeoutMs };
      }
      case OpCode.closeSession:
        return this.closeSession(sessionId);
      case OpCode.check:
        this.#host.complain('REQUEST check: 3.8.0 proposes a txn of type 13, which no server can decode');
        return errorTxn(ErrorCode.unimplemented);
      default: {
        const problem = this.#checkSession(sessionId, owner);
        return problem !== null ? errorTxn(problem) : this.#prepareWrite(request);
      }
    }
  }

  closeSession(sessionId: bigint): CloseSessionTxn {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined) this.#sessions.set(sessionId, { ...session, isClosing: true });
    return { type: OpCode.closeSession, paths: this.#prepared.ephemeralsOf(sessionId) };
  }

  revalidate(sessionId: bigint, timeoutMs: number, owner: object): boolean {
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.isClosing) return false;
    this.#track(sessionId, timeoutMs, owner);
    return true;
  }

  touch(sessionId: bigint, timeoutMs: number): void {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined && !session.isClosing) this.#track(sessionId, timeoutMs, session.owner);
  }

  /** Sessions that have been inactive for their timeout, unless they are being closed already. */
  takeExpired(): readonly bigint[] {
    const { nowMs } = this.#host.timeline;
    return [...this.#sessions].filter(([, s]) => !s.isClosing && s.expiresMs <= nowMs).map(([id]) => id);
  }

  #track(sessionId: bigint, timeoutMs: number, owner: object | null | undefined): void {
    const { tickTimeMs } = this.#host.timings;
    const expiresMs = (Math.floor((this.#host.timeline.nowMs + timeoutMs) / tickTimeMs) + 1) * tickTimeMs;
    this.#sessions.set(sessionId, { timeoutMs, expiresMs, isClosing: false, owner });
  }

  #checkSession(sessionId: bigint, owner: object | null): ErrorCode | null {
    const session = this.#sessions.get(sessionId);
    if (session === undefined || session.isClosing) return ErrorCode.sessionExpired;
    if (session.owner === undefined) this.#sessions.set(sessionId, { ...session, owner });
    else if (session.owner !== owner) return ErrorCode.sessionMoved;
    return null;
  }

  #prepareWrite({ op, body, sessionId }: ForwardedRequestPacket): Txn {
    const request = readRequest(op, new JuteReader(body));
    if (request === null || !('op' in request)) return errorTxn(ErrorCode.marshallingError);
    const { znodes } = this.#prepared;
    switch (request.op) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
        return this.#prepareCreate(request, sessionId);
      case OpCode.delete: {
        const node = znodes.get(request.path);
        if (node === undefined) return errorTxn(ErrorCode.noNode);
        if (request.version !== -1 && request.version !== node.stat.version) return errorTxn(ErrorCode.badVersion);
        if (this.#prepared.hasChildren(request.path)) return errorTxn(ErrorCode.notEmpty);
        return { type: OpCode.delete, path: request.path };
      }
      case OpCode.setData: {
        const path = request.path === '/' ? '' : request.path;
        const stat = znodes.get(path)?.stat;
        if (stat === undefined) return errorTxn(ErrorCode.noNode);
        if (request.version !== -1 && request.version !== stat.version) return errorTxn(ErrorCode.badVersion);
        return { type: OpCode.setData, path: request.path, data: request.data, version: stat.version + 1 };
      }
      case OpCode.setACL: {
        const stat = znodes.get(request.path)?.stat;
        if (stat === undefined) return errorTxn(ErrorCode.noNode);
        if (request.version !== -1 && request.version !== stat.aversion) return errorTxn(ErrorCode.badVersion);
        return { type: OpCode.setACL, path: request.path, acl: request.acl, version: stat.aversion + 1 };
      }
      default:
        return errorTxn(ErrorCode.unimplemented);
    }
  }

  #prepareCreate(request: CreateRequest, sessionId: bigint): Txn {
    const { znodes } = this.#prepared;
    const parent = znodes.get(parentOf(request.path));
    if (parent === undefined) return errorTxn(ErrorCode.noNode);
    const { flags, data, acl } = request;
    const isSequential = flags === CreateMode.persistentSequential || flags === CreateMode.ephemeralSequential;
    const counter = String(parent.stat.cversion).padStart(10, '0');
    const path = isSequential ? `${request.path}${counter}` : request.path;
    if (znodes.has(path)) return errorTxn(ErrorCode.nodeExists);
    if (parent.stat.ephemeralOwner > 0n) return errorTxn(ErrorCode.noChildrenForEphemerals);
    const parentCversion = parent.stat.cversion + 1;
    if (request.op === OpCode.createContainer) return { type: request.op, path, data, acl, parentCversion };
    const isEphemeral = flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
    if (isEphemeral && !this.#sessions.has(sessionId)) return errorTxn(ErrorCode.sessionExpired);
    const type = request.op === OpCode.create2 ? OpCode.create2 : OpCode.create;
    return { type, path, data, acl, isEphemeral, parentCversion };
  }
}

function errorTxn(error: ErrorCode): Txn {
  return { type: OpCode.error, error };
}
