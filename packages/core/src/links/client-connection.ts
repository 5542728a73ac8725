import {
  EMPTY_BYTES,
  ErrorCode,
  getInt,
  JuteReader,
  JuteWriter,
  OpCode,
  PASSWORD_BYTES,
  Perm,
  readConnectRequest,
  readRequest,
  SpecialXid,
  writeConnectResponse,
  writeReplyHeader,
  writeWatcherEvent,
} from '@meerkat/protocol';
import type { ByteStream, Identity, StreamEvents } from '../ports.ts';
import type { SessionClient, WaitingRequest } from '../request/client.ts';
import { makeSessionPassword } from '../session/password.ts';
import type { ResumingClient } from '../session/revalidations.ts';
import type { Session } from '../session/session.ts';
import type { WatchEvent } from '../watch/watch-manager.ts';
import type { ConnectionHost } from './connection-host.ts';
import { ConnectionOutput, OUTPUT_BYTES_MAX } from './connection-output.ts';
import { ConnectionStats } from './connection-stats.ts';

/** Where the conversation is. A connection only moves down this list. */
const Phase = {
  /** Waits for a four-letter word or a connect request. */
  opening: 0,
  /** The session is being created, or the leader asked about it: nothing is read until that is decided. */
  awaitingSession: 1,
  established: 2,
  /** What was written may still leave; nothing else happens. */
  closing: 3,
} as const;
type Phase = (typeof Phase)[keyof typeof Phase];

/**
 * One client's connection: takes frames out of the stream of bytes, and puts replies and events into it.
 *
 *     frame := int length, then: ConnectRequest (the first) | RequestHeader, record
 *     RequestHeader := int xid, int type
 *
 * Input that is not acceptable closes this connection, with a reason for the log, and nothing else.
 * Output is bounded: when a client does not read its replies, no further request of it is read; when events alone fill
 * the output, it is disconnected.
 */
export class ClientConnection implements SessionClient, ResumingClient, StreamEvents {
  readonly stats: ConnectionStats;
  readonly openedMs: number;
  readonly waiting: WaitingRequest[] = [];
  identities: readonly Identity[];
  session: Session | null = null;
  readonly #stream: ByteStream;
  readonly #host: ConnectionHost;
  readonly #reader: JuteReader;
  #phase: Phase = Phase.opening;
  /** Bytes that arrived and are not consumed yet. */
  #input: Uint8Array = EMPTY_BYTES;
  #isPaused = false;
  readonly #output: ConnectionOutput;
  /** Where the reply that is being written begins. */
  #replyAt = 0;
  #hasReadOnlyByte = true;
  #closeReason = 'closed by peer';
  #closingSinceMs = 0;
  #isGone = false;

  constructor(stream: ByteStream, host: ConnectionHost) {
    this.#stream = stream;
    this.#host = host;
    this.#output = new ConnectionOutput(stream, host.outputPool);
    this.#reader = new JuteReader(EMPTY_BYTES, host.frameBytesMax);
    this.identities = host.authenticator.initialIdentities(stream.remote);
    this.openedMs = host.nowMs();
    this.stats = new ConnectionStats(host.wallMs());
  }

  get remote(): ByteStream['remote'] {
    return this.#stream.remote;
  }

  get isOpen(): boolean {
    return this.#phase !== Phase.closing;
  }

  get isReading(): boolean {
    return !this.#isPaused && this.isOpen;
  }

  /** True while requests wait unread for the server's sake, not because the client does not take its replies. */
  get isHeldBack(): boolean {
    return this.#isPaused && this.isOpen && !this.isOutputFull;
  }

  get isWriting(): boolean {
    return this.#output.isBackedUp;
  }

  get isOutputFull(): boolean {
    return this.#output.isFull;
  }

  get hasTooMuchOutput(): boolean {
    return this.#output.queuedBytes > OUTPUT_BYTES_MAX;
  }

  /* ------------------------------------------------------------------------------------------- input ---- */

  onBytes(chunk: Uint8Array): void {
    if (!this.isOpen) return;
    this.#consume(this.#input.length === 0 ? chunk : concat(this.#input, chunk));
    this.#host.onConnectionRead();
  }

  onDrain(): void {
    this.#output.onDrain();
    this.goOn();
  }

