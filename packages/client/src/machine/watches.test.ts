import { AddWatchMode, ErrorCode, EventType, OpCode, type SetWatchesRequest, WatcherType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { WatchKind, WatchListener } from './watch-listener.ts';
import { Watches } from './watches.ts';

const KINDS: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];
const LISTS = {
  data: 'dataWatches',
  exist: 'existWatches',
  child: 'childWatches',
  persistent: 'persistentWatches',
  recursive: 'persistentRecursiveWatches',
} as const;

const SILENT: WatchListener = {
  onWatchEvent() {},
  onWatchSuspended() {},
  onWatchRearmed() {},
  onWatchEnded() {},
};

/** The kinds that a request arms on a path. */
function armed(request: SetWatchesRequest | undefined, path: string): WatchKind[] {
  return KINDS.filter((kind) => [...(request?.[LISTS[kind]] ?? [])].includes(path));
}

const SUBSETS = Array.from({ length: 2 ** KINDS.length - 1 }, (_, i) =>
  KINDS.filter((_kind, bit) => ((i + 1) >> bit) % 2 === 1),
);

describe('on a new connection', () => {
  // A persistent watch misses events while disconnected. Only setWatches of a one-shot watch makes the server report
  // them.
  test.each(SUBSETS.map((kinds) => [kinds.join(', '), kinds] as const))(
    'each of these on one path is armed by itself: %s',
    (_names, kinds) => {
      const watches = new Watches();
      for (const kind of kinds) watches.add(kind, '/a', { ...SILENT });
      watches.onDisconnected();
      const requests = watches.rearmRequests(7);
      expect(requests.map(({ relativeZxid }) => relativeZxid)).toEqual([7]);
      expect(armed(requests[0], '/a')).toEqual(kinds);
    },
  );
});

test('the deletion of a znode is reported to all of its one-shot watches, and once to a listener of several', () => {
  const watches = new Watches();
  const events: string[] = [];
  const listenerOf = (name: string): WatchListener => ({
    ...SILENT,
    onWatchEvent: ({ type }) => void events.push(`${name} ${type}`),
  });
  const both = listenerOf('both');
  watches.add('data', '/a', listenerOf('data'));
  watches.add('data', '/a', both);
  watches.add('child', '/a', listenerOf('child'));
  watches.add('child', '/a', both);
  watches.onEvent(EventType.nodeDeleted, '/a', 5n);
  expect(events.toSorted()).toEqual(['both deleted', 'child deleted', 'data deleted']);
  watches.onDisconnected();
  expect(watches.rearmRequests(7)).toEqual([]);
});

test('a listener that is forgotten gets no event of its one-shot watches, and others get theirs', () => {
  const watches = new Watches();
  const events: string[] = [];
  const listenerOf = (name: string): WatchListener => ({
    ...SILENT,
    onWatchEvent: ({ type, path }) => void events.push(`${name} ${type} ${path}`),
  });
  const [gone, kept] = [listenerOf('gone'), listenerOf('kept')];
  for (const kind of ['data', 'exist', 'child'] as const) {
    watches.add(kind, '/a', gone);
    watches.add(kind, '/b', gone);
  }
  watches.add('child', '/b', kept);
  watches.forgetOneShots('/a', gone);
  watches.forgetOneShots('/b', gone);
  expect(watches.size).toBe(1);
  const { nodeCreated, nodeDataChanged, nodeChildrenChanged } = EventType;
  for (const path of ['/a', '/b']) {
    for (const type of [nodeCreated, nodeDataChanged, nodeChildrenChanged]) watches.onEvent(type, path, 5n);
  }
  expect(events).toEqual(['kept children /b']);
});

describe('a reply leaves behind', () => {
  const { ok, noNode } = ErrorCode;
  test.each([
    ['exists of a znode', { op: OpCode.exists, path: '/a', watch: true }, ok, ['data']],
    ['exists of nothing', { op: OpCode.exists, path: '/a', watch: true }, noNode, ['exist']],
    ['getData of a znode', { op: OpCode.getData, path: '/a', watch: true }, ok, ['data']],
    ['getData of nothing', { op: OpCode.getData, path: '/a', watch: true }, noNode, []],
    ['getChildren2 of a znode', { op: OpCode.getChildren2, path: '/a', watch: true }, ok, ['child']],
    ['getChildren2 of nothing', { op: OpCode.getChildren2, path: '/a', watch: true }, noNode, []],
  ] as const)('the watch of %s, which is armed again as that', (_what, request, code, kinds) => {
    const watches = new Watches();
    watches.onReply(request, code, { ...SILENT });
    watches.onDisconnected();
    expect(armed(watches.rearmRequests(7)[0], '/a')).toEqual(kinds);
  });
});

describe('when a persistent watch ends', () => {
  test.each(['persistent', 'recursive'] as const)(
    'on a server with separate modes, one-shot watches that were armed themselves are left alone (%s)',
    (kind) => {
      const watches = new Watches();
      const lasting = { ...SILENT };
      watches.keepsModes = true;
      watches.add(kind, '/a', lasting);
      expect(watches.isCovered({ op: OpCode.getData, path: '/a', watch: true })).toBe(false);
      watches.add('data', '/a', { ...SILENT });
      watches.remove(kind, '/a', lasting);
      const watcherType = kind === 'persistent' ? WatcherType.persistent : WatcherType.persistentRecursive;
      expect(watches.removalRequests(kind, '/a', 7)).toEqual([{ op: OpCode.removeWatches, path: '/a', watcherType }]);
    },
  );

  test.each([false, true])(
    'the one-shot watches on its path are rearmed (server with separate modes: %s)',
    (keepsModes) => {
      const watches = new Watches();
      const lasting = { ...SILENT };
      watches.onAddWatchSent('/a', AddWatchMode.persistent);
      watches.add('persistent', '/a', lasting);
      watches.onAddWatchAnswered('/a', AddWatchMode.persistent);
      // They are left to the persistent watch, as long as the server may replace one by the other.
      expect(watches.isCovered({ op: OpCode.getChildren2, path: '/a', watch: true })).toBe(true);
      for (const kind of ['data', 'exist', 'child'] as const) watches.add(kind, '/a', { ...SILENT });
      watches.keepsModes = keepsModes;
      expect(watches.remove('persistent', '/a', lasting)).toBe(true);
      const requests = watches.removalRequests('persistent', '/a', 7);
      const rearm = requests.find(({ op }) => op === OpCode.setWatches) as SetWatchesRequest | undefined;
      expect(armed(rearm, '/a')).toEqual(['data', 'exist', 'child']);
      const removal = requests.find(({ op }) => op === OpCode.removeWatches);
      expect(removal).toMatchObject({ path: '/a', watcherType: keepsModes ? WatcherType.persistent : WatcherType.any });
    },
  );
});
