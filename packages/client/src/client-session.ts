import { makeAuth } from './auth.ts';
import type { Clock } from './clock.ts';
import { stallChannel, stateChannel } from './diagnostics/channels.ts';
import { ClosedError } from './errors.ts';
import { Listeners } from './listeners.ts';
import type { FailedAttempt } from './machine/ports.ts';
import type { Session } from './machine/session.ts';
import type { SessionListener } from './machine/session-ports.ts';
import { type ClientState, isConnectedState, isFinalState, type StateChange } from './machine/state.ts';
import type { ConnectOptions, Settings } from './options.ts';
import { SessionHost } from './session-host.ts';
import { makeNodeTransport } from './transport/node-transport.ts';

/** The event loop was blocked for so long that the session was in danger. */
export interface Stall {
  /** Milliseconds. */
  readonly stalledMs: number;
  readonly sessionTimeoutMs: number;
}

/** The session that a client and its chrooted views share. */
export class ClientSession implements SessionListener {
  readonly host: SessionHost;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly stateListeners: Listeners<StateChange> = new Listeners();
  readonly stallListeners: Listeners<Stall> = new Listeners();
  /** Why the session is in its state, as text. */
  reason = 'no server has been reached yet';
  /** Failed attempts since the last connection; the newest. */
  failedAttempts: FailedAttempt[] = [];
  /** Aborted when the session is no longer certain to be ours; replaced at the next connection. */
  #ownership = new AbortController();

  constructor(settings: Settings, options: ConnectOptions) {
    this.settings = settings;
    this.clock = settings.clock;
    this.host = new SessionHost(
      {
        hosts: settings.hosts,
        sessionTimeoutMs: settings.sessionTimeoutMs,
        attemptTimeoutMs: settings.attemptTimeoutMs,
        backOff: settings.backOff,
        canBeReadOnly: settings.canBeReadOnly,
        session: options.session ?? null,
        credentials: (options.auth ?? []).map(({ scheme, auth }) => makeAuth(scheme, auth, 'connect')),
        sasl: options.sasl ?? null,
        requestBytesMax: settings.requestBytesMax,
        replyBytesMax: settings.replyBytesMax,
      },
      {
        transport: options.transport ?? makeNodeTransport({ tls: options.tls }),
        clock: settings.clock,
        random: settings.random,
      },
      this,
    );
  }

  get session(): Session {
    return this.host.session;
  }

  get state(): ClientState {
    return this.host.session.state;
  }

  /** Aborts when the session may no longer be ours, at `lost`, `auth-failed` and the beginning of `close` at the latest. */
  get lostSignal(): AbortSignal {
    return this.#ownership.signal;
  }

  /**
   * Stops before there was a connection.
   *
   * @returns the failed attempts; the current attempt is included only if nothing else is known of its address, since
   *   it may have been about to fail as the others did
   */
  abandon(reason: string): readonly FailedAttempt[] {
    const known = new Set(this.failedAttempts.map(addressOf));
    const count = this.failedAttempts.length;
    this.host.abandon(reason);
    return this.failedAttempts.filter((attempt, i) => i < count || !known.has(addressOf(attempt)));
  }

  onState(change: StateChange): void {
    this.reason = change.reason;
    if (isConnectedState(change.state)) {
      this.failedAttempts = [];
      const isSure = this.session.sureUntilMs > Number.NEGATIVE_INFINITY;
      if (!isSure) this.#ownership.abort(new Error('the session may be over: no server with a quorum has answered'));
      else if (this.#ownership.signal.aborted) this.#ownership = new AbortController();
    }
    if (change.state === 'lost' || isFinalState(change.state)) {
      this.#ownership.abort(new Error(`the session is ${change.state}: ${change.reason}`));
    }
    if (stateChannel.hasSubscribers) stateChannel.publish(change);
    this.stateListeners.notify(change);
  }

  onUnsure(reason: string): void {
    this.#ownership.abort(new Error(`the session may be over: ${reason}`));
  }

  onClosing(): void {
    this.#ownership.abort(new ClosedError({ operation: 'close', path: null, detail: 'the session may be over' }));
  }

  onStall(stalledMs: number): void {
    const stall: Stall = { stalledMs, sessionTimeoutMs: this.session.sessionTimeoutMs };
    if (stallChannel.hasSubscribers) stallChannel.publish(stall);
    this.stallListeners.notify(stall);
  }

  onAttemptFailed(attempt: FailedAttempt): void {
    this.failedAttempts.push(attempt);
    if (this.failedAttempts.length > ATTEMPTS_KEPT) this.failedAttempts.shift();
  }
}

function addressOf({ host, port, address }: FailedAttempt): string {
  return `${host} ${port} ${address}`;
}

const ATTEMPTS_KEPT = 1000;
