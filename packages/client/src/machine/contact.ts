import type { ConnectRequest } from '@meerkat/protocol';
import { type BackOff, Dialer } from './dialer.ts';
import { type AcceptedSession, Handshake } from './handshake.ts';
import type { Outbox } from './outbox.ts';
import {
  type AttemptFailure,
  type FailedAttempt,
  formatServer,
  type HostPort,
  type MonotonicClock,
  type Random,
  type SaslExchange,
  type Target,
} from './ports.ts';

export interface ContactEffects {
  /** Looks a host name up; `onResolved` follows. */
  resolve(host: HostPort): void;
  /** Connects; `onOpened` and `onStreamClosed` follow. */
  open(target: Target): void;
  /** Closes the stream, or aborts opening it. No event of it follows. */
  closeStream(): void;
}

/** Events of the search for a server. */
export interface ContactEvents {
  /** The first frame of a new connection. `isInquiry`: only to find out whether the session is known. */
  connectRequest(isInquiry: boolean): ConnectRequest;
  /** Whether a silent server should be asked whether it knows the session at all. */
  wantsInquiry(): boolean;
  onAccepted(session: AcceptedSession): void;
  /** The server does not know the requested session. False: none was requested. */
  onRefused(isInquiry: boolean): boolean;
  onSaslRefused(detail: string): void;
  onAttemptFailed(attempt: FailedAttempt): void;
}

export interface ContactOptions {
  readonly hosts: readonly HostPort[];
  /** One attempt, from the name lookup to the end of the handshake. Milliseconds. */
  readonly attemptTimeoutMs: number;
  readonly backOff: BackOff;
  readonly sasl: (() => SaslExchange) | null;
}

/**
 * The search for a server that accepts the session: dials, shakes hands, and continues with the next until one accepts.
 *
 *     begin ─► dial ─► connect request ─► response ─► SASL ─► onAccepted
 *               ▲            │ closed, silent, nonsense │
 *               └────────────┴──── next address ◄───────┘
 */
export class Contact {
  readonly #options: ContactOptions;
  readonly #clock: MonotonicClock;
  readonly #outbox: Outbox;
  readonly #effects: ContactEffects;
  readonly #events: ContactEvents;
  readonly #dialer: Dialer;
  #handshake: Handshake | null = null;
  /** The attempt waits for SASL credentials; there is no connection yet. */
  #isPreparing = false;
  #server: Target | null = null;
  /** This attempt only asks whether the session is gone. */
  #isInquiry = false;
  /** Monotonic milliseconds. */
  #noInquiryBeforeMs = 0;

