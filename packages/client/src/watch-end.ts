import { NoWatcherError } from './errors.ts';
import type { WatchEnd } from './machine/watch-listener.ts';
import { makeError } from './make-error.ts';
import type { About } from './requester.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

/** The error of a watch that ends without another event. */
export function makeEndError(reason: WatchEnd, about: About): ZooKeeperError {
  if (reason === 'removed') return new NoWatcherError({ ...about, detail: 'the watch was removed by removeWatches' });
  const detail =
    reason === 'closed' ? 'the watch ends with it' : 'a server refused them; the watch ends with the client';
  return makeError({ kind: reason, wasSent: false, server: null, detail }, about);
}
