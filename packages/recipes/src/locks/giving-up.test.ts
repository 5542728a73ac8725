/** A call may be cancelled at any moment: also between two requests, and when its result exists already. */
import { getEventListeners } from 'node:events';
import { type CallOptions, type Client, ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Election } from '../election/election.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { MultiLock } from './multi-lock.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

interface Case {
  readonly title: string;
  /** Nothing of ours may be left below these. */
  readonly lines: readonly string[];
  readonly take: (client: Client, options: CallOptions) => Promise<AsyncDisposable | null>;
}

const LAYOUTS = ['curator', 'kazoo'] as const;

const CASES: readonly Case[] = LAYOUTS.flatMap((layout) => {
  const leases = layout === 'curator' ? ['/it/leases', '/it/locks'] : ['/it', '/it-__lock__'];
  const semaphore = (client: Client): Semaphore => new Semaphore(client, '/it', { layout, leasesMax: 2 });
  const mutex = (client: Client): Mutex => new Mutex(client, '/it', { layout });
  const delayed = (client: Client): Mutex => new Mutex(client, '/it', { layout, lockDelayMs: 5 });
  const both = (client: Client): ReadWriteLock => new ReadWriteLock(client, '/it', { layout });
  const several = (client: Client): MultiLock => new MultiLock(client, ['/it', '/that'], { layout });
  const cases: readonly Case[] = [
    { title: 'Semaphore.acquire', lines: leases, take: (client, call) => semaphore(client).acquire(call) },
    { title: 'Semaphore.tryAcquire', lines: leases, take: (client, call) => semaphore(client).tryAcquire(call) },
    { title: 'Mutex.acquire', lines: ['/it'], take: (client, call) => mutex(client).acquire(call) },
    { title: 'Mutex.tryAcquire', lines: ['/it'], take: (client, call) => mutex(client).tryAcquire(call) },
    { title: 'Mutex.acquire with a delay', lines: ['/it'], take: (client, call) => delayed(client).acquire(call) },
    { title: 'ReadWriteLock.acquireRead', lines: ['/it'], take: (client, call) => both(client).acquireRead(call) },
    { title: 'ReadWriteLock.acquireWrite', lines: ['/it'], take: (client, call) => both(client).acquireWrite(call) },
    { title: 'MultiLock.acquire', lines: ['/it', '/that'], take: (client, call) => several(client).acquire(call) },
    {
      title: 'MultiLock.tryAcquire',
      lines: ['/it', '/that'],
      take: (client, call) => several(client).tryAcquire(call),
    },
  ];
  return cases.map((one) => ({ ...one, title: `${one.title} (layout of ${layout})` }));
});

const OTHERS: readonly Case[] = [
  {
    title: 'PriorityLock.acquire',
    lines: ['/it'],
    take: (client, call) => new PriorityLock(client, '/it').acquire(call),
  },
  {
    title: 'PriorityLock.tryAcquire',
    lines: ['/it'],
    take: (client, call) => new PriorityLock(client, '/it').tryAcquire(call),
  },
  {
    title: 'Election.campaign',
    lines: ['/it'],
    take: (client, call) => new Election(client, '/it', { id: 'one' }).campaign(call),
  },
];

describe.each([...CASES, ...OTHERS])('$title', ({ lines, take }) => {
  test.each(['timeout', 'abort'] as const)('leaves nothing behind, whenever its caller cancels (by %s)', (way) =>
    inWorld(1, async ([one], { sleep }) => {
      const { client } = one;
      for (const path of lines) await client.ensurePath(path);
      let gaveUp = 0;
      for (let limitMs = STEP_MS; ; limitMs += STEP_MS) {
        const controller = new AbortController();
        if (way === 'abort') void sleep(limitMs).then(() => controller.abort());
        const options = way === 'abort' ? { signal: controller.signal } : { timeoutMs: limitMs };
        let isTaken = false;
        try {
          await using taken = await take(client, options);
          expect(taken).not.toBeNull();
          isTaken = true;
        } catch (error) {
          if (!(error instanceof ZooKeeperError)) throw error;
          expect(error.code).toBe(way === 'abort' ? 'ABORTED' : 'TIMEOUT');
          gaveUp++;
        }
        await sleep(100);
        for (const path of lines) expect(await names(one, path), `${path} after ${limitMs} ms`).toEqual([]);
        if (isTaken) break;
      }
      expect(gaveUp).toBeGreaterThan(5);
    }),
  );
});

test("a contender leaves no listener on its session's signal, after whichever reply its caller cancels", () =>
  inWorld(2, async ([one, two], { sleep }) => {
    await using held = await new Mutex(two.client, '/it').acquire();
    const { client, afterRequest } = stepClient(one.client);
    const { lostSignal } = one.client;
    const before = getEventListeners(lostSignal, 'abort').length;
    let hasAnswered = true;
    for (let nth = 1; hasAnswered; nth++) {
      hasAnswered = false;
      const controller = new AbortController();
      afterRequest(nth, () => {
        hasAnswered = true;
        controller.abort();
        return Promise.resolve();
      });
      const acquiring = new Mutex(client, '/it').acquire({ signal: controller.signal, timeoutMs: 5000 });
      await expect(acquiring).rejects.toMatchObject({ outcome: 'not-applied' });
      await sleep(1000);
      expect(getEventListeners(lostSignal, 'abort'), `request ${nth}`).toHaveLength(before);
    }
    expect(held.isHeld).toBe(true);
  }));

/** Milliseconds; less than a request takes here. */
const STEP_MS = 0.25;