  constructor(
    options: ContactOptions,
    clock: MonotonicClock,
    random: Random,
    outbox: Outbox,
    effects: ContactEffects,
    events: ContactEvents,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#outbox = outbox;
    this.#effects = effects;
    this.#events = events;
    this.#dialer = new Dialer(
      options.hosts,
      random,
      {
        resolve: (host) => effects.resolve(host),
        open: (target) => {
          this.#isPreparing = options.sasl !== null;
          effects.open(target);
        },
        onAttemptFailed: (attempt) => events.onAttemptFailed(attempt),
      },
      { backOff: options.backOff, attemptMs: options.attemptTimeoutMs },
    );
  }

  /** The server that was reached last. */
  get server(): Target | null {
    return this.#server;
  }

  /** host:port of that server, for people. */
  get serverName(): string {
    return this.#server === null ? 'the server' : formatServer(this.#server);
  }

  /** Monotonic milliseconds; Infinity while there is no search. */
  get deadlineMs(): number {
    return this.#dialer.deadlineMs;
  }

  /** Starts or restarts the search. `isPrompt`: without a delay before the first attempt. */
  begin(isPrompt: boolean): void {
    this.#abandonAttempt();
    this.#dialer.begin(this.#clock.monotonicMs(), isPrompt);
    this.onTick();
  }

  /** The connection of `onAccepted` is usable: delays are short again. */
  succeed(): void {
    this.#dialer.succeed();
  }

  /**
   * The connection of `onAccepted` is unusable: continues the search, with delays that grow when no server is usable.
   */
  continueSearch(): void {
    this.#abandonAttempt();
    this.#dialer.continueSearch(this.#clock.monotonicMs());
    this.onTick();
  }

  /** The next attempt goes to this host; null: to the next in turn. */
  prefer(host: HostPort | null): void {
    this.#dialer.prefer(host);
  }

  /** Ends the search for good. The current attempt has failed, too. */
  abandon(): void {
    this.#dialer.abandon(`${this.#missing} until the search was stopped`);
    this.stop();
  }

  stop(): void {
    this.#dialer.stop();
    this.#abandonAttempt();
  }

  onResolved(addresses: readonly string[] | null, detail: string): void {
    this.#dialer.onResolved(this.#clock.monotonicMs(), addresses, detail);
    this.onTick();
  }

  /** The SASL credentials are available; now it connects. */
  onPrepared(): void {
    this.#isPreparing = false;
  }

  onOpened(): void {
    this.#server = this.#dialer.target;
    this.#handshake = new Handshake(this.#outbox, this.#events.connectRequest(this.#isInquiry), this.#options.sasl);
  }

  onFrame(bytes: Uint8Array, start: number, end: number): void {
    const step = this.#handshake?.onFrame(bytes, start, end);
    switch (step?.kind) {
      case 'accepted':
        if (this.#isInquiry) {
          this.#noInquiryBeforeMs = this.#clock.monotonicMs() + 2 * step.session.timeoutMs;
          this.fail('not-serving', 'it is behind what this session has seen');
        } else {
          this.#handshake = null;
          this.#dialer.stop();
          this.#events.onAccepted(step.session);
        }
        return;
      case 'refused': {
        const isInquiry = this.#isInquiry;
        this.#isInquiry = false;
        if (!this.#events.onRefused(isInquiry)) this.fail('not-serving', 'it refused to make a session');
        return;
      }
      case 'sasl-refused':
        this.#events.onSaslRefused(step.detail);
        return;
      case 'sasl-failed':
        this.fail('sasl', step.detail);
        return;
      case 'not-zookeeper':
        this.fail('not-zookeeper', step.detail);
        return;
      default:
    }
  }

  /**
   * A server closes the connection without a reply when it has no quorum, is full, or has not seen the zxid that this
   * session has seen. The last may be permanent: the data may have been restored from an old copy. So, once the session
   * is lost anyway, the server is asked again without a zxid: only to find out whether it still knows the session. If
   * it does, asking has kept the session alive there, so it gets the time to expire it before it is asked again.
   */
  onStreamClosed(failure: AttemptFailure | null, detail: string): void {
    const handshake = this.#handshake;
    if (handshake === null) this.fail(failure ?? 'unreachable', detail);
    else if (handshake.isInSasl)
      this.fail('sasl', `the connection was closed in the middle of the exchange: ${detail}`);
    else if (failure === 'tls') this.fail('tls', detail);
    else if (!this.#isInquiry && this.#clock.monotonicMs() >= this.#noInquiryBeforeMs && this.#events.wantsInquiry()) {
      this.#abandonAttempt();
      this.#isInquiry = true;
      this.#dialer.tryAgain(this.#clock.monotonicMs());
    } else this.fail('not-serving', `closed before it answered: ${detail}`);
  }

  /** The bytes are not a valid frame. */
  onStrangeBytes(chunk: Uint8Array): void {
    this.fail('not-zookeeper', describeStranger(chunk));
  }

  /** The attempt has failed; the next follows automatically. */
  fail(failure: AttemptFailure, detail: string): void {
    this.#abandonAttempt();
    this.#dialer.fail(this.#clock.monotonicMs(), failure, detail);
    this.onTick();
  }

  /** To be called at `deadlineMs`. A delay of zero ends at once. */
  onTick(): void {
    if (!this.#dialer.onTick(this.#clock.monotonicMs())) return;
    this.fail('timed-out', `${this.#missing} within ${Math.round(this.#options.attemptTimeoutMs)} ms`);
  }

  /** What the current attempt is waiting for, as text. */
  get #missing(): string {
    if (this.#dialer.isResolving) return 'no answer of the name service';
    if (this.#handshake !== null) return 'no answer to the connect request';
    return this.#isPreparing ? 'nothing to log in with by SASL' : 'no connection';
  }

  #abandonAttempt(): void {
    this.#isInquiry = false;
    this.#handshake = null;
    this.#effects.closeStream();
  }
}

/** The beginning of what was received instead of a frame, for people: "HTTP/1.1 400 Bad Request". */
function describeStranger(chunk: Uint8Array): string {
  let text = '';
  for (const byte of chunk.subarray(0, 40)) {
    if (byte < 0x20 || byte > 0x7e) break;
    text += String.fromCharCode(byte);
  }
  return text.length >= 4 ? `it answered "${text}"` : 'its answer is no ZooKeeper frame';
}
