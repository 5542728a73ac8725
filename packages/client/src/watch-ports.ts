import type { Clock } from './clock.ts';
import type { WatchListener } from './machine/watch-listener.ts';
import type { CallOptions, Requester } from './requester.ts';

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
