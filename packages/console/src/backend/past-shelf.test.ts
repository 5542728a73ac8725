import type { Client } from '@meerkat/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { PastTree } from './options.ts';
import { PastShelf } from './past-shelf.ts';

function startShelf() {
  const opened: string[] = [];
  const closed: string[] = [];
  const shelf = new PastShelf({
    span: () => Promise.resolve(null),
    open: (moment) => {
      opened.push(moment);
      const close = () => Promise.resolve(void closed.push(moment));
      const tree: PastTree = { zxid: moment, atMs: null, client: {} as Client, close };
      return Promise.resolve(moment === 'never' ? null : tree);
    },
  });
  onTestFinished(() => shelf.close());
  return { shelf, opened, closed };
}

const look = ({ zxid }: PastTree): Promise<string> => Promise.resolve(zxid);

test('keeps at most two moments: of three the least recently used one is closed', async () => {
  const { shelf, opened, closed } = startShelf();
  for (const moment of ['0x1', '0x2', '0x1', '0x3', '0x1']) expect(await shelf.use(moment, look)).toBe(moment);
  expect(opened).toEqual(['0x1', '0x2', '0x3']);
  expect(closed).toEqual(['0x2']);
});

test('refuses a third moment while two are in use', async () => {
  const { shelf, closed } = startShelf();
  await shelf.use('0x1', () =>
    shelf.use('0x2', async () => {
      await expect(shelf.use('0x3', look)).rejects.toMatchObject({ status: 429 });
      expect(await shelf.use('0x1', look)).toBe('0x1');
    }),
  );
  expect(closed).toEqual([]);
});

test('a use that fails is over: others find room', async () => {
  const { shelf, closed } = startShelf();
  const failure = new Error('no such znode');
  for (const moment of ['0x1', '0x2']) {
    await expect(shelf.use(moment, () => Promise.reject(failure))).rejects.toBe(failure);
  }
  expect(await shelf.use('0x3', look)).toBe('0x3');
  expect(closed).toEqual(['0x1']);
});

test('refuses an invalid moment, and does not keep it', async () => {
  const { shelf, opened } = startShelf();
  for (let i = 0; i < 2; i++) await expect(shelf.use('never', look)).rejects.toMatchObject({ code: 'bad-moment' });
  expect(opened).toEqual(['never', 'never']);
});

test('closes a moment that has not been used for a minute', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { shelf, closed } = startShelf();
  await shelf.use('0x1', look);
  await vi.advanceTimersByTimeAsync(50_000);
  expect(closed).toEqual([]);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(closed).toEqual(['0x1']);
});

test('drops a moment whose client has ended, and reads it again', async () => {
  const states = ['closed', 'connected'];
  const shelf = new PastShelf({
    span: () => Promise.resolve(null),
    open: async (zxid) => ({ zxid, atMs: null, client: { state: states.shift() } as Client, close: async () => {} }),
  });
  onTestFinished(() => shelf.close());
  await expect(shelf.use('0x1', look)).rejects.toMatchObject({ code: 'past-lost' });
  expect(await shelf.use('0x1', look)).toBe('0x1');
});
