import type { ConnectRequest, Zxid } from '@meerkat/protocol';
import type { SessionPasswords } from '../base/ports.ts';
import type { ConnectDecision } from './connect-decision.ts';
import { formatSessionId } from './session.ts';
import type { SessionTable } from './session-table.ts';

export interface SessionTimeoutLimits {
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
}

/**
 * Decides a connect request (ZooKeeperServer.processConnectRequest).
 *
 * A resumed session expires by the newly requested timeout; the stored timeout stays the same.
 */
export function decideConnect(
  request: ConnectRequest,
  sessions: SessionTable,
  lastApplied: Zxid,
  limits: SessionTimeoutLimits,
  passwords: SessionPasswords,
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
  if (!passwords.isValid(request.sessionId, request.password)) {
    return { kind: 'refuse', reason: `the password for session ${id} is wrong` };
  }
  return sessions.resume(request.sessionId, timeoutMs, nowMs);
}
