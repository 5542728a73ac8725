import { OpCode } from '@meerkat/protocol';
import { Call, type FailureKind } from './call.ts';
import { Connection } from './connection.ts';
import { Contact } from './contact.ts';
import { Credentials } from './credentials.ts';
import { FrameAssembler } from './frame-assembler.ts';
import type { AcceptedSession } from './handshake.ts';
import { NegotiatedSession } from './negotiated-session.ts';
import { Outbox } from './outbox.ts';
import type { AttemptFailure, HostPort, MonotonicClock, Random, Target } from './ports.ts';
import { ReadWriteSearch } from './read-write-search.ts';
import { readNothing } from './replies.ts';
import { SessionCalls } from './session-calls.ts';
import type { SessionEffects, SessionIdentity, SessionListener, SessionOptions } from './session-ports.ts';
import { type ClientState, isConnectedState } from './state.ts';
import { Timing } from './timing.ts';
import { Watches } from './watches.ts';

/**
 * One session of a client: a state machine without I/O. Bytes, completions and time are events; effects go out.
 *
 * Guarantees:
 *
 * 1. Requests are sent in the order of `calls.submit` and answered in that order; a reply and the events around it are
 *    delivered in the order in which the server sent them.
 * 2. A submitted call is settled exactly once, at the latest when the session is lost, so no request waits longer than
 *    the session timeout for a server that does not answer.
 * 3. Only repeatable calls are sent a second time. Others in flight fail with `wasSent`.
 * 4. On a new connection credentials go first, then the watches, then requests: no new data is seen before the event.
 * 5. `lost` is reported at the latest when the negotiated timeout has passed since the sending of the last request that
 *    was answered; `onUnsure` when that was answered by a server with a quorum, if others have answered since;
 *    `onClosing` before a closeSession is sent. From then on the servers may give what the session owned to another
 *    client.
 *
 * Phases of connecting:
 *
 *     dialling ──onOpened──► handshake ──accepted──► ready ──stream gone──► dialling …      ended
 */
export class Session {
  readonly watches: Watches = new Watches();
  readonly calls: SessionCalls;
  readonly #options: SessionOptions;
  readonly #clock: MonotonicClock;
  readonly #effects: SessionEffects;
  readonly #listener: SessionListener;
  readonly #contact: Contact;
  readonly #timing: Timing;
  readonly #outbox: Outbox;
  readonly #assembler: FrameAssembler;
  readonly #readWriteSearch: ReadWriteSearch;
  #state: ClientState = 'connecting';
  #hasEnded = false;
  /** null while `#contact` searches, and at the end. */
  #connection: Connection | null = null;
  readonly #negotiated: NegotiatedSession;
  #isSameSession = true;
  /** The session in which the watches were armed last: several connections may break before they are rearmed. */
  #armedSessionId = 0n;
  #isClosing = false;
  /** Once the requests in flight are answered the connection moves to another server. */
  #isMoving = false;

