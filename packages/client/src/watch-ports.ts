import type { Request } from '@meerkat/protocol';
import type { ClientRequester } from './client-requester.ts';
import type { ClientSession } from './client-session.ts';
import type { Clock } from './clock.ts';
import { isConnectedState } from './machine/state.ts';
import type { WatchListener } from './machine/watch-listener.ts';
import type { About, CallOptions, Requester, WatchHandle } from './requester.ts';
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
  return new ClientWatchPorts(requester);
}

class ClientWatchPorts implements WatchPorts {
  readonly session: ClientSession;
  readonly #requester: ClientRequester;

  constructor(requester: ClientRequester) {
    this.session = requester.session;
    this.#requester = requester;
  }

  get sessionId(): bigint {
    return this.session.session.identity?.id ?? 0n;
  }

  get clock(): Clock {
    return this.session.clock;
  }

  absolute(path: string, operation: string): string {
    return this.#requester.absolute(path, operation);
  }

  relative(path: string): string {
    return this.#requester.relative(path);
  }

  request<T>(request: Request, options: CallOptions | undefined, about: About, listener?: WatchListener): Promise<T> {
    return this.#requester.request(request, options, about, listener);
  }

  addWatch(
    path: string,
    isRecursive: boolean,
    listener: WatchListener,
    options: CallOptions | undefined,
    about: About,
  ): Promise<WatchHandle> {
    return this.#requester.addWatch(path, isRecursive, listener, options, about);
  }

  whenConnected(options: CallOptions): Promise<void> {
    return waitForState(this.session, isConnectedState, 'watch', options);
  }

  forgetOneShots(path: string, listener: WatchListener): void {
    this.session.session.watches.forgetOneShots(path, listener);
  }
}
