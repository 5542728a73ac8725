import type { Target } from '../machine/ports.ts';
import type { About } from '../requester.ts';
import { requestChannel } from './channels.ts';

/** One request, as the subscribers of `requestChannel` see it: the same object from the start to the end. */
export interface RequestTrace {
  /** The method of the client. */
  readonly operation: string;
  /** As the user wrote it, without the chroot; null when the operation has none. */
  readonly path: string | null;
  /** The server of the connection, at the start and again at the end; null while there is none. */
  server: Target | null;
  /** At the end: the largest zxid that the session has seen, which no change that the reply shows is newer than. */
  zxid: bigint | null;
  /** At the end, if it succeeded. */
  result?: unknown;
  /** At the end, if it failed: a ZooKeeperError. */
  error?: unknown;
}

/** The session on which a request is made. */
export interface TracedSession {
  readonly server: Target | null;
  readonly lastZxid: number;
}

/**
 * Somebody listens. Asked before anything is made for a trace: without subscribers a request costs this look alone,
 * about a nanosecond and no memory (Node 20).
 */
export function isTraced(): boolean {
  return requestChannel.hasSubscribers;
}

/**
 * Makes a request and tells the subscribers of `requestChannel` of it.
 *
 * @example
 * return isTraced() ? traceRequest(about, session, () => send(plan)) : send(plan);
 */
export function traceRequest<T>(about: About, session: TracedSession, run: () => Promise<T>): Promise<T> {
  const { operation, path } = about;
  const trace: RequestTrace = { operation, path, server: session.server, zxid: null };
  const complete = (): void => {
    trace.server = session.server ?? trace.server;
    trace.zxid = BigInt(session.lastZxid);
  };
  return requestChannel.tracePromise(() => run().finally(complete), trace);
}
