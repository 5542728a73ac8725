import { type ConnectRequest, PASSWORD_BYTES } from '@meerkat/protocol';
import type { AcceptedSession } from './handshake.ts';
import type { SessionIdentity, SessionOptions } from './session-ports.ts';

/**
 * What the servers have granted: the identity of the session, its timeout, and the last zxid that the client has seen.
 */
export class NegotiatedSession {
  readonly #options: SessionOptions;
  /** 0n before the first answer of a server, and after an expiry until there is a new session. */
  id = 0n;
  #password: Uint8Array = NO_PASSWORD;
  /**
   * Milliseconds: the smallest timeout that a server granted to this session; that of the options until then. A server
   * that starts, or a new leader, uses the first one, whatever was granted on later connections.
   */
  timeoutMs: number;
  /** The same; Infinity until then. */
  #timeoutMaxMs: number;
  /** A read-write server has confirmed the session: ids from read-only servers are not known to the ensemble. */
  isConfirmed: boolean;
  /** The largest zxid of any reply so far: a server that has not seen it yet does not accept the connection. */
  lastZxid = 0;

  constructor(options: SessionOptions) {
    const { session, sessionTimeoutMs } = options;
    this.#options = options;
    this.timeoutMs = sessionTimeoutMs;
    this.#timeoutMaxMs = session?.timeoutMs ?? Number.POSITIVE_INFINITY;
    this.isConfirmed = session !== null;
    if (session !== null) {
      this.id = session.id;
      this.#password = session.password;
    }
  }

  /** null before the first answer of a server, and after an expiry until there is a new session. */
  get identity(): SessionIdentity | null {
    return this.id === 0n ? null : { id: this.id, password: this.#password };
  }

  /** @param isInquiry only asks whether the session lives, also of a server that lags behind */
  connectRequest(isInquiry: boolean): ConnectRequest {
    const isNew = !this.isConfirmed;
    return {
      protocolVersion: 0,
      lastZxidSeen: isInquiry ? 0 : this.lastZxid,
      timeoutMs: this.#options.sessionTimeoutMs,
      sessionId: isNew ? 0n : this.id,
      password: isNew ? NO_PASSWORD : this.#password,
      readOnly: this.#options.canBeReadOnly,
      hasReadOnlyByte: true,
    };
  }

  onAccepted({ sessionId, password, timeoutMs, isReadOnly }: AcceptedSession): void {
    const isKnown = this.id === sessionId;
    this.id = sessionId;
    this.#password = password;
    this.timeoutMs = isKnown ? Math.min(this.#timeoutMaxMs, timeoutMs) : timeoutMs;
    this.#timeoutMaxMs = this.timeoutMs;
    if (!isReadOnly) this.isConfirmed = true;
  }

  /** The servers no longer know it: the next request asks for a new one. */
  forget(): void {
    this.isConfirmed = false;
    this.id = 0n;
    this.#password = NO_PASSWORD;
  }
}

const NO_PASSWORD: Uint8Array = new Uint8Array(PASSWORD_BYTES);
