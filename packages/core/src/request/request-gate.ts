import { ErrorCode, OpCode, type Request } from '@meerkat/protocol';
import type { LocalSessions } from '../session/local-sessions.ts';
import type { Session } from '../session/session.ts';
import { isTxnRequest, needsReplicatedSession, type WritePath } from './write-path.ts';

/** What stands before the journey of a request where not everything may be asked by everybody. */
export interface RequestGate {
  /** @returns ok, or with what a request is answered in its turn */
  refusalOf(session: Session, request: Request, nowMs: number, wallMs: number): ErrorCode;
}

/** Makes a session of this server alone one of the ensemble before it has its first ephemeral (`localSessionsUpgradingEnabled`). */
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

/** A server without a quorum answers reads alone (ReadOnlyRequestProcessor). */
export const READ_ONLY_GATE: RequestGate = {
  refusalOf(session: Session, request: Request): ErrorCode {
    const isWrite = isTxnRequest(request) || request.op === OpCode.sync;
    const isForeignEnd = request.op === OpCode.closeSession && !session.isLocal;
    return isWrite || isForeignEnd ? ErrorCode.notReadOnly : ErrorCode.ok;
  },
};
