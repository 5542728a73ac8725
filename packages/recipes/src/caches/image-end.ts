import { AbortedError, type Client, ClosedError, NoWatcherError } from '@meerkat/client';

/** What has ended an image whose watch is over for no other reason. */
export function endedByUser(client: Client, path: string): Error {
  const about = { operation: 'cache', path };
  if (client.state === 'closed') return new ClosedError(about);
  return new NoWatcherError({ ...about, detail: 'its watch was taken off by removeWatches' });
}

/** The user has ended it: by closing it or the client, or by taking all watches off the path. */
export function isGoodEnd(error: Error): boolean {
  return error instanceof AbortedError || error instanceof ClosedError || error instanceof NoWatcherError;
}
