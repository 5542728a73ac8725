import { OpCode } from '@meerkat/protocol';
import { call } from './calls.ts';
import type { ClientSession } from './client-session.ts';
import { checkOptions } from './known-options.ts';
import { isConnectedState, isFinalState } from './machine/state.ts';
import { makeError } from './make-error.ts';
import type { CallOptions } from './requester.ts';
import type { SessionInfo } from './session-info.ts';
import { waitForState } from './states.ts';

/** Ends the session on the servers; after `timeoutMs` the connection is cut instead. */
export async function closeSession(shared: ClientSession, options: CallOptions): Promise<void> {
  checkOptions('close', options, { operation: 'close', path: null });
  const { session } = shared;
  if (isFinalState(session.state)) return;
  const timeoutMs = options.timeoutMs ?? session.sessionTimeoutMs;
  const closed = waitForState(shared, isFinalState, 'close', { signal: options.signal, timeoutMs });
  session.close();
  shared.host.armTimer();
  try {
    await closed;
  } catch {
    shared.host.end('closed by the user, without an answer of the server');
  }
}

/**
 * Ends the client, but not the session: when all requests in flight are answered.
 *
 * @throws ClosedError, SessionLostError when there is no session to leave
 */
export async function detachSession(
  shared: ClientSession,
  info: SessionInfo | null,
  options: CallOptions,
): Promise<SessionInfo> {
  const about = { operation: 'detach', path: null };
  checkOptions('detach', options, about);
  const { session } = shared;
  if (info === null || isFinalState(session.state)) {
    const kind = isFinalState(session.state) ? 'closed' : 'session-lost';
    const failure = { kind, wasSent: false, server: null, detail: shared.reason } as const;
    throw makeError(failure, about);
  }
  // Without a connection there is nothing in flight.
  if (isConnectedState(session.state)) {
    // Answered after all earlier requests.
    const request = { op: OpCode.sync, path: '/' } as const;
    await call<void>(shared, { request, about, listener: null }, options).catch(() => {});
  }
  shared.host.end('detached by the user');
  return info;
}
