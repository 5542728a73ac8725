import { ErrorCode, JuteReader, JuteWriter, type Request, writeRequest } from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';
import type { Client, ClientRequests, ReplyOutput, SessionCreator } from '../request/client.ts';
import type { Pipeline } from '../request/pipeline.ts';
import { WaitingRequests } from '../request/waiting-requests.ts';
import type { ResumingClient } from '../session/revalidations.ts';
import type { Session } from '../session/session.ts';
import type { WatchEvent } from '../watch/watch-manager.ts';

/** A reply of a pipeline. */
export interface PipelineReply {
  readonly xid: number;
  readonly zxid: number;
  readonly error: ErrorCode;
  readonly record: Uint8Array;
}

/** A client of a pipeline: no stream and no frames, only requests and replies. */
export class PipelineClient implements Client, SessionCreator, ResumingClient {
  readonly remote = { ip: new Uint8Array([10, 0, 0, 1]), host: '10.0.0.1', port: 40_000 };
  readonly waiting: ClientRequests = new WaitingRequests();
  readonly identities: readonly Identity[] = [
    { scheme: 'ip', id: '10.0.0.1' },
    { scheme: 'digest', id: 'ann:x' },
  ];
  readonly mustWait = false;
  readonly isShareUsed = false;
  readonly isTurnSpent = false;
  /** `answerWaiting` has to be called for it. */
  awaitsTurn = false;
  readonly replies: PipelineReply[] = [];
  readonly events: WatchEvent[] = [];
  session: Session | null = null;
  closeReason: string | null = null;
  refusal: string | null = null;
  readonly #pipeline: Pipeline;
  readonly output: ReplyOutput = {
    isTooMuch: false,
    beginReply: (xid, zxid, error) => {
      this.#reply = { xid, zxid, error };
      this.#record = new JuteWriter();
      return this.#record;
    },
    endReply: () => {
      if (this.#reply !== null) this.replies.push({ ...this.#reply, record: this.#record.toBytes() });
      this.#reply = null;
    },
    reply: (xid, zxid, record, receivedMs) => {
      const writer = this.output.beginReply(xid, zxid, ErrorCode.ok);
      for (const piece of record.pieces) writer.raw(piece);
      this.output.endReply(receivedMs);
    },
    holdEvents: () => {},
  };
  #reply: { readonly xid: number; readonly zxid: number; readonly error: ErrorCode } | null = null;
  #record = new JuteWriter();

  constructor(pipeline: Pipeline) {
    this.#pipeline = pipeline;
  }

  yieldTurn(): void {
    this.awaitsTurn = true;
  }

  get isOpen(): boolean {
    return this.closeReason === null;
  }

  create(timeoutMs = 10_000): this {
    this.#pipeline.createSession(this, timeoutMs, 0, 0);
    return this;
  }

  send(xid: number, request: Request, nowMs = 0): void {
    const writer = new JuteWriter();
    // Surrounded by other bytes, as a record in the bytes that arrived may be.
    writer.int(-1);
    writeRequest(writer, request);
    const end = writer.position;
    writer.int(-1);
    const reader = new JuteReader(writer.toBytes());
    reader.reset(reader.bytes, 4, end);
    this.#pipeline.receive(this, xid, request.op, reader, nowMs, {
      receivedMs: 0,
      wallMs: 1_700_000_000_000 + nowMs,
    });
  }

  onSessionCreated(session: Session): void {
    this.onSessionResumed(session);
  }

  onSessionResumed(session: Session): void {
    this.session = session;
    this.#pipeline.attach(this, session);
  }

  onSessionRefused(_sessionId: bigint, reason: string): void {
    this.refusal = reason;
    this.close(reason);
  }

  onWatchEvent(event: WatchEvent): void {
    this.events.push(event);
  }

  charge(_units?: number): void {}

  close(reason: string): void {
    if (!this.isOpen) return;
    this.closeReason = reason;
    this.#pipeline.detach(this);
  }

  closeAfterReplies(reason: string): void {
    this.close(reason);
  }
}
