import {
  CreateMode,
  type JuteReader,
  type MultiRequest,
  OpCode,
  type ReconfigRequest,
  type Request,
  type WriteRequest,
} from '@meerkat/protocol';
import type { Received } from '../base/turn.ts';
import type { Session } from '../session/session.ts';
import type { Client } from './client.ts';

/** A request that becomes a txn, apart from those about sessions. */
export type TxnRequest = WriteRequest | MultiRequest | ReconfigRequest;

/**
 * What becomes of a write: it is proposed here (`Proposer`), or forwarded to the server that proposes (`Forwarder`).
 *
 * A client's write takes its place among what the client waits for at once.
 */
export interface WritePath {
  /** Writes on their way: they are not applied yet. */
  readonly inFlightCount: number;
  /** True while a long request is being prepared: `goOn` is to be called at the end of each turn. */
  readonly isPreparing: boolean;
  goOn(): void;
  /** @param record stands where the request's record begins; its bytes are the connection's */
  write(
    client: Client,
    session: Session,
    xid: number,
    request: TxnRequest,
    received: Received,
    record: JuteReader,
  ): void;
  /** The client ends its session: nothing more is accepted from it. */
  closeSession(client: Client, session: Session, xid: number, received: Received): void;
  /** @returns the ticket that the sync waits for; tickets ascend */
  sync(session: Session, xid: number, record: JuteReader): number;
  /** @returns the id of the session that there will be */
  createSession(timeoutMs: number, nowMs: number, wallMs: number): bigint;
  /** A session that only this server knew is created with its id, before whatever is asked next. */
  upgradeSession(session: Session, nowMs: number, wallMs: number): void;
}

/** Why the client of a session that speaks through another server is closed. */
export const MOVED = 'its session has moved to another server';

/** True of a request that a session which only one server knows cannot make: it has an ephemeral created, or ends the session. */
export function needsReplicatedSession(request: Request): boolean {
  switch (request.op) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      return isEphemeral(request.flags);
    case OpCode.multi:
      return request.ops.some((part) => 'flags' in part && isEphemeral(part.flags));
    case OpCode.closeSession:
      return true;
    default:
      return false;
  }
}

function isEphemeral(flags: number): boolean {
  return flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
}

export function isTxnRequest(request: Request): request is TxnRequest {
  switch (request.op) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.setACL:
    case OpCode.multi:
    case OpCode.reconfig:
      return true;
    default:
      return false;
  }
}
