import { type JuteReader, PASSWORD_BYTES, readConnectRequest } from '@meerkat/protocol';
import type { PeerAddress } from '../base/ports.ts';
import type { SessionCreator } from '../request/client.ts';
import type { ResumingClient } from '../session/revalidations.ts';
import type { Session } from '../session/session.ts';
import type { ClientOutput } from './client-output.ts';
import type { ConnectionHost } from './connection-host.ts';
import type { ConnectionStats } from './connection-stats.ts';

/** The connection that requests a session. */
interface OpeningConnection {
  readonly remote: PeerAddress;
  readonly stats: ConnectionStats;
  /** null until `onSession`. */
  readonly session: Session | null;
  readonly isOpen: boolean;
  onSession(session: Session): void;
  close(reason: string): void;
  closeAfterReplies(reason: string): void;
}

/**
 * How a connection gets its session. Nothing more is read until this is decided.
 *
 *     ConnectRequest ──► create ──► onSessionCreated ──► ConnectResponse
 *                   ├──► resume ────────────────────┤
 *                   ├──► revalidate ──► onSessionResumed, onSessionRefused
 *                   └──► refuse (a response without a session), close
 */
export class ClientOpening<Connection extends OpeningConnection> implements SessionCreator, ResumingClient {
  readonly #connection: Connection;
  readonly #output: ClientOutput<Connection>;
  readonly #host: ConnectionHost<Connection>;
  #hasReadOnlyByte = true;

  constructor(connection: Connection, output: ClientOutput<Connection>, host: ConnectionHost<Connection>) {
    this.#connection = connection;
    this.#output = output;
    this.#host = host;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** The client's first frame. */
  onConnectRequest(reader: JuteReader): void {
    this.#host.connections.onAsked(this.#connection);
    const request = readConnectRequest(reader);
    if (reader.failed) {
      this.close('its first frame is not a connect request');
      return;
    }
    this.#hasReadOnlyByte = request.hasReadOnlyByte;
    this.#connection.stats.onConnectRequest();
    const { turn, pipeline } = this.#host;
    if (request.sessionId !== 0n) turn.meters.reconnections++;
    const decision = this.#host.decideConnect(request);
    switch (decision.kind) {
      case 'close':
        this.close(decision.reason);
        return;
      case 'refuse':
        this.#refuse(request.sessionId, decision.reason);
        return;
      case 'create':
        pipeline.createSession(this, decision.timeoutMs, turn.nowMs(), turn.wallMs());
        return;
      case 'resume':
        this.#establish(decision.session, 'session-resumed');
        return;
      case 'revalidate':
        decision.revalidations.ask(this, request.sessionId, decision.timeoutMs, turn.nowMs());
        return;
    }
  }

  onSessionCreated(session: Session): void {
    this.#onDecided(session, 'session-created');
  }

  onSessionResumed(session: Session): void {
    this.#onDecided(session, 'session-resumed');
  }

  onSessionRefused(sessionId: bigint, reason: string): void {
    if (this.#isAwaited) this.#refuse(sessionId, reason);
  }

  close(reason: string): void {
    this.#connection.close(reason);
  }

  closeAfterReplies(reason: string): void {
    this.#connection.closeAfterReplies(reason);
  }

  get #isAwaited(): boolean {
    return this.#connection.isOpen && this.#connection.session === null;
  }

  #onDecided(session: Session, kind: 'session-created' | 'session-resumed'): void {
    if (!this.#isAwaited) return;
    this.#establish(session, kind);
    this.#host.connections.onHeldBack(this.#connection);
  }

  #establish(session: Session, kind: 'session-created' | 'session-resumed'): void {
    const { id: sessionId, timeoutMs } = session;
    this.#connection.onSession(session);
    this.#output.connectResponse(sessionId, timeoutMs, this.#host.passwords.make(sessionId), this.#hasReadOnlyByte);
    this.#host.trace.emit({ kind, sessionId, timeoutMs, remote: this.#connection.remote });
  }

  #refuse(sessionId: bigint, reason: string): void {
    this.#host.trace.emit({ kind: 'session-refused', sessionId, remote: this.#connection.remote, reason });
    this.#output.connectResponse(0n, 0, new Uint8Array(PASSWORD_BYTES), this.#hasReadOnlyByte);
    this.closeAfterReplies(reason);
  }
}
