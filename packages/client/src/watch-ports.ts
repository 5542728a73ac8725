import type { ClientRequester } from './client-requester.ts';
import type { Clock } from './clock.ts';
import { isConnectedState } from './machine/state.ts';
import type { WatchListener } from './machine/watches.ts';
import type { CallOptions, Requester } from './requester.ts';
import { waitForState } from './states.ts';

/** What watches need of the session besides requests. */
export interface WatchPorts extends Requester {
  /** The session that clients with different chroots share: what is known of its service is kept for all of them. */
  readonly session: object;
  /** 0n while there is none. */
  readonly sessionId: bigint;
  readonly clock: Pick<Clock, 'schedule'>;
  /** Resolves as soon as there is a connection, at once when there is one. Rejects when the client has ended. */
  whenConnected(options: CallOptions): Promise<void>;
  /** Takes a listener off the one-shot watches of an absolute path. The server's fire into the void. */
  forgetOneShots(path: string, listener: WatchListener): void;
}

/** The ports that a client has. */
export function makeWatchPorts(requester: ClientRequester): WatchPorts {
  const { session } = requester;
  return {
    session,
    clock: session.clock,
    get sessionId() {
      return session.session.identity?.id ?? 0n;
    },
    absolute: (path, operation) => requester.absolute(path, operation),
    relative: (path) => requester.relative(path),
    request: (request, options, about, listener) => requester.request(request, options, about, listener),
    addWatch: (path, isRecursive, listener, options, about) =>
      requester.addWatch(path, isRecursive, listener, options, about),
    whenConnected: (options) => waitForState(session, isConnectedState, 'watch', options),
    forgetOneShots(path, listener) {
      const { watches } = session.session;
      watches.remove('data', path, listener);
      watches.remove('exist', path, listener);
      watches.remove('child', path, listener);
    },
  };
}
