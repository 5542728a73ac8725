import { WatcherType } from '@meerkat/protocol';
import type { WatchKind } from './machine/watch-listener.ts';
import type { WatchSelection } from './operations.ts';

/** The values of a selection in requests. */
export const WATCHER_TYPES: Readonly<Record<WatchSelection, number>> = {
  children: WatcherType.children,
  data: WatcherType.data,
  any: WatcherType.any,
  persistent: WatcherType.persistent,
  recursive: WatcherType.persistentRecursive,
};

/** The listeners of a selection in this client. */
export const WATCH_KINDS: Readonly<Record<WatchSelection, readonly WatchKind[]>> = {
  children: ['child'],
  data: ['data', 'exist'],
  any: ['child', 'data', 'exist', 'persistent', 'recursive'],
  persistent: ['persistent'],
  recursive: ['recursive'],
};
