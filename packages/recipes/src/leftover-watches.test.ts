/** Repeated calls that are cancelled while they wait leave no watches: these would exist until the znode changes. */
import { ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Barrier } from './barriers/barrier.ts';
import { CountDownLatch } from './barriers/count-down-latch.ts';
import { DoubleBarrier } from './barriers/double-barrier.ts';
import type { Inside } from './barriers/inside.ts';
import { Election } from './election/election.ts';
import { Queue } from './queues/queue.ts';
import { inWorld } from './testing/in-world.ts';
import { WAITS, type Wait } from './testing/waits.ts';
import { WatchCounter } from './testing/watch-counter.ts';

const MEMBERS = 2;

/** All waits, and how each is set up and ended. */
const CASES: readonly (readonly [string, Wait])[] = [
  ...WAITS,
  [
    'Election.observe',
    async (client, other) => {
      await new Election(other, '/it', { id: 'one' }).campaign();
      return async ({ timeoutMs = 0 }) => {
        const over = new AbortController();
        client.surroundings.clock.schedule(timeoutMs, () => over.abort());
        for await (const _ of new Election(client, '/it', { id: 'two' }).observe({ signal: over.signal }));
      };
    },
  ],
  ['Barrier.wait where there is none', (client) => Promise.resolve((call) => new Barrier(client, '/it').wait(call))],
  [
    'CountDownLatch.wait for one that is open',
    async (client, other) => {
      await new CountDownLatch(other, '/it', 1).countDown();
      return (call) => new CountDownLatch(client, '/it', 1).wait(call);
    },
  ],
];

describe.each(CASES)('%s', (_title, prepare) => {
  test('keeps no watch when its caller cancels', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const counter = new WatchCounter(one.client);
      const wait = await prepare(counter.client, two.client);
      for (let i = 0; i < 5; i++) {
        await wait({ timeoutMs: 500 }).catch((error: unknown) => {
          if (!(error instanceof ZooKeeperError)) throw error;
          expect(error.code).toBe('TIMEOUT');
        });
      }
      await sleep(5000);
      expect(counter.kept).toBe(0);
    }));
});

test('Queue.take keeps no watch when the service refuses to list the items', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    const counter = new WatchCounter(one.client);
    await new Queue(two.client, '/it').put(new Uint8Array(1));
    await two.client.ensurePath('/it-leases');
    const queue = new Queue(counter.client, '/it');
    // Its first look sets no watches: the permission is revoked while it waits in the line.
    await (await queue.take()).done();
    const taking = expect(queue.take()).rejects.toMatchObject({ code: 'NOAUTH' });
    await sleep(500);
    await two.client.setAcl('/it', [{ perms: 0b11110, scheme: 'world', id: 'anyone' }]);
    // Znodes that may not be read cause no events either.
    await two.client.delete('/it-leases');
    await taking;
    await sleep(5000);
    expect(counter.kept).toBe(0);
  }));

test.each([
  ['the first', 0],
  ['the last', 1],
])('Inside.leave of %s who came keeps no watch of the members that it waits for', (_which, nth) =>
  inWorld(2, async ([one, two], { sleep }) => {
    const counter = new WatchCounter(one.client);
    const other = new DoubleBarrier(two.client, '/it', MEMBERS);
    const own = new DoubleBarrier(counter.client, '/it', MEMBERS);
    const [inside, theirs] = nth === 0 ? await enterInTurn(own, other) : (await enterInTurn(other, own)).reverse();
    for (let i = 0; i < 5; i++) {
      await expect(inside!.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    }
    await sleep(5000);
    expect(theirs!.isHeld).toBe(true);
    expect(counter.kept).toBe(0);
  }),
);

test('Inside.leave keeps no watch of a later member when it waits for another one instead', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    const counter = new WatchCounter(one.client);
    const other = new DoubleBarrier(two.client, '/it', MEMBERS);
    const [inside] = await enterInTurn(new DoubleBarrier(counter.client, '/it', MEMBERS), other);
    // The barrier was closed by hand; the name sorts before any member's.
    await two.client.delete('/it/ready');
    await two.client.create('/it/!', '', { mode: 'ephemeral' });
    for (let i = 0; i < 5; i++) {
      await expect(inside!.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    }
    await sleep(5000);
    expect(counter.kept).toBe(0);
  }));

async function enterInTurn(first: DoubleBarrier, second: DoubleBarrier): Promise<Inside[]> {
  const entering = first.enter();
  return Promise.all([entering, second.enter()]);
}
