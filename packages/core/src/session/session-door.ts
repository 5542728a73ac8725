import type { ConnectRequest, Zxid } from '@meerkat/protocol';
import { isSamePassword, makeSessionPassword } from './password.ts';
import type { Revalidations } from './revalidations.ts';
import { formatSessionId, type Session } from './session.ts';
import type { SessionTable } from './session-table.ts';

/** What becomes of a connect request. */
export type ConnectDecision =
  /** Nothing is answered: the client shall try another server. */
  | { readonly kind: 'close'; readonly reason: string }
  /** The session is refused or gone: the client shall start anew. */
  | { readonly kind: 'refuse'; readonly reason: string }
  | { readonly kind: 'create'; readonly timeoutMs: number }
  | { readonly kind: 'resume'; readonly session: Session }
  /** Only the leader knows whether the session lives: it is to be asked. */
  | { readonly kind: 'revalidate'; readonly timeoutMs: number; readonly revalidations: Revalidations };

export interface SessionTimeoutLimits {
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
}

/**
 * Decides a connect request (ZooKeeperServer.processConnectRequest).
 *
 * A resumed session takes the newly requested timeout for its expiry; the one that is stored stays as it was.
 */
export function decideConnect(
  request: ConnectRequest,
  sessions: SessionTable,
  lastApplied: Zxid,
  limits: SessionTimeoutLimits,
  nowMs: number,
): ConnectDecision {
  if (request.lastZxidSeen > lastApplied) {
    return {
      kind: 'close',
      reason: `it has seen zxid 0x${request.lastZxidSeen.toString(16)} and this server is at 0x${lastApplied.toString(16)}`,
    };
  }
  const timeoutMs = Math.min(Math.max(request.timeoutMs, limits.sessionTimeoutMinMs), limits.sessionTimeoutMaxMs);
  if (request.sessionId === 0n) return { kind: 'create', timeoutMs };
  const id = formatSessionId(request.sessionId);
  if (!isSamePassword(request.password, makeSessionPassword(request.sessionId))) {
    return { kind: 'refuse', reason: `the password for session ${id} is wrong` };
  }
  return sessions.resume(request.sessionId, timeoutMs, nowMs);
}
