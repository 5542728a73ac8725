import {
  type ConnectRequest,
  ErrorCode,
  JuteReader,
  OpCode,
  PASSWORD_BYTES,
  readConnectResponse,
  writeConnectRequest,
} from '@meerkat/protocol';
import type { Outbox } from './outbox.ts';
import type { SaslExchange } from './ports.ts';

/** The session granted by the server. */
export interface AcceptedSession {
  readonly sessionId: bigint;
  readonly password: Uint8Array;
  /** Negotiated, milliseconds. */
  readonly timeoutMs: number;
  /** The server has no quorum and accepts reads only. */
  readonly isReadOnly: boolean;
}

/** The result of one frame of the server. */
export type HandshakeStep =
  /** More frames follow. */
  | { readonly kind: 'continues' }
  | { readonly kind: 'accepted'; readonly session: AcceptedSession }
  /** The server does not know the session, or creates none. */
  | { readonly kind: 'refused' }
  /** `detail` is appended to the name of the server. */
  | { readonly kind: 'sasl-refused'; readonly detail: string }
  | { readonly kind: 'sasl-failed'; readonly detail: string }
  | { readonly kind: 'not-zookeeper'; readonly detail: string };

/**
 * The beginning of a connection: connect request and response, then the SASL exchange if there is one. Nothing else may
 * be sent meanwhile.
 */
export class Handshake {
  readonly #outbox: Outbox;
  readonly #reader: JuteReader = new JuteReader();
  readonly #makeSasl: (() => SaslExchange) | null;
  #sasl: SaslExchange | null = null;
  #session: AcceptedSession | null = null;
  #saslXid = 0;

  constructor(outbox: Outbox, request: ConnectRequest, makeSasl: (() => SaslExchange) | null) {
    this.#outbox = outbox;
    this.#makeSasl = makeSasl;
    outbox.writeFirst((writer) => writeConnectRequest(writer, request));
  }

  /** The server has answered the connect request; the SASL exchange is in progress. */
  get isInSasl(): boolean {
    return this.#sasl !== null;
  }

  onFrame(bytes: Uint8Array, start: number, end: number): HandshakeStep {
    this.#reader.reset(bytes, start, end);
    return this.#session === null ? this.#onConnectResponse(end - start) : this.#onSaslReply(this.#session);
  }

  #onConnectResponse(length: number): HandshakeStep {
    const response = readConnectResponse(this.#reader);
    // The shortest response, without the read-only byte, is as long as a ReplyHeader and twenty bytes more.
    if (this.#reader.failed || length < CONNECT_RESPONSE_BYTES_MIN || response.password.length !== PASSWORD_BYTES) {
      return { kind: 'not-zookeeper', detail: 'its first answer is no ConnectResponse' };
    }
    const { sessionId, password, timeoutMs } = response;
    if (timeoutMs <= 0) return { kind: 'refused' };
    this.#session = { sessionId, password, timeoutMs, isReadOnly: response.readOnly };
    if (this.#makeSasl === null) return { kind: 'accepted', session: this.#session };
    this.#sasl = this.#makeSasl();
    this.#sendToken(this.#sasl.start());
    return { kind: 'continues' };
  }

  #onSaslReply(session: AcceptedSession): HandshakeStep {
    const reader = this.#reader;
    reader.int();
    reader.longClamped();
    const code = reader.int();
    if (code !== ErrorCode.ok) {
      const detail = `refused SASL (code ${code}): ${this.#sasl!.whyRefused ?? 'its log says why'}`;
      if (this.#sasl!.onRefused?.() === true) return { kind: 'sasl-failed', detail: `the server ${detail}` };
      return { kind: 'sasl-refused', detail };
    }
    const token = reader.remaining > 0 ? (reader.buffer()?.slice() ?? null) : null;
    if (reader.failed) return { kind: 'not-zookeeper', detail: 'its answer to a SASL token is malformed' };
    if (token === null && this.#sasl!.isComplete === true) return { kind: 'accepted', session };
    // A server without SASL answers without a token. Continuing unauthenticated would not be what the user configured.
    if (token === null) return { kind: 'sasl-failed', detail: 'the server has no SASL configured' };
    let answer: Uint8Array | null;
    try {
      answer = this.#sasl!.respond(token);
    } catch (error) {
      return { kind: 'sasl-failed', detail: error instanceof Error ? error.message : String(error) };
    }
    if (answer === null) return { kind: 'accepted', session };
    this.#sendToken(answer);
    return { kind: 'continues' };
  }

  #sendToken(token: Uint8Array): void {
    this.#saslXid++;
    this.#outbox.write(this.#saslXid, { op: OpCode.sasl, token });
  }
}

/** int, int, long, buffer of 16 bytes. */
const CONNECT_RESPONSE_BYTES_MIN = 36;
