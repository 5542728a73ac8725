import { EMPTY_BYTES, ErrorCode, getInt, isClientOp, JuteReader, OpCode, Perm } from '@meerkat/protocol';
import type { ByteStream, Identity, StreamEvents } from '../base/ports.ts';
import type { Client, ClientRequests } from '../request/client.ts';
import { LIMIT_REACHED } from '../request/serving-limits.ts';
import { WaitingRequests } from '../request/waiting-requests.ts';
import type { Session } from '../session/session.ts';
import type { WatchEvent } from '../watch/watch-manager.ts';
import { findWord, INCOMPLETE } from './asked-word.ts';
import { ClientAuthentication } from './client-authentication.ts';
import { ClientInput } from './client-input.ts';
import { ClientOpening } from './client-opening.ts';
import { ClientOutput } from './client-output.ts';
import type { ConnectionHost } from './connection-host.ts';
import { LENGTH_BYTES } from './connection-output.ts';
import { ConnectionStats } from './connection-stats.ts';
import { encodeEvent } from './event-frame.ts';
import type { ThrottledInput } from './throttled-input.ts';
import { isTlsHello } from './tls-hello.ts';
import { TurnShare } from './turn-share.ts';
import { WordAnswer } from './word-answer.ts';

/** Phase of a connection; it only moves down this list. */
const Phase = {
  /** Waits for a four-letter word or a connect request. */
  opening: 0,
  /** A four-letter word is being answered: nothing more is read. */
  answering: 1,
  /** Its session is being created or checked: nothing is read until then. */
  awaitingSession: 2,
  established: 3,
  /** What was written may still leave; nothing else happens. */
  closing: 4,
} as const;
type Phase = (typeof Phase)[keyof typeof Phase];

/**
 * One client's connection: decodes frames from the stream, and writes replies and events to it.
 *
 *     frame := int length, then: ConnectRequest (the first) | RequestHeader, record
 *     RequestHeader := int xid, int type
 *
 * Invalid input closes this connection, with a logged reason, and has no other effect.
 * Output is bounded: while a client does not read its replies, no further requests of it are read; when events alone
 * fill the output, it is disconnected. Waiting requests are bounded, too: a client that waits for replies is not read
 * while a megabyte of its requests waits, including writes, or while the server owes more than `globalOutstandingLimit`
 * replies in total.
 */
export class ClientConnection implements Client, StreamEvents {
  readonly stats: ConnectionStats;
  readonly openedMs: number;
  readonly waiting: ClientRequests = new WaitingRequests();
  session: Session | null = null;
  readonly output: ClientOutput<ClientConnection>;
  readonly #stream: ByteStream;
  readonly #host: ConnectionHost<ClientConnection>;
  readonly #reader: JuteReader;
  #phase: Phase = Phase.opening;
  readonly #input: ClientInput;
  readonly #opening: ClientOpening<ClientConnection>;
  /** The answer to a four-letter word that is being sent. */
  #answer: WordAnswer | null = null;
  #closeReason = 'closed by peer';
  /** When it started to wait for the peer to take the last replies, or the next piece of a four-letter answer. */
  #waitsSinceMs = 0;
  #isGone = false;
  readonly #authentication: ClientAuthentication;
  readonly #share: TurnShare = new TurnShare();
  /** True while it continues what had to wait for a turn. */
  #isItsTurn = false;

  constructor(stream: ByteStream, host: ConnectionHost<ClientConnection>) {
    this.#stream = stream;
    this.#host = host;
    this.#input = new ClientInput(stream);
    this.#reader = new JuteReader(EMPTY_BYTES, host.frameBytesMax);
    this.#authentication = new ClientAuthentication(stream, host, this);
    this.openedMs = host.turn.nowMs();
    this.stats = new ConnectionStats(host.turn.wallMs());
    this.output = new ClientOutput(this, stream, host);
    this.#opening = new ClientOpening(this, this.output, host);
  }

  get remote(): ByteStream['remote'] {
    return this.#stream.remote;
  }

  get identities(): readonly Identity[] {
    return this.#authentication.identities;
  }

  get isSecure(): boolean {
    return this.#stream.isSecure ?? false;
  }

  get isOpen(): boolean {
    return this.#phase !== Phase.closing;
  }

  get isReading(): boolean {
    return !this.#input.isPaused && this.isOpen;
  }

