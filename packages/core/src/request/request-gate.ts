import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import type { LocalSessions } from '../session/local-sessions.ts';
import type { Session } from '../session/session.ts';
import { isTxnRequest, needsReplicatedSession, type WritePath } from './write-path.ts';

/** Refuses requests before they enter the pipeline. */
export interface RequestGate {
  /** @returns ok, or the error with which the request is answered, in order */
  refusalOf(session: Session, request: Request, nowMs: number, wallMs: number): ErrorCode;
}

/** Upgrades a local session before it creates its first ephemeral (`localSessionsUpgradingEnabled`). */
export class UpgradeGate implements RequestGate {
  readonly #sessions: LocalSessions;
  readonly #writes: WritePath;
  readonly #isUpgrading: boolean;

  constructor(sessions: LocalSessions, writes: WritePath, isUpgrading: boolean) {
    this.#sessions = sessions;
    this.#writes = writes;
    this.#isUpgrading = isUpgrading;
  }

  refusalOf(session: Session, request: Request, nowMs: number, wallMs: number): ErrorCode {
    if (!session.isLocal || request.op === OpCode.closeSession || !needsReplicatedSession(request)) return ErrorCode.ok;
    if (!this.#isUpgrading) return ErrorCode.ephemeralOnLocalSession;
    this.#sessions.release(session);
    this.#writes.upgradeSession(session, nowMs, wallMs);
    return ErrorCode.ok;
  }
}

/** A server without a quorum answers only reads (ReadOnlyRequestProcessor). */
export const READ_ONLY_GATE: RequestGate = {
  refusalOf(session: Session, request: Request): ErrorCode {
    const isWrite = isTxnRequest(request) || request.op === OpCode.sync;
    const isForeignEnd = request.op === OpCode.closeSession && !session.isLocal;
    return isWrite || isForeignEnd ? ErrorCode.notReadOnly : ErrorCode.ok;
  },
};
