import { AbortedError, type Client, ClosedError, NoWatcherError } from '@meerkat/client';

/** Why an image has ended whose watch ended without an error. */
export function endedByUser(client: Client, path: string): Error {
  const about = { operation: 'cache', path };
  if (client.state === 'closed') return new ClosedError(about);
  return new NoWatcherError({ ...about, detail: 'its watch was taken off by removeWatches' });
}

/** Ended by the user: by closing it or the client, or by removing all watches of the path. */
export function isGoodEnd(error: Error): boolean {
  return error instanceof AbortedError || error instanceof ClosedError || error instanceof NoWatcherError;
}