  get isAnswering(): boolean {
    return this.#phase === Phase.answering;
  }

  /** True while requests stay unread because of the server's load, not because the client does not read its replies. */
  get isHeldBack(): boolean {
    return this.#input.isPaused && this.isOpen && !this.output.isFull;
  }

  get mustWait(): boolean {
    return this.#share.isUsed || this.output.isFull;
  }

  get isShareUsed(): boolean {
    return this.#share.isUsed;
  }

  get isTurnSpent(): boolean {
    const { work, connections } = this.#host;
    return !this.#isItsTurn && work.turnUnits >= connections.turnUnits;
  }

  yieldTurn(): void {
    if (this.#share.markUsed()) this.#host.connections.onShareUsed(this);
  }

  charge(units: number): void {
    const { work, turn, connections } = this.#host;
    if (this.#share.add(work.charge(units), turn.number, connections.turnShare)) connections.onShareUsed(this);
  }

  /* ------------------------------------------------------------------------------------------- input ---- */

  onBytes(chunk: Uint8Array): void {
    if (!this.isOpen) return;
    this.#input.append(chunk);
    this.#consume();
    this.#host.connections.onRead();
  }

  onDrain(): void {
    this.output.onDrain();
    if (this.waiting.hasLongReads && this.isTurnSpent) this.yieldTurn();
    else this.#advance();
  }

  /** Called for its next turn: its share is renewed, or there is room for replies again. */
  onTurn(): void {
    this.#share.renew();
    this.#isItsTurn = true;
    this.#advance();
    this.#isItsTurn = false;
  }

  /** Answers requests that had to wait for room or for a turn. */
  #advance(): void {
    if (!this.isOpen) return;
    if (this.#answer !== null) {
      this.#sendAnswer(this.#answer);
      return;
    }
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
    this.#host.connections.onClosed(this);
  }

  /** Continues with input that had to wait. */
  resumeReading(): void {
    if (!this.#input.isPaused || !this.isOpen || this.#mustHoldBack()) return;
    this.#input.readOn();
    this.#consume();
    if (!this.#input.isPaused && this.isOpen) this.#input.resume();
  }

  #consume(): void {
    const input = this.#input.buffer;
    this.#input.expect(0);
    while (this.isOpen && input.end - input.start >= LENGTH_BYTES) {
      if (this.#mustHoldBack()) {
        this.#holdBack();
        break;
      }
      const { bytes, start, end } = input;
      const length = getInt(bytes, start);
      if (this.#phase === Phase.opening && this.#answerWord(bytes, start, end)) break;
      if (length < 0 || length > this.#host.frameBytesMax) {
        this.close(
          this.#phase === Phase.opening && isTlsHello(length)
            ? 'it speaks TLS, and this port does not: the client needs secureClientPort, or the server client.portUnification=true'
            : `it announced a frame of ${length} bytes, and jute.maxbuffer allows ${this.#host.frameBytesMax}`,
        );
        break;
      }
      const isLarge = length >= this.#host.connections.largeRequestBytes;
      if (isLarge && !this.#hasRoomForLarge(length)) break;
      if (!this.#host.isServing) {
        if (this.#phase === Phase.opening && this.#host.mayAwaitServing(this.openedMs)) this.#awaitServing();
        else this.close('the server is not serving yet');
        break;
      }
      const next = start + LENGTH_BYTES + length;
      if (next > end) {
        this.#input.expect(LENGTH_BYTES + length);
        break;
      }
      if (length >= LONG_FRAME_BYTES && this.session !== null && this.isTurnSpent) {
        this.yieldTurn();
        this.#holdBack();
        break;
      }
      input.start = next;
      if (isLarge) this.#host.connections.onLargeComplete(this);
      const { throttled } = this.#input;
      const waitedMs = throttled === null ? 0 : this.#endWait(throttled, next - start);
      this.#onFrame(bytes, start + LENGTH_BYTES, next, waitedMs);
      this.charge(FRAME_UNITS + (length >> BYTES_PER_UNIT_SHIFT));
    }
    // Do not retain a chunk that has been read completely.
    if (input.isEmpty || !this.isOpen) input.clear();
  }

  #hasRoomForLarge(length: number): boolean {
    if (this.#host.connections.admitLarge(this, length)) return true;
    const reason = `there is no room for a request of ${length} bytes: largeRequestMaxBytes`;
    this.#host.refuseLargeRequest(reason);
    this.close(LIMIT_REACHED + reason);
    return false;
  }

  #mustHoldBack(): boolean {
    if (this.#phase === Phase.awaitingSession || this.#phase === Phase.answering || this.#host.isStopping) return true;
    if (this.#host.connections.gate.isShut && this.session !== null) return true;
    if (this.session !== null && this.#host.isThrottled) return true;
    if (this.waiting.length > 0 && this.waiting.isFull(this.#host.sessionRequestsMax, this.#host.isOverloaded))
      return true;
    return this.mustWait || this.#pauses();
  }

  #pauses(): boolean {
    const { pausedUntilMs } = this.waiting;
    if (pausedUntilMs === 0 || this.#host.turn.nowMs() >= pausedUntilMs) return false;
    this.#host.connections.onPause(pausedUntilMs);
    return true;
  }

  #holdBack(): void {
    const { isThrottled, requestWaits, turn } = this.#host;
    if (this.session !== null && isThrottled) this.#input.pauseThrottled(requestWaits, turn);
    else this.#input.pause();
    this.#host.connections.onHeldBack(this);
  }

  #endWait(throttled: ThrottledInput, bytes: number): number {
    return this.session === null ? 0 : throttled.take(bytes, this.#host.turn.nowMs(), this.session.timeoutMs);
  }

  /** `resumeReading` is called when the server starts serving, or when that takes too long. */
  #awaitServing(): void {
    this.#input.pause();
    this.#host.connections.onAsked(this);
    this.#host.connections.onAwaitingServing(this);
  }

  /** @param waitedMs non-zero if the request has waited too long to be carried out */
  #onFrame(bytes: Uint8Array, start: number, end: number, waitedMs: number): void {
    const reader = this.#reader;
    reader.reset(bytes, start, end);
    this.#host.stats.packetsReceived++;
    this.stats.packetsReceived++;
    if (this.#phase === Phase.opening) {
      this.#phase = Phase.awaitingSession;
      this.#opening.onConnectRequest(reader);
      return;
    }
    const xid = reader.int();
    const op = reader.int();
    if (reader.failed) {
      this.close('it sent a frame that is too short for a request header');
    } else if (op === OpCode.auth) {
      this.#authentication.onAuth(xid, reader);
    } else if (op === OpCode.sasl) {
      this.charge(SASL_UNITS);
      this.#authentication.onSasl(xid, reader);
    } else if (this.#authentication.isBarred) {
      this.#authentication.refuse(xid);
    } else {
      this.stats.onRequest(xid, op);
      const { pipeline, turn } = this.#host;
      if (waitedMs > 0 && isThrottled(op)) {
        this.#host.refuseLateRequest(waitedMs);
        pipeline.refuse(this, xid, ErrorCode.throttledOp, turn.nowMs(), turn.received());
        return;
      }
      pipeline.receive(this, xid, op, reader, turn.nowMs(), turn.received());
    }
  }

  /* ------------------------------------------------------------------------------------------ opening ---- */

  /** @returns true when the input starts with a four-letter word, complete or not */
  #answerWord(bytes: Uint8Array, start: number, end: number): boolean {
    const asked = findWord(this.#host.fourLetterWords, bytes, start, end);
    if (asked === null || asked === INCOMPLETE) return asked === INCOMPLETE;
    this.#host.stats.packetsReceived++;
    this.stats.packetsReceived++;
    this.#phase = Phase.answering;
    this.#host.connections.onAsked(this);
    this.#input.pause();
    this.#closeReason = `it asked "${asked.word}"`;
    this.#answer = new WordAnswer(this.#host.fourLetterWords.answer(asked.word, asked.argument));
    this.#sendAnswer(this.#answer);
    return true;
  }

  #sendAnswer(answer: WordAnswer): void {
    this.#waitsSinceMs = this.#host.turn.nowMs();
    if (!answer.sendTo(this)) return;
    this.#host.stats.packetsSent++;
    this.closeAfterReplies(this.#closeReason);
  }

  onSession(session: Session): void {
    this.#phase = Phase.established;
    this.session = session;
    this.#host.pipeline.attach(this, session);
  }

  /* ------------------------------------------------------------------------------------------- output ---- */

  onWatchEvent(event: WatchEvent): void {
    if (!this.isOpen) return;
    if (!this.#host.permission.isAllowed(this.#host.aclOf(event.aclId), Perm.read, this.identities)) return;
    this.#host.work.add(EVENT_UNITS);
    const frame = event.frame ?? encodeEvent(event);
    event.frame = frame;
    this.output.event(frame);
  }

  /**
   * Hands the turn's output to the stream in one write.
   *
   * @returns true when the output was full and has room again at once: requests may wait for that, unless they wait for
   * its next turn anyway
   */
  flush(): boolean {
    if (this.#isGone) return false;
    const hasOutput = !this.output.isEmpty;
    const hasRoomAgain = this.output.flush();
    if (hasOutput && !this.isOpen) this.#stream.end();
    return hasRoomAgain && this.isOpen && !this.#share.isUsed;
  }

  /** Like `flush`, for a connection that was announced to have events. */
  flushEvents(): boolean {
    this.output.onEventsTaken();
    return this.flush();
  }

  /* ------------------------------------------------------------------------------------------ closing ---- */

  /** Closes once everything written so far has left. */
  closeAfterReplies(reason: string): void {
    if (!this.isOpen) return;
    this.#closeReason = reason;
    this.#leave();
    if (this.output.isEmpty) this.#stream.end();
  }

  /** Closes at once; what is queued is lost. */
  close(reason: string): void {
    if (!this.isOpen) return;
    this.#closeReason = reason;
    this.#leave();
    this.output.discard();
    this.#stream.destroy();
  }

  /** It is closing, but its pending replies must no longer leave. */
  abandon(): void {
    this.output.discard();
    this.#stream.destroy();
  }

  /** Called every tick: closes connections that have timed out. */
  onTick(nowMs: number, sessionlessTimeoutMs: number, tickMs: number): void {
    if (!this.isOpen) {
      if (nowMs - this.#waitsSinceMs > LINGER_MS) this.#stream.destroy();
    } else if (this.#phase === Phase.opening && nowMs - this.openedMs > sessionlessTimeoutMs) {
      this.#host.turn.meters.sessionlessExpired++;
      this.close(`it sent no connect request within ${sessionlessTimeoutMs} ms`);
    } else if (this.#phase === Phase.answering && nowMs - this.#waitsSinceMs > LINGER_MS) {
      this.close('it does not read the answer to its four-letter word');
    } else if (this.session !== null && this.#input.throttled?.isStale(nowMs, this.session.timeoutMs)) {
      this.close(`its requests have waited for longer than the ${this.session.timeoutMs} ms of its session`);
    } else if (this.session !== null && this.#input.onTick(this.session.timeoutMs, tickMs)) {
      // A client pings several times within its timeout. If it has moved to another server and the end of this
      // connection was lost, its session stays alive, and only this timeout closes the connection.
      this.close(`its client has been silent for longer than the ${this.session.timeoutMs} ms of its session`);
    }
  }

  #leave(): void {
    if (this.#phase === Phase.opening) this.#host.connections.onAsked(this);
    this.#phase = Phase.closing;
    this.#input.throttled?.drop();
    this.#answer = null;
    this.#waitsSinceMs = this.#host.turn.nowMs();
    // Without a session there is nothing to detach, and before recovery there is no pipeline.
    if (this.session !== null) this.#host.pipeline.detach(this);
  }
}

/** True for operations that may be refused for having waited (Request.isThrottlable). */
function isThrottled(op: number): boolean {
  return op !== OpCode.ping && op !== OpCode.closeSession && isClientOp(op);
}

/** Cost of any request in units of the work meter; its bytes cost one unit per 64. */
const FRAME_UNITS = 10;
/** A request of this length is so expensive to decode that only a few are started per turn. */
const LONG_FRAME_BYTES = 0x2000;
const BYTES_PER_UNIT_SHIFT = 6;
/** Cost of a SASL step: several hashes, or the decryption of a ticket. */
const SASL_UNITS = 200;
/**
 * Cost of notifying one connection of an event, excluding the kernel; charged to the connection that caused the event.
 */
const EVENT_UNITS = 8;
/** Milliseconds that a peer may take to read the last replies of a closing connection. */
const LINGER_MS = 10_000;
