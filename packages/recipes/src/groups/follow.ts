import type { Client, WatchStreamEvent } from '@meerkat/client';
import { makeDeferred, type Pulse } from '../kernel/latest.ts';

export interface FollowOptions {
  /** Also receives events of the whole subtree. */
  readonly recursive: boolean;
  /** Stops following. */
  readonly signal: AbortSignal;
  /** The watch is armed: changes from now on are reported, earlier ones may not have been. Raises the pulse. */
  readonly onArmed: () => void;
  /** Raises the pulse if the event requires a look. */
  readonly onEvent: (event: WatchStreamEvent) => void;
  readonly pulse: Pulse;
  /** Reads the current state and acts on it: whenever the pulse was raised, one call at a time. */
  readonly look: () => Promise<void>;
  /** Called with what prevents arming, or what a look has thrown; AbortedError, ClosedError. It ends following. */
  readonly onFailure: (error: Error) => void;
}

/**
 * Follows the changes at a path, with a look after each change, until the signal is aborted or the client is closed.
 *
 * @returns when the service has removed the watch
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
 * The loop over a watch also ends without an error when all watches of the path are removed (`client.removeWatches`):
 * then another one is armed.
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
