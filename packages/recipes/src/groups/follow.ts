import type { Client, WatchStreamEvent } from '@meerkat/client';
import { makeDeferred, type Pulse } from '../kernel/latest.ts';

export interface FollowOptions {
  /** Also learns of everything below the znode. */
  readonly recursive: boolean;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** The watch is armed: what changes from now on is reported, and what changed before it was may not have been. Raises the pulse. */
  readonly onArmed: () => void;
  /** Raises the pulse where there is something to look at. */
  readonly onEvent: (event: WatchStreamEvent) => void;
  readonly pulse: Pulse;
  /** Looks at what is there, and does what is to be done: whenever the pulse was raised, one look after the other. */
  readonly look: () => Promise<void>;
  /** What keeps the watch from being armed, or what a look has thrown; AbortedError, ClosedError. It ends it. */
  readonly onFailure: (error: Error) => void;
}

/**
 * Follows what changes at a path, and looks after each change, until the signal is aborted or the client ends.
 *
 * @returns when the service has forgotten the watch
 */
export async function follow(client: Client, path: string, options: FollowOptions): Promise<void> {
  const { signal, pulse, look, onFailure } = options;
  const armed = makeDeferred<void>();
  const watched = watchOn(client, path, options, () => armed.resolve()).catch((error: Error) => {
    armed.reject(error);
    onFailure(error);
  });
  try {
    await armed.promise;
    while (!signal.aborted) {
      pulse.reset();
      await look();
      await pulse.wait();
    }
  } catch (error) {
    onFailure(error as Error);
  }
  await watched;
}

/**
 * The loop over a watch ends quietly also when all watches are taken off the path (`client.removeWatches`): then another one
 * is armed.
 */
async function watchOn(client: Client, path: string, options: FollowOptions, armed: () => void): Promise<void> {
  const { recursive, signal, onArmed, onEvent } = options;
  while (!signal.aborted) {
    await using watch = client.watch(path, { recursive, signal });
    await watch.ready;
    armed();
    onArmed();
    for await (const event of watch) onEvent(event);
  }
}
