import { ErrorCode } from '@meerkat/protocol';
import { type Authenticator, type ByteStream, type Identity, SaslFailure, type Trace } from '../base/ports.ts';
import type { ServerStats } from '../base/server-stats.ts';
import { addIdentities, IDENTITIES_MAX } from '../request/identities.ts';
import { SaslExchange } from './sasl-exchange.ts';

export interface AuthenticationHost {
  readonly authenticator: Authenticator;
  readonly stats: ServerStats;
  readonly trace: Trace;
  readonly frameBytesMax: number;
  /** As of `ConnectionHost`. */
  dataOf(path: string): Uint8Array | null;
}

/** Why an auth packet is refused; the connection is closed then. */
export interface AuthFailure {
  readonly reason: string;
  /** Nothing is answered, so that the client tries another server. */
  readonly isSilent: boolean;
}

/** What a SASL token is answered with; with an error the connection is closed. */
export interface TokenAnswer {
  readonly error: ErrorCode;
  readonly token: Uint8Array | null;
}

/** Who the client of a connection has shown to be, by its address, its certificate, auth packets and SASL. */
export class ClientAuthentication {
  identities: readonly Identity[];
  /** It may do nothing but authenticate. */
  isBarred: boolean;
  readonly #stream: ByteStream;
  readonly #host: AuthenticationHost;
  /** null until the first token has come. */
  #sasl: SaslExchange | null = null;

  constructor(stream: ByteStream, host: AuthenticationHost) {
    this.#stream = stream;
    this.#host = host;
    this.identities = host.authenticator.initialIdentities(stream.remote, stream.certificate ?? null);
    this.isBarred = !host.authenticator.isAdmitted(this.identities);
  }

  /** What an auth packet offers. @returns null when it is taken */
  offer(scheme: string | null, auth: Uint8Array | null): AuthFailure | null {
    const { authenticator, stats, trace } = this.#host;
    const { remote, certificate = null } = this.#stream;
    const dataOf = (path: string): Uint8Array | null => this.#host.dataOf(path);
    const added = scheme === null ? null : authenticator.authenticate(scheme, auth, remote, certificate, dataOf);
    if (added !== null && this.#addIdentities(added)) return null;
    stats.authFailures++;
    trace.emit({ kind: 'auth-failed', remote, scheme: scheme ?? '', reason: null });
    if (scheme !== null && authenticator.refusesSilently(scheme)) {
      return { reason: `authentication by "${scheme}" failed`, isSilent: true };
    }
    const why = added === null ? 'failed' : `is too much: a connection has ${IDENTITIES_MAX} identities at most`;
    return { reason: `authentication by "${scheme ?? ''}" ${why}`, isSilent: false };
  }

  onToken(token: Uint8Array): TokenAnswer {
    this.#sasl ??= new SaslExchange();
    const step = this.#sasl.step(token, this.#host.authenticator, this.#stream.remote);
    if (step === null) return NO_TOKEN;
    if (step.kind === 'failure') return this.#onSaslFailed(step.reason);
    if (step.kind === 'success' && !this.#addIdentities(step.identities)) {
      return this.#onSaslFailed(`a connection has ${IDENTITIES_MAX} identities at most`);
    }
    return { error: ErrorCode.ok, token: step.token };
  }

  /** @returns false when that is too many or too long */
  #addIdentities(added: readonly Identity[]): boolean {
    const identities = addIdentities(this.identities, added, this.#host.frameBytesMax);
    if (identities === null) return false;
    this.identities = identities;
    this.isBarred = !this.#host.authenticator.isAdmitted(identities);
    return true;
  }

  #onSaslFailed(reason: string): TokenAnswer {
    this.#host.trace.emit({ kind: 'auth-failed', remote: this.#stream.remote, scheme: 'sasl', reason });
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

const NO_TOKEN: TokenAnswer = { error: ErrorCode.ok, token: null };