  constructor(
    options: SessionOptions,
    clock: MonotonicClock,
    random: Random,
    effects: SessionEffects,
    listener: SessionListener,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#effects = effects;
    this.#listener = listener;
    this.#negotiated = new NegotiatedSession(options);
    this.#timing = new Timing(options.sessionTimeoutMs);
    this.#outbox = new Outbox(effects, clock, this.#timing);
    this.#assembler = new FrameAssembler(options.replyBytesMax, (bytes, start, end) =>
      this.#onFrame(bytes, start, end),
    );
    this.#readWriteSearch = new ReadWriteSearch(options.hosts);
    this.#contact = new Contact(
      options,
      clock,
      random,
      this.#outbox,
      {
        resolve: (host) => effects.resolve(host),
        open: (target) => effects.open(target),
        closeStream: () => this.#closeStream(),
      },
      {
        connectRequest: (isInquiry) => this.#negotiated.connectRequest(isInquiry),
        wantsInquiry: () => this.#state === 'lost' && this.#negotiated.isConfirmed && this.#negotiated.lastZxid > 0,
        onAccepted: (session) => this.#onAccepted(session),
        onRefused: (isInquiry) => this.#onRefused(isInquiry),
        onSaslRefused: (detail) => this.end('auth-failed', `${this.#contact.serverName} ${detail}`),
        onAttemptFailed: (attempt) => listener.onAttemptFailed(attempt),
      },
    );
    const credentials = options.credentials.map(({ scheme, auth }) => new Credentials(scheme, auth, null));
    this.calls = new SessionCalls(this.watches, this.#contact, credentials);
  }

  get state(): ClientState {
    return this.#state;
  }

  /** null before the first answer of a server, and after an expiry until there is a new session. */
  get identity(): SessionIdentity | null {
    return this.#negotiated.identity;
  }

  /** Milliseconds, as negotiated: the smallest timeout that a server granted to this session. */
  get sessionTimeoutMs(): number {
    return this.#negotiated.timeoutMs;
  }

  /**
   * Monotonic milliseconds until which the session is certain to be ours, extended by each reply of a server with a
   * quorum; −∞ when it is not certain, for instance after closeSession was sent.
   */
  get sureUntilMs(): number {
    return this.#canBeLost() && !this.#isClosing ? this.#timing.sureUntilMs : Number.NEGATIVE_INFINITY;
  }

  /** The server of the current connection. */
  get server(): Target | null {
    return this.#connection === null ? null : this.#contact.server;
  }

  get lastZxid(): number {
    return this.#negotiated.lastZxid;
  }

  /* ---------------------------------------------------------------------------------------------- commands ---- */

  start(): void {
    this.#contact.begin(true);
  }

  /**
   * Continues the same session on another server (null: the next in turn), once the requests in flight are answered.
   */
  moveTo(host: HostPort | null): void {
    if (this.#hasEnded || this.#isClosing) return;
    this.#contact.prefer(host);
    if (this.#connection === null) this.#contact.begin(true);
    else {
      this.#isMoving = true;
      this.calls.hold();
      if (this.#connection.inFlightCount === 0) this.#drop(MOVING);
    }
  }

  /** Ends the session gracefully: after the requests in flight. `onState` reports `closed` when it is done. */
  close(): void {
    if (this.#hasEnded || this.#isClosing) return;
    if (this.#connection === null) {
      this.end('closed', CLOSED);
      return;
    }
    const done = (): void => this.end('closed', CLOSED);
    // Requests queued because of a pending move are still sent before.
    this.calls.sendWaiting(this.#connection);
    this.#isClosing = true;
    this.calls.refuse({ kind: 'closed', detail: 'the client is closing' });
    this.#listener.onClosing();
    // The listener may have ended it at once.
    this.#connection?.send(new Call({ op: OpCode.closeSession }, readNothing, done, done, null, false));
  }

  /** Ends before a server was found. The current attempt is reported as failed. */
  abandon(reason: string): void {
    this.#contact.abandon();
    this.end('closed', reason);
  }

  /** Ends at once, without notifying the server. */
  end(state: 'closed' | 'auth-failed', reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#contact.stop();
    this.#endConnection(state, reason);
    this.calls.failWaiting(state, reason);
    this.calls.refuse({ kind: state, detail: REFUSED[state] });
    this.#setState(state, reason);
    this.watches.end(state);
  }

  /* ------------------------------------------------------------------------------------------------ events ---- */

  onResolved(addresses: readonly string[] | null, detail: string): void {
    this.#contact.onResolved(addresses, detail);
  }

  /** The SASL credentials are available; now it connects. */
  onPrepared(): void {
    this.#contact.onPrepared();
  }

  onOpened(): void {
    this.#timing.onConnecting(this.#clock.monotonicMs());
    this.#contact.onOpened();
  }

  onBytes(chunk: Uint8Array): void {
    const nowMs = this.#clock.monotonicMs();
    this.#timing.onReceived(nowMs);
    const badLength = this.#assembler.onBytes(chunk);
    if (badLength !== null) {
      if (this.#connection !== null) this.#onBadReply(`a reply of ${badLength} bytes`);
      else this.#contact.onStrangeBytes(chunk);
    }
    // After a stall, bytes may be read before the timer fires: no caller may act on them as the owner of a lost
    // session.
    this.#maybeLose(nowMs);
  }

  /** The stream is gone, or could not be opened. `failure` null: closed cleanly by the server. */
  onStreamClosed(failure: AttemptFailure | null, detail: string): void {
    if (this.#connection !== null) this.#disconnect(detail);
    else this.#contact.onStreamClosed(failure, detail);
  }

  onProbed(host: HostPort, isReadWrite: boolean): void {
    if (isReadWrite && this.#state === 'read-only') this.moveTo(host);
  }

  /** Sends everything written since the last call. */
  flush(): void {
    this.#outbox.flush();
  }

  /** When `onTick` has to be called next, monotonic milliseconds; Infinity for never. */
  nextDeadlineMs(): number {
    if (this.#hasEnded) return Number.POSITIVE_INFINITY;
    const lostAtMs = this.#canBeLost() ? this.#nextLossAtMs() : Number.POSITIVE_INFINITY;
    if (this.#connection === null) return Math.min(this.#contact.deadlineMs, lostAtMs);
    const probeAtMs = this.#state === 'read-only' ? this.#readWriteSearch.nextAtMs : Number.POSITIVE_INFINITY;
    return Math.min(this.#timing.pingAtMs, this.#timing.silentAtMs, lostAtMs, probeAtMs);
  }

  onTick(): void {
    if (this.#hasEnded) return;
    const nowMs = this.#clock.monotonicMs();
    const lateMs = nowMs - this.nextDeadlineMs();
    if (this.#connection !== null && lateMs > this.#negotiated.timeoutMs / 3) {
      // Data received meanwhile has not been read yet: it is, before the server counts as silent.
      this.#timing.onStall(nowMs);
      this.#listener.onStall(lateMs);
    }
    this.#maybeLose(nowMs);
    if (this.#connection === null) this.#contact.onTick();
    else if (nowMs >= this.#timing.silentAtMs) {
      this.#drop(`the server was silent for ${Math.round(nowMs - this.#timing.receivedAtMs)} ms`);
    } else {
      if (nowMs >= this.#timing.pingAtMs) this.#connection.sendPing(null);
      if (this.#state === 'read-only' && nowMs >= this.#readWriteSearch.nextAtMs) this.#probeNext(nowMs);
    }
  }

  /* ------------------------------------------------------------------------------------------ making contact ---- */

  #onFrame(bytes: Uint8Array, start: number, end: number): void {
    if (this.#connection !== null) this.#connection.onFrame(bytes, start, end);
    else this.#contact.onFrame(bytes, start, end);
  }

  /** The server no longer knows the session. @returns false when none was requested */
  #onRefused(isInquiry: boolean): boolean {
    if (!this.#negotiated.isConfirmed) return false;
    // An inquiry was answered by a server that lags behind: the last zxid of the old service means nothing to it.
    if (isInquiry) this.#negotiated.lastZxid = 0;
    if (this.#state !== 'lost') this.#lose('session-expired', this.#expiryReason);
    this.#negotiated.forget();
    if (!this.#hasEnded) this.#contact.begin(true);
    return true;
  }

  /** The handshake is complete: credentials, watches, then all queued requests. */
  #onAccepted(session: AcceptedSession): void {
    const { id } = this.#negotiated;
    this.#isSameSession = id === 0n ? this.#state === 'connecting' : id === session.sessionId;
    this.#negotiated.onAccepted(session);
    const nowMs = this.#clock.monotonicMs();
    this.#timing.onReady(nowMs, this.#negotiated.timeoutMs, !session.isReadOnly);
    this.#readWriteSearch.begin(nowMs);
    const connection = new Connection(
      {
        outbox: this.#outbox,
        timing: this.#timing,
        watches: this.watches,
        serverName: this.#contact.serverName,
        requestBytesMax: this.#options.requestBytesMax,
        replyBytesMax: this.#options.replyBytesMax,
      },
      {
        onZxidSeen: (zxid) => {
          this.#negotiated.lastZxid = zxid;
        },
        onCredentialsRefused: () => this.end('auth-failed', `${this.#contact.serverName} refused the credentials`),
        onSessionExpired: () => this.#lose('session-expired', this.#expiryReason),
        onRearmed: () => this.#onRearmed(),
        onRearmRefused: (code) => this.#onRearmRefused(code),
        onBadReply: (what) => this.#onBadReply(what),
        onIdle: () => {
          if (this.#isMoving) this.#drop(MOVING);
        },
      },
    );
    this.#connection = connection;
    this.calls.onConnected(connection);
    this.#setState(session.isReadOnly ? 'read-only' : 'connected', `connected to ${this.#contact.serverName}`);
    this.calls.sendCredentials(connection);
    if (this.watches.isEmpty) this.#onArmed();
    connection.rearmWatches(this.#negotiated.lastZxid);
    this.calls.sendWaiting(connection);
  }

  #onRearmed(): void {
    const isSame = this.#armedSessionId === this.#negotiated.id;
    this.#onArmed();
    this.watches.onRearmed(isSame);
  }

  /** Only now has the search for a server succeeded. */
  #onArmed(): void {
    this.#armedSessionId = this.#negotiated.id;
    this.#contact.succeed();
  }

  /** All servers may be too busy to arm them: then they must not be asked again at once. */
  #onRearmRefused(code: number): void {
    this.#closeStream();
    this.#disconnect(`${this.#contact.serverName} refused to arm the watches (code ${code})`, true);
  }

  /* ------------------------------------------------------------------------------------------- losing contact ---- */

  /** The server sends invalid data: everything in flight is in doubt. */
  #onBadReply(what: string): void {
    this.#connection?.rejectOldest(what);
    this.#drop(`the server sent ${what}`);
  }

  #drop(reason: string): void {
    this.#closeStream();
    this.#disconnect(reason);
  }

  /** Data in flight in either direction is lost with the stream. */
  #closeStream(): void {
    this.#effects.closeStream();
    this.#assembler.reset();
    this.#outbox.clear();
  }

  /** The stream is gone. `isRefused`: because the server does not serve us. */
  #disconnect(reason: string, isRefused = false): void {
    if (this.#isClosing) {
      this.end('closed', CLOSED);
      return;
    }
    const isPrompt = this.#isMoving || this.#options.hosts.length > 1;
    this.#endConnection('connection-lost', reason);
    this.#setState('suspended', reason);
    this.watches.onDisconnected();
    if (isRefused) this.#contact.continueSearch();
    else this.#contact.begin(isPrompt);
  }

  #endConnection(kind: FailureKind, reason: string): void {
    this.#isMoving = false;
    const connection = this.#connection;
    if (connection === null) return;
    this.#connection = null;
    this.calls.onDisconnected(connection, kind, reason);
  }

  /** When silence next makes the session lost or doubtful. */
  #nextLossAtMs(): number {
    const { lostAtMs, sureUntilMs } = this.#timing;
    return sureUntilMs === Number.NEGATIVE_INFINITY ? lostAtMs : Math.min(lostAtMs, sureUntilMs);
  }

  #maybeLose(nowMs: number): void {
    if (!this.#canBeLost() || nowMs < this.#nextLossAtMs()) return;
    const timeout = `the session timeout is ${this.#negotiated.timeoutMs} ms`;
    if (nowMs >= this.#timing.lostAtMs) {
      const silentMs = Math.round(nowMs - this.#timing.answeredAtMs);
      this.#lose('session-lost', `no answer for ${silentMs} ms, ${timeout}`);
    } else {
      this.#timing.onUnsure();
      this.#listener.onUnsure(`only servers without a quorum have answered for too long, ${timeout}`);
    }
  }

  /**
   * Everything that depended on the session is over; waiting callers are notified. The session itself may still come
   * back.
   */
  #lose(kind: 'session-lost' | 'session-expired', reason: string): void {
    if (this.#connection !== null) this.#drop(reason);
    if (this.#hasEnded) return;
    this.#timing.onUnsure();
    this.calls.failWaiting(kind, reason);
    this.calls.refuse({ kind: 'session-lost', detail: 'the session is lost and there is no new one yet' });
    this.#setState('lost', reason);
  }

  get #expiryReason(): string {
    return `${this.#contact.serverName} says that the session has expired`;
  }

  #canBeLost(): boolean {
    return this.#state === 'suspended' || isConnectedState(this.#state);
  }

  #probeNext(nowMs: number): void {
    const next = this.#readWriteSearch.next(nowMs, this.#contact.server);
    if (next !== undefined) this.#effects.probe(next);
  }

  #setState(state: ClientState, reason: string): void {
    const previous = this.#state;
    // A lost session stays lost until there is a connection, however many attempts there are.
    if (state === 'suspended' && previous === 'lost') return;
    this.#state = state;
    const isConnected = isConnectedState(state);
    this.#listener.onState({
      state,
      previous,
      reason,
      sessionId: this.#negotiated.id,
      sameSession: !isConnected || this.#isSameSession,
      server: isConnected ? this.#contact.server : null,
    });
  }
}

/** What is said to who asks for something then. */
const REFUSED = {
  closed: 'the client is closed',
  'auth-failed': 'a server has refused the credentials of this client',
} as const;
const CLOSED = 'closed by the user';
const MOVING = 'moving to another server on request';
