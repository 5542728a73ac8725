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

/** A request that becomes a txn, except those about sessions. */
export type TxnRequest = WriteRequest | MultiRequest | ReconfigRequest;

/**
 * Where writes go: they are proposed here (`Proposer`), or forwarded to the leader (`Forwarder`).
 *
 * A client's write takes its place in the client's queue at once.
 */
export interface WritePath {
  /** Writes that are not yet applied. */
  readonly inFlightCount: number;
  /** True while a long request is being prepared: `advance` must be called at the end of each turn. */
  readonly isPreparing: boolean;
  advance(): void;
  /** @param record positioned at the request's record; its bytes belong to the connection */
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
  /** @returns the id of the future session */
  createSession(timeoutMs: number, nowMs: number, wallMs: number): bigint;
  /** Creates a replicated session with the id of a local one, before any later request. */
  upgradeSession(session: Session, nowMs: number, wallMs: number): void;
}

/** Why a client is closed whose session is now connected to another server. */
export const MOVED = 'its session has moved to another server';

/** True for a request that a local session cannot send to the leader: it creates an ephemeral or closes the session. */
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
