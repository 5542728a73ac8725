import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { ChildLists } from './child-lists.ts';

test('a session caches 3,000,000 names of children: the least recently used list is evicted', async () => {
  const names = new Array<string>(1_400_000).fill('x');
  const read: string[] = [];
  const stat = { cversion: 1, numChildren: 0, dataLength: 0, isEphemeral: false };
  const client = {
    children: async (path: string) => {
      read.push(path);
      return { children: names, stat };
    },
    exists: async () => stat,
  } as unknown as Client;
  const lists = new ChildLists(client);
  const look = async (path: string): Promise<void> => {
    const { total } = await lists.page(path, { from: 0, count: 1, isFresh: false }, [], { timeoutMs: 1000 });
    expect(total).toBe(1_400_000);
  };
  for (const path of ['/a', '/b', '/a']) await look(path);
  expect(read).toEqual(['/a', '/b']);
  for (const path of ['/c', '/a', '/b']) await look(path);
  expect(read).toEqual(['/a', '/b', '/c', '/b']);
});
