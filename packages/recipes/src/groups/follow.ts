import type { Client, WatchStreamEvent } from '@meerkat/client';

export interface FollowOptions {
  /** Also learns of everything below the znode. */
  readonly recursive: boolean;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** The watch is armed: what changes from now on is reported, and what changed before it was may not have been. */
  readonly onArmed: () => void;
  readonly onEvent: (event: WatchStreamEvent) => void;
}

/**
 * Says what changes at a path until the signal is aborted or the client ends. The loop over a watch ends quietly also when
 * all watches are taken off the path (`client.removeWatches`): then another one is armed.
 *
 * @returns when the service has forgotten the watch
 * @throws what keeps the watch from being armed; AbortedError, ClosedError
 */
export async function follow(client: Client, path: string, options: FollowOptions): Promise<void> {
  const { recursive, signal, onArmed, onEvent } = options;
  while (!signal.aborted) {
    await using watch = client.watch(path, { recursive, signal });
    await watch.ready;
    onArmed();
    for await (const event of watch) onEvent(event);
  }
}
