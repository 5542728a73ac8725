import type { Call, CallFailure, FailureKind } from './call.ts';
import type { Connection, Settle } from './connection.ts';
import type { Contact } from './contact.ts';
import { Credentials } from './credentials.ts';
import { WaitingCalls } from './waiting-calls.ts';
import type { WatchListener } from './watch-listener.ts';
import type { Watches } from './watches.ts';

/** Why a request cannot even wait. */
export interface Refusal {
  readonly kind: FailureKind;
  readonly detail: string;
}

/** The requests of a session: sent on the current connection, queued for the next one, or refused. */
export class SessionCalls {
  readonly #watches: Watches;
  readonly #contact: Contact;
  readonly #credentials: Credentials[];
  readonly #waiting: WaitingCalls = new WaitingCalls();
  #connection: Connection | null = null;
  #isHeld = false;
  #refusal: Refusal | null = null;

  /** @param credentials of the options, without a caller */
  constructor(watches: Watches, contact: Contact, credentials: readonly Credentials[]) {
    this.#watches = watches;
    this.#contact = contact;
    this.#credentials = [...credentials];
  }

  /** Requests without a reply. */
  get inFlightCount(): number {
    return this.#connection?.inFlightCount ?? 0;
  }

  /** Requests that wait for a connection. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /* ----------------------------------------------------------------------------------------- what is asked ---- */

  /** Sends a request, or queues it for the next connection. */
  submit(call: Call): void {
    if (this.#connection !== null && !this.#isHeld) this.#connection.send(call);
    else if (this.#refusal === null) this.#waiting.push(call);
    else call.fail(this.#refusal.kind, this.#server, this.#refusal.detail);
  }

  /** Cancels a call; its reply is dropped when it arrives. */
  cancel(call: Call, kind: 'timed-out' | 'aborted', detail: string): void {
    call.fail(kind, this.#server, detail);
  }

  /** Authenticates, now and on every later connection. `settle(null)` when a server has accepted it. */
  addCredentials(scheme: string, auth: Uint8Array, settle: Settle): void {
    if (this.#refusal !== null) {
      settle(this.#failure(this.#refusal.kind, this.#refusal.detail));
      return;
    }
    const credentials = new Credentials(scheme, auth, settle);
    this.#credentials.push(credentials);
    this.#connection?.sendCredentials(credentials);
  }

  /** A round trip to the server; fails while there is no connection. */
  ping(settle: Settle): void {
    if (this.#refusal !== null) settle(this.#failure(this.#refusal.kind, this.#refusal.detail));
    else if (this.#connection !== null) this.#connection.sendPing(settle);
    else settle(this.#failure('connection-lost', 'there is no connection'));
  }

  /** Removes a listener, and its watch from the server when it was the last. */
  removeWatch(kind: 'persistent' | 'recursive', path: string, listener: WatchListener, done: () => void): void {
    if (this.#connection !== null && this.#refusal === null) this.#connection.removeWatch(kind, path, listener, done);
    else {
      this.#watches.remove(kind, path, listener);
      done();
    }
  }

  /* ----------------------------------------------------------------------------------------- what becomes of it ---- */

  /** There is a connection: credentials are sent first. `sendWaiting` follows, once the watches are sent. */
  onConnected(connection: Connection): void {
    this.#connection = connection;
    this.#isHeld = false;
    this.#refusal = null;
  }

  sendCredentials(connection: Connection): void {
    for (const credentials of this.#credentials) connection.sendCredentials(credentials);
  }

  sendWaiting(connection: Connection): void {
    this.#waiting.sendOn(connection);
  }

  /** The connection is about to end: new requests wait for the next one. */
  hold(): void {
    this.#isHeld = true;
  }

  /** New requests are refused, until there is a connection. */
  refuse(refusal: Refusal): void {
    this.#isHeld = true;
    this.#refusal = refusal;
  }

  /** The connection has ended: repeatable requests in flight are queued; the rest fails. */
  onDisconnected(connection: Connection, kind: FailureKind, reason: string): void {
    this.#connection = null;
    this.#waiting.putFirst(connection.end(kind, reason));
  }

  /** There will be no connection for queued requests. */
  failWaiting(kind: FailureKind, reason: string): void {
    this.#waiting.failAll(kind, this.#server, reason);
    for (const credentials of this.#credentials) credentials.settleOnce(this.#failure(kind, reason));
  }

  #failure(kind: FailureKind, detail: string): CallFailure {
    return { kind, wasSent: false, server: this.#server, detail };
  }

  /** null: none was reached so far. */
  get #server(): string | null {
    return this.#contact.server === null ? null : this.#contact.serverName;
  }
}
