/** The environment of the client's state machines; real in the client, virtual in the simulator. */

import type { HostPort } from '@meerkat/protocol';

export interface MonotonicClock {
  /** Milliseconds that never decrease; the origin is arbitrary. */
  monotonicMs(): number;
}

export interface Random {
  /** An integer of 32 random bits, 0 … 2**32 − 1. */
  uint32(): number;
}

/** A server as named by the connect string. */
export type { HostPort };

/** A server with one of the addresses of its name. */
export interface Target extends HostPort {
  /** A v4 or v6 address. */
  readonly address: string;
}

/** host:port, and the address if it differs. For people. */
export function formatServer({ host, port, address }: Target): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return address === host ? `${name}:${port}` : `${name}:${port} (${address})`;
}

/** Why an attempt to reach a server failed. */
export type AttemptFailure =
  /** The name could not be looked up. */
  | 'dns'
  /** Nothing listens at the address. */
  | 'refused'
  /** No route, network down, reset while dialling and the like. */
  | 'unreachable'
  /** No connection, or no answer to the first frame, in time. */
  | 'timed-out'
  /** TLS handshake failed. */
  | 'tls'
  /** The peer does not use ZooKeeper's protocol. */
  | 'not-zookeeper'
  /** The server closed the connection instead of answering: it has no quorum, is starting, or is full. */
  | 'not-serving'
  /** SASL was refused. */
  | 'sasl';

/** One attempt that failed, for people. */
export interface FailedAttempt {
  readonly host: string;
  readonly port: number;
  /** null when the name had no address. */
  readonly address: string | null;
  readonly failure: AttemptFailure;
  /** What the system or the server said. */
  readonly detail: string;
}

/** The client's half of a SASL exchange; created for each connection. */
export interface SaslExchange {
  /** The client has sent its last token: an answer without one means that the server accepts. Default false. */
  readonly isComplete?: boolean;
  /** The first token; empty for mechanisms in which the server begins. */
  start(): Uint8Array;
  /**
   * Answers a token of the server. null: the exchange is complete and nothing is sent.
   *
   * @throws Error when the server's token is not acceptable; the connection is then closed
   */
  respond(token: Uint8Array): Uint8Array | null;
  /**
   * The server has refused. true: the next exchange may succeed, so the client keeps trying; otherwise it ends as
   * `auth-failed`. Default false.
   */
  onRefused?(): boolean;
  /** The probable reason of a refusal of the last token, and what to do, for the error. */
  readonly whyRefused?: string;
}
