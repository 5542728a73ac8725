import { PacketType, type RevalidateRequestPacket } from '@meerkat/protocol';
import { formatSessionId, type Session } from './session.ts';

/** A connection that waits for the revalidation of its session. */
export interface ResumingClient {
  /** False once the connection is closing or closed. */
  readonly isOpen: boolean;
  onSessionResumed(session: Session): void;
  onSessionRefused(sessionId: bigint, reason: string): void;
  closeAfterReplies(reason: string): void;
}

/** Why a connection is closed when its client resumes the session on another one. */
export const SUPERSEDED = 'its session has moved to another connection';

/** Opens sessions of this server's clients. */
export interface SessionOpener {
  open(id: bigint, timeoutMs: number, nowMs: number): Session;
}

interface Question {
  readonly client: ResumingClient;
  readonly timeoutMs: number;
  readonly askedMs: number;
}

/**
 * A learner's questions to its leader about sessions of reconnecting clients (REVALIDATE).
 *
 * The leader answers them in order, after all earlier requests of the session. Other connections of the session to
 * this server are closed when a new one asks, not when it is answered. So their writes are forwarded before the
 * question, and no txn after the answer belongs to them.
 */
export class Revalidations {
  readonly #sessions: SessionOpener;
  readonly #send: (packet: RevalidateRequestPacket) => void;
  readonly #questions = new Map<bigint, Question[]>();

  constructor(sessions: SessionOpener, send: (packet: RevalidateRequestPacket) => void) {
    this.#sessions = sessions;
    this.#send = send;
  }

  /** @param timeoutMs as negotiated with the client */
  ask(client: ResumingClient, sessionId: bigint, timeoutMs: number, askedMs: number): void {
    const questions = this.#questions.get(sessionId);
    for (const older of questions ?? []) older.client.closeAfterReplies(SUPERSEDED);
    if (questions === undefined) this.#questions.set(sessionId, [{ client, timeoutMs, askedMs }]);
    else questions.push({ client, timeoutMs, askedMs });
    this.#send({ type: PacketType.revalidate, sessionId, timeoutMs });
  }

  onRevalidated(sessionId: bigint, isValid: boolean): void {
    const questions = this.#questions.get(sessionId);
    const question = questions?.shift();
    if (questions?.length === 0) this.#questions.delete(sessionId);
    if (question === undefined || !question.client.isOpen) return;
    const { client, timeoutMs, askedMs } = question;
    if (isValid) client.onSessionResumed(this.#sessions.open(sessionId, timeoutMs, askedMs));
    else client.onSessionRefused(sessionId, `session ${formatSessionId(sessionId)} is unknown or has expired`);
  }

  /** The role is over: no more answers arrive. */
  drop(): void {
    this.#questions.clear();
  }
}
