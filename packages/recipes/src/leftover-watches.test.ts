/** A wait that is given up, and asked for again and again, keeps no watches: until the znode changes they would be kept. */
import { type CallOptions, type Client, text, ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Barrier } from './barriers/barrier.ts';
import { Condition } from './barriers/condition.ts';
import { CountDownLatch } from './barriers/count-down-latch.ts';
import { DoubleBarrier } from './barriers/double-barrier.ts';
import type { Inside } from './barriers/inside.ts';
import { Rendezvous } from './barriers/rendezvous.ts';
import { Election } from './election/election.ts';
import { Mutex } from './locks/mutex.ts';
import { PriorityLock } from './locks/priority-lock.ts';
import { ReadWriteLock } from './locks/read-write-lock.ts';
import { Semaphore } from './locks/semaphore.ts';
import { Queue } from './queues/queue.ts';
import { inWorld } from './testing/in-world.ts';
import { WatchCounter } from './testing/watch-counter.ts';

interface Case {
  /** What another one does before, so that there is something to wait for. */
  readonly prepare?: (other: Client) => Promise<unknown>;
  readonly open: (client: Client) => (call: CallOptions) => Promise<unknown>;
}

const MEMBERS = 2;

const CASES: Readonly<Record<string, Case>> = {
  'Mutex.acquire': {
    prepare: (other) => new Mutex(other, '/it').acquire(),
    open: (client) => (call) => new Mutex(client, '/it').acquire(call),
  },
  'PriorityLock.acquire': {
    prepare: (other) => new PriorityLock(other, '/it').acquire(),
    open: (client) => (call) => new PriorityLock(client, '/it').acquire(call),
  },
  'ReadWriteLock.acquireRead': {
    prepare: (other) => new ReadWriteLock(other, '/it').acquireWrite(),
    open: (client) => (call) => new ReadWriteLock(client, '/it').acquireRead(call),
  },
  "Semaphore.acquire (Curator's layout)": {
    prepare: (other) => new Semaphore(other, '/it', { leasesMax: 1 }).acquire(),
    open: (client) => (call) => new Semaphore(client, '/it', { leasesMax: 1 }).acquire(call),
  },
  "Semaphore.acquire (kazoo's layout)": {
    prepare: (other) => new Semaphore(other, '/it', { layout: 'kazoo', leasesMax: 1 }).acquire(),
    open: (client) => (call) => new Semaphore(client, '/it', { layout: 'kazoo', leasesMax: 1 }).acquire(call),
  },
  'Election.campaign': {
    prepare: (other) => new Election(other, '/it', { id: 'one' }).campaign(),
    open: (client) => (call) => new Election(client, '/it', { id: 'two' }).campaign(call),
  },
  'Election.observe': {
    prepare: (other) => new Election(other, '/it', { id: 'one' }).campaign(),
    open:
      (client) =>
      async ({ timeoutMs = 0 }) => {
        const over = new AbortController();
        client.surroundings.clock.schedule(timeoutMs, () => over.abort());
        for await (const _ of new Election(client, '/it', { id: 'two' }).observe({ signal: over.signal }));
      },
  },
  'Queue.take': { open: (client) => (call) => new Queue(client, '/it').take(call) },
  'Queue.put into a full one': {
    prepare: (other) => new Queue(other, '/it', { codec: text, itemsMax: 1 }).put('one'),
    open: (client) => {
      const queue = new Queue(client, '/it', { codec: text, itemsMax: 1 });
      return (call) => queue.put('two', call);
    },
  },
  'Barrier.wait': {
    prepare: (other) => new Barrier(other, '/it').set(),
    open: (client) => (call) => new Barrier(client, '/it').wait(call),
  },
  'Barrier.wait where there is none': { open: (client) => (call) => new Barrier(client, '/it').wait(call) },
  'CountDownLatch.wait': { open: (client) => (call) => new CountDownLatch(client, '/it', 1).wait(call) },
  'CountDownLatch.wait for one that is open': {
    prepare: (other) => new CountDownLatch(other, '/it', 1).countDown(),
    open: (client) => (call) => new CountDownLatch(client, '/it', 1).wait(call),
  },
  'DoubleBarrier.enter': {
    open: (client) => {
      const barrier = new DoubleBarrier(client, '/it', MEMBERS);
      return (call) => barrier.enter(call);
    },
  },
  'Rendezvous.meet': {
    open: (client) => {
      const rendezvous = new Rendezvous(client, '/it', MEMBERS);
      return (call) => rendezvous.meet(new Uint8Array(1), call);
    },
  },
  'Condition.wait': {
    open: (client) => {
      const mutex = new Mutex(client, '/it');
      return async (call) => new Condition(client, '/changed', mutex).wait(await mutex.acquire(), call);
    },
  },
};

describe.each(Object.keys(CASES))('%s', (title) => {
  const { prepare, open } = CASES[title]!;

  test('keeps no watch when its caller gives up', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const counter = new WatchCounter(one.client);
      await prepare?.(two.client);
      const wait = open(counter.client);
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
    // Its first look is without watches: the right is taken away while it stands in the line.
    await (await queue.take()).done();
    const taking = expect(queue.take()).rejects.toMatchObject({ code: 'NOAUTH' });
    await sleep(500);
    await two.client.setAcl('/it', [{ perms: 0b11110, scheme: 'world', id: 'anyone' }]);
    // Of what one may not read one hears nothing either.
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

test('Inside.leave keeps no watch of one that came later either, when it waits for another one instead', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    const counter = new WatchCounter(one.client);
    const other = new DoubleBarrier(two.client, '/it', MEMBERS);
    const [inside] = await enterInTurn(new DoubleBarrier(counter.client, '/it', MEMBERS), other);
    // The barrier was closed by hand; the name is lower than any of a member.
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