  /** There is room for replies again: answers what had to wait for it. */
  goOn(): void {
    if (!this.isOpen) return;
    this.#host.pipeline.answerWaiting(this);
    this.resumeReading();
  }

  onClosed(reason: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    if (this.isOpen) {
      this.#closeReason = reason;
      this.#leave();
    }
    this.#host.trace.emit({
      kind: 'connection-closed',
      remote: this.remote,
      sessionId: this.session?.id ?? 0n,
      reason: this.#closeReason,
    });
    this.#host.onClosed(this);
  }

  /** Goes on with the bytes that had to wait. */
  resumeReading(): void {
    if (!this.#isPaused || !this.isOpen || this.#mustHoldBack()) return;
    this.#isPaused = false;
    this.#consume(this.#input);
    if (!this.#isPaused && this.isOpen) this.#stream.resume();
  }

  #consume(bytes: Uint8Array): void {
    let position = 0;
    while (this.isOpen && bytes.length - position >= 4) {
      if (this.#mustHoldBack()) {
        this.#holdBack();
        break;
      }
      const length = getInt(bytes, position);
      if (this.#phase === Phase.opening && this.#answerWord(bytes, position)) break;
      if (length < 0 || length > this.#host.frameBytesMax) {
        this.close(`it announced a frame of ${length} bytes, and jute.maxbuffer allows ${this.#host.frameBytesMax}`);
        break;
      }
      if (!this.#host.isServing) {
        if (this.#phase === Phase.opening && this.#host.mayAwaitServing(this.openedMs)) this.#awaitServing();
        else this.close('the server is not serving yet');
        break;
      }
      const start = position + 4;
      if (bytes.length - start < length) break;
      position = start + length;
      this.#onFrame(bytes, start, position);
    }
    this.#input = position === bytes.length || !this.isOpen ? EMPTY_BYTES : bytes.subarray(position);
  }

  #mustHoldBack(): boolean {
    if (this.#phase === Phase.awaitingSession || this.#host.isStopping) return true;
    if (this.waiting.length > 0 && this.#host.isOverloaded) return true;
    return this.isOutputFull;
  }

  #holdBack(): void {
    this.#isPaused = true;
    this.#stream.pause();
    this.#host.onHeldBack(this);
  }

  /** `resumeReading` comes when clients are served, or when that took too long. */
  #awaitServing(): void {
    this.#isPaused = true;
    this.#stream.pause();
    this.#host.onAwaitingServing(this);
  }

  #onFrame(bytes: Uint8Array, start: number, end: number): void {
    const reader = this.#reader;
    reader.reset(bytes, start, end);
    this.#host.stats.packetsReceived++;
    this.stats.packetsReceived++;
    if (this.#phase === Phase.opening) {
      this.#onConnectRequest(reader);
      return;
    }
    const xid = reader.int();
    const op = reader.int();
    if (reader.failed) {
      this.close('it sent a frame that is too short for a request header');
    } else if (op === OpCode.auth) {
      this.#onAuth(xid, reader);
    } else if (op === OpCode.sasl) {
      this.#onSasl(xid);
    } else {
      this.stats.onRequest(xid, op);
      this.#host.pipeline.receive(this, xid, op, reader, this.#host.nowMs(), this.#host.wallMs());
    }
  }

  /* ------------------------------------------------------------------------------------------ opening ---- */

  /** @returns true when the bytes begin with a four-letter word, answered or still incomplete */
  #answerWord(bytes: Uint8Array, position: number): boolean {
    const word = String.fromCharCode(...bytes.subarray(position, position + 4));
    if (!this.#host.fourLetterWords.isWord(word)) return false;
    let argument: bigint | null = null;
    if (word === 'stmk') {
      if (bytes.length - position < 12) return true;
      this.#reader.reset(bytes, position + 4, position + 12);
      argument = this.#reader.longBig();
    }
    this.#host.stats.packetsReceived++;
    this.stats.packetsReceived++;
    this.#isPaused = true;
    const text = ENCODER.encode(this.#host.fourLetterWords.answer(word, argument));
    this.#write().raw(text);
    this.#host.stats.packetsSent++;
    this.closeAfterReplies(`it asked "${word}"`);
    return true;
  }

  #onConnectRequest(reader: JuteReader): void {
    const request = readConnectRequest(reader);
    if (reader.failed) {
      this.close('its first frame is not a connect request');
      return;
    }
    this.#hasReadOnlyByte = request.hasReadOnlyByte;
    this.stats.lastOperation = 'SESS';
    const decision = this.#host.decideConnect(request);
    switch (decision.kind) {
      case 'close':
        this.close(decision.reason);
        return;
      case 'refuse':
        this.#refuse(request.sessionId, decision.reason);
        return;
      case 'create':
        this.#phase = Phase.awaitingSession;
        this.#host.pipeline.createSession(this, decision.timeoutMs, this.#host.nowMs(), this.#host.wallMs());
        return;
      case 'resume':
        this.#resume(decision.session);
        return;
      case 'revalidate':
        this.#phase = Phase.awaitingSession;
        decision.revalidations.ask(this, request.sessionId, decision.timeoutMs);
        return;
    }
  }

  onSessionCreated(session: Session): void {
    if (this.#phase !== Phase.awaitingSession) return;
    this.#establish(session);
    this.#host.trace.emit({
      kind: 'session-created',
      sessionId: session.id,
      timeoutMs: session.timeoutMs,
      remote: this.remote,
    });
    this.#host.onHeldBack(this);
  }

  onSessionResumed(session: Session): void {
    if (this.#phase !== Phase.awaitingSession) return;
    this.#resume(session);
    this.#host.onHeldBack(this);
  }

  onSessionRefused(sessionId: bigint, reason: string): void {
    if (this.#phase === Phase.awaitingSession) this.#refuse(sessionId, reason);
  }

  #resume(session: Session): void {
    this.#establish(session);
    const { id: sessionId, timeoutMs } = session;
    this.#host.trace.emit({ kind: 'session-resumed', sessionId, timeoutMs, remote: this.remote });
  }

  #refuse(sessionId: bigint, reason: string): void {
    this.#host.trace.emit({ kind: 'session-refused', sessionId, remote: this.remote, reason });
    this.#respond(0n, 0, new Uint8Array(PASSWORD_BYTES));
    this.closeAfterReplies(reason);
  }

  #establish(session: Session): void {
    this.#phase = Phase.established;
    this.session = session;
    this.#host.pipeline.attach(this, session);
    this.#respond(session.id, session.timeoutMs, makeSessionPassword(session.id));
  }

  #respond(sessionId: bigint, timeoutMs: number, password: Uint8Array): void {
    const writer = this.#write();
    const at = writer.beginFrame();
    writeConnectResponse(writer, {
      protocolVersion: 0,
      timeoutMs,
      sessionId,
      password,
      readOnly: false,
      hasReadOnlyByte: this.#hasReadOnlyByte,
    });
    writer.endFrame(at);
    this.#countSent(0, writer.position - at - LENGTH_BYTES);
  }

  /* --------------------------------------------------------------------------- authentication, at once ---- */

  #onAuth(xid: number, reader: JuteReader): void {
    const request = readRequest(OpCode.auth, reader);
    if (request === null || request.op !== OpCode.auth) {
      this.close('its auth packet cannot be read');
      return;
    }
    const { scheme } = request;
    const identities = this.#host.authenticator.authenticate(scheme, request.auth, this.remote);
    if (identities === null) {
      this.#host.stats.authFailures++;
      this.#host.trace.emit({ kind: 'auth-failed', remote: this.remote, scheme });
      this.#replyAtOnce(SpecialXid.auth, ErrorCode.authFailed);
      this.closeAfterReplies(`authentication by "${scheme}" failed`);
      return;
    }
    this.identities = withIdentities(this.identities, identities);
    this.#replyAtOnce(xid, ErrorCode.ok);
  }

  /** A server without a login configuration answers every token with none, and the client goes on without SASL. */
  #onSasl(xid: number): void {
    this.beginReply(xid, 0, ErrorCode.ok).int(-1);
    this.endReply(this.#host.nowMs());
  }

  #replyAtOnce(xid: number, error: ErrorCode): void {
    this.beginReply(xid, 0, error);
    this.endReply(this.#host.nowMs());
  }

  /* ------------------------------------------------------------------------------------------- output ---- */

  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter {
    const writer = this.#write();
    this.#replyAt = writer.beginFrame();
    writeReplyHeader(writer, xid, zxid, error);
    return writer;
  }

  endReply(receivedMs: number): void {
    const writer = this.#output.writer();
    writer.endFrame(this.#replyAt);
    const nowMs = this.#host.nowMs();
    this.stats.onReply(this.#host.pipeline.lastApplied, nowMs - receivedMs, nowMs);
    this.#countSent(nowMs - receivedMs, writer.position - this.#replyAt - LENGTH_BYTES);
  }

  onWatchEvent(event: WatchEvent): void {
    if (!this.isOpen) return;
    if (!this.#host.permission.isAllowed(this.#host.aclOf(event.aclId), Perm.read, this.identities)) return;
    const frame = event.frame ?? encodeEvent(event);
    event.frame = frame;
    this.#write().raw(frame);
    this.stats.packetsSent++;
    this.#host.stats.packetsSent++;
    if (this.hasTooMuchOutput) this.close(`it does not read: ${OUTPUT_BYTES_MAX} bytes of events are queued`);
  }

  /**
   * Hands the turn's output to the stream in one write.
   *
   * @returns true when the output was full and has room again at once: requests may wait for that, and as the stream
   *   took everything no `onDrain` will come
   */
  flush(): boolean {
    if (this.#isGone || this.#output.isEmpty) return false;
    const wasFull = this.#output.isFull;
    this.#output.flush();
    if (!this.isOpen) this.#stream.end();
    return wasFull && !this.#output.isFull && this.isOpen;
  }

  #write(): JuteWriter {
    if (this.#output.isEmpty) this.#host.onConnectionOutput(this);
    return this.#output.writer();
  }

  #countSent(latencyMs: number, bytes: number): void {
    this.stats.packetsSent++;
    this.#host.stats.onReply(latencyMs, bytes);
  }

  /* ------------------------------------------------------------------------------------------ closing ---- */

  /** Closes once everything written so far has left. */
  closeAfterReplies(reason: string): void {
    if (!this.isOpen) return;
    this.#closeReason = reason;
    this.#leave();
    if (this.#output.isEmpty) this.#stream.end();
  }

  /** Closes at once; what is queued is lost. */
  close(reason: string): void {
    if (!this.isOpen) return;
    this.#closeReason = reason;
    this.#leave();
    this.#output.discard();
    this.#stream.destroy();
  }

  /** Called every tick: ends what has taken too long. */
  onTick(nowMs: number, sessionlessTimeoutMs: number): void {
    if (!this.isOpen) {
      if (nowMs - this.#closingSinceMs > LINGER_MS) this.#stream.destroy();
    } else if (this.#phase === Phase.opening && nowMs - this.openedMs > sessionlessTimeoutMs) {
      this.close(`it sent no connect request within ${sessionlessTimeoutMs} ms`);
    }
  }

  #leave(): void {
    this.#phase = Phase.closing;
    this.#closingSinceMs = this.#host.nowMs();
    // Without a session there is nothing in the pipeline to leave, and before the recovery there is no pipeline either.
    if (this.session !== null) this.#host.pipeline.detach(this);
  }
}

/** How long a peer may take to accept the last replies of a connection that is being closed. */
const LINGER_MS = 10_000;
/** The length before a frame, which ZooKeeper does not count as part of a reply. */
const LENGTH_BYTES = 4;

const ENCODER = new TextEncoder();

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

function withIdentities(known: readonly Identity[], added: readonly Identity[]): readonly Identity[] {
  const fresh = added.filter((a) => !known.some((k) => k.scheme === a.scheme && k.id === a.id));
  return fresh.length === 0 ? known : [...known, ...fresh];
}

/** The event as a frame; made once, whoever watches. */
function encodeEvent(event: WatchEvent): Uint8Array {
  const writer = new JuteWriter(64 + event.path.length);
  const at = writer.beginFrame();
  writeReplyHeader(writer, SpecialXid.notification, event.zxid, ErrorCode.ok);
  writeWatcherEvent(writer, event.type, event.path);
  writer.endFrame(at);
  return writer.toBytes();
}
