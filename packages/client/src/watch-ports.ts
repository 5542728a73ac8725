import type { Clock } from './clock.ts';
import type { WatchListener } from './machine/watch-listener.ts';
import type { CallOptions, Requester } from './requester.ts';

/** The session's interface for watches, besides requests. */
export interface WatchPorts extends Requester {
  /** Shared by clients with different chroots: what is known of its service applies to all of them. */
  readonly session: object;
  /** 0n while there is none. */
  readonly sessionId: bigint;
  readonly clock: Pick<Clock, 'schedule'>;
  /** Resolves as soon as there is a connection, at once when there is one. Rejects when the client has ended. */
  whenConnected(options: CallOptions): Promise<void>;
  /** Removes a listener from the one-shot watches of an absolute path. Events of the server's watches are dropped. */
  forgetOneShots(path: string, listener: WatchListener): void;
}
