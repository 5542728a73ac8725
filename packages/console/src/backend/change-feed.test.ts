import type { Client, WatchOptions } from '@meerkat/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { ChangeInfo } from '../api/messages.ts';
import { ChangeFeed } from './change-feed.ts';

test('keeps values of the last 2,000 changed znodes, and buffers at most 20,000 events', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const events: object[] = [];
  let bufferMax: unknown = null;
  const client = {
    watch: (_path: string, options: WatchOptions) => {
      ({ bufferMax } = options as { readonly bufferMax?: number });
      return { path: '/', isOver: false, arrival: async () => {}, take: () => events.shift() ?? null };
    },
    get: async (path: string) => ({ data: Buffer.from(`of ${path}`), stat: { version: 1, isEphemeral: false } }),
  } as unknown as Client;
  const batches = new ChangeFeed(client, '/', new AbortController().signal).batches();
  const change = async (from: number, to: number): Promise<readonly ChangeInfo[]> => {
    for (let i = from; i < to; i++) events.push({ type: 'changed', path: `/${i}`, zxid: 1n });
    const next = batches.next();
    await vi.advanceTimersByTimeAsync(100);
    return (await next).value as readonly ChangeInfo[];
  };
  // A hundred are read at a time.
  for (let i = 0; i < 2100; i += 100) await change(i, i + 100);
  expect((await change(100, 101))[0]?.before).toBe('of /100');
  expect((await change(99, 100))[0]?.before).toBe(null);
  expect(bufferMax).toBe(20_000);
});
