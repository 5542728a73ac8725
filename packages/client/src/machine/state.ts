import type { Target } from './ports.ts';

/**
 * The states of a client.
 *
 *     connecting ──► connected ◄──► suspended ──► lost ──► connected (same session, or a new one)
 *          │         read-only                      │
 *          └──────────────┴─────────┬───────────────┘
 *                        closed, auth-failed: final
 *
 * - connecting: no server has answered yet.
 * - connected: requests are sent at once.
 * - read-only: connected to a server without a quorum; reads only, while others are asked for one that has it.
 * - suspended: the connection is gone, the session probably still lives. New requests wait. The holder of a lock should
 *   pause.
 * - lost: the session may be over: its timeout has passed since the sending of the last request that was answered, or
 *   the server has said so. Final for everything that depended on the session; requests are refused at once.
 * - closed: `close` was called.
 * - auth-failed: the server refused the credentials.
 */
export type ClientState = 'connecting' | 'connected' | 'read-only' | 'suspended' | 'lost' | 'closed' | 'auth-failed';

export interface StateChange {
  readonly state: ClientState;
  readonly previous: ClientState;
  /** As text, for logs: "connected to 10.0.0.7:2181", "connection closed by the server". */
  readonly reason: string;
  /** 0n while there is none. */
  readonly sessionId: bigint;
  /**
   * For `connected` and `read-only`: whether the session is the same as before, so that its ephemeral znodes still
   * exist. True for the first connection.
   */
  readonly sameSession: boolean;
  /** The server, when there is one. */
  readonly server: Target | null;
}

/** Connected or read-only. */
export function isConnectedState(state: ClientState): boolean {
  return state === 'connected' || state === 'read-only';
}

/** No state follows this one. */
export function isFinalState(state: ClientState): boolean {
  return state === 'closed' || state === 'auth-failed';
}
