import { ErrorCode, type JuteReader, OpCode, readRequest } from '@meerkat/protocol';
import { type Authenticator, type ByteStream, type Identity, SaslFailure, type Trace } from '../base/ports.ts';
import type { ServerStats } from '../base/server-stats.ts';
import type { Turn } from '../base/turn.ts';
import type { ReplyOutput } from '../request/client.ts';
import { addIdentities, IDENTITIES_MAX } from '../request/identities.ts';
import { SaslExchange } from './sasl-exchange.ts';

export interface AuthenticationHost {
  readonly authenticator: Authenticator;
  readonly stats: ServerStats;
  readonly trace: Trace;
  readonly frameBytesMax: number;
  readonly turn: Turn;
  /** As of `ConnectionHost`. */
  dataOf(path: string): Uint8Array | null;
}

/** The connection being authenticated. */
interface Authenticating {
  readonly output: ReplyOutput;
  close(reason: string): void;
  closeAfterReplies(reason: string): void;
}

/** The reply to a SASL token; with an error the connection is closed. */
interface TokenAnswer {
  readonly error: ErrorCode;
  readonly token: Uint8Array | null;
}

/** The identities of a connection's client, from its address, its certificate, auth packets and SASL. */
export class ClientAuthentication {
  identities: readonly Identity[];
  /** True until the client has authenticated, where that is required: it may do nothing else. */
  isBarred: boolean;
  readonly #stream: ByteStream;
  readonly #host: AuthenticationHost;
  readonly #client: Authenticating;
  /** null until the first token arrives. */
  #sasl: SaslExchange | null = null;

  constructor(stream: ByteStream, host: AuthenticationHost, client: Authenticating) {
    this.#stream = stream;
    this.#host = host;
    this.#client = client;
    this.identities = host.authenticator.initialIdentities(stream.remote, stream.certificate ?? null);
    this.isBarred = !host.authenticator.isAdmitted(this.identities);
  }

  /** Auth packets are answered at once, ahead of waiting requests. */
  onAuth(xid: number, reader: JuteReader): void {
    const request = readRequest(OpCode.auth, reader);
    if (request?.op !== OpCode.auth) this.#client.close('its auth packet cannot be read');
    else this.#offer(xid, request.scheme, request.auth);
  }

  #offer(xid: number, scheme: string | null, auth: Uint8Array | null): void {
    const { authenticator, stats, trace } = this.#host;
    const { remote, certificate = null } = this.#stream;
    const dataOf = (path: string): Uint8Array | null => this.#host.dataOf(path);
    const added = scheme === null ? null : authenticator.authenticate(scheme, auth, remote, certificate, dataOf);
    if (added !== null && this.#addIdentities(added)) {
      this.#replyAtOnce(xid, ErrorCode.ok);
      return;
    }
    stats.authFailures++;
    trace.emit({ kind: 'auth-failed', remote, scheme: scheme ?? '', reason: null });
    if (scheme !== null && authenticator.refusesSilently(scheme)) {
      // The client tries another server.
      this.#client.close(`authentication by "${scheme}" failed`);
      return;
    }
    const why = added === null ? 'failed' : `is too much: a connection has ${IDENTITIES_MAX} identities at most`;
    this.#replyAtOnce(xid, ErrorCode.authFailed);
    this.#client.closeAfterReplies(`authentication by "${scheme ?? ''}" ${why}`);
  }

  /** SASL packets are answered at once, too. */
  onSasl(xid: number, reader: JuteReader): void {
    const request = readRequest(OpCode.sasl, reader);
    if (request?.op !== OpCode.sasl || request.token === null) {
      this.#client.close('its SASL packet holds no token');
      return;
    }
    const { error, token } = this.#onToken(request.token);
    this.#client.output.beginReply(xid, 0, error).buffer(token);
    this.#client.output.endReply(this.#host.turn.nowMs());
    if (error !== ErrorCode.ok) this.#client.closeAfterReplies('authentication by SASL failed');
  }

  /** The client must authenticate first. */
  refuse(xid: number): void {
    this.#replyAtOnce(xid, ErrorCode.sessionClosedRequireSaslAuth);
    this.#client.closeAfterReplies('it has not authenticated by a scheme of enforce.auth.schemes');
  }

  #onToken(token: Uint8Array): TokenAnswer {
    const isFirst = this.#sasl === null;
    this.#sasl ??= new SaslExchange();
    const step = this.#sasl.step(token, this.#host.authenticator, this.#stream.remote);
    if (step === null) {
      if (isFirst) this.#reportSaslFailure(NO_LOGIN);
      return NO_TOKEN;
    }
    if (step.kind === 'challenge' && step.warning !== undefined) {
      this.#sasl.hasWarned = true;
      this.#reportSaslFailure(step.warning);
    }
    if (step.kind === 'failure') return this.#onSaslFailed(step.reason);
    if (step.kind === 'success' && !this.#addIdentities(step.identities)) {
      return this.#onSaslFailed(`a connection has ${IDENTITIES_MAX} identities at most`);
    }
    return { error: ErrorCode.ok, token: step.token };
  }

  #replyAtOnce(xid: number, error: ErrorCode): void {
    this.#client.output.beginReply(xid, 0, error);
    this.#client.output.endReply(this.#host.turn.nowMs());
  }

  /** @returns false when the identities are too many or too long */
  #addIdentities(added: readonly Identity[]): boolean {
    const identities = addIdentities(this.identities, added, this.#host.frameBytesMax);
    if (identities === null) return false;
    this.identities = identities;
    this.isBarred = !this.#host.authenticator.isAdmitted(identities);
    return true;
  }

  #reportSaslFailure(reason: string): void {
    this.#host.trace.emit({ kind: 'auth-failed', remote: this.#stream.remote, scheme: 'sasl', reason });
  }

  #onSaslFailed(reason: string): TokenAnswer {
    if (this.#sasl?.hasWarned !== true) this.#reportSaslFailure(reason);
    switch (this.#host.authenticator.saslFailure) {
      case SaslFailure.isIgnored:
        return NO_TOKEN;
      case SaslFailure.closes:
        return { error: ErrorCode.authFailed, token: null };
      case SaslFailure.closesAsRequired:
        return { error: ErrorCode.sessionClosedRequireSaslAuth, token: null };
    }
  }
}

const NO_LOGIN =
  'this server has no login, so it continues unauthenticated: set java.security.auth.login.config or sasl.usersFile';
const NO_TOKEN: TokenAnswer = { error: ErrorCode.ok, token: null };
