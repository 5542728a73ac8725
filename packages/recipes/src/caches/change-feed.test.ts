import type { Stat } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { CachedZnode } from './cached-znode.ts';
import { ChangeFeed } from './change-feed.ts';
import type { Difference } from './timeline.ts';

const makeZnode = (path: string): CachedZnode => ({ path, data: null, stat: {} as Stat });

test('a feed keeps nothing of znodes that were created and deleted, however many there were', async () => {
  const there = new Map<string, CachedZnode>();
  let asked = 0;
  const feed = new ChangeFeed(
    (path) => {
      asked++;
      return there.get(path) ?? null;
    },
    () => 1n,
    () => {},
  );
  const push = (difference: Difference<CachedZnode>): void => feed.push([difference]);
  for (let i = 0; i < 1000; i++) {
    const znode = makeZnode(`/queue/item-${i}`);
    push({ path: znode.path, before: null, after: znode });
    push({ path: znode.path, before: znode, after: null });
  }
  const last = makeZnode('/queue/last');
  there.set(last.path, last);
  push({ path: last.path, before: null, after: last });
  expect((await feed.next()).value).toMatchObject({ type: 'created', path: '/queue/last' });
  expect(asked, 'paths that had waited').toBe(1);
});

test('a znode deleted, recreated and deleted again is reported as deleted, a recreated one as changed', async () => {
  const there = new Map<string, CachedZnode>();
  const feed = new ChangeFeed(
    (path) => there.get(path) ?? null,
    () => 1n,
    () => {},
  );
  const [a, b] = [makeZnode('/a'), makeZnode('/b')];
  feed.push([a, b].map((znode) => ({ path: znode.path, before: znode, after: null })));
  feed.push([a, b].map((znode) => ({ path: znode.path, before: null, after: znode })));
  feed.push([{ path: '/a', before: a, after: null }]);
  there.set('/b', b);
  feed.end(null);
  const received: string[] = [];
  for await (const { type, path } of feed) received.push(`${type} ${path}`);
  expect(received).toEqual(['deleted /a', 'changed /b']);
});
