/**
 * The cost of one release with many waiters: only the next one is woken. `CONTENDERS=500` sets their number.
 */
import { env } from 'node:process';
import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { Holding } from '../kernel/holding.ts';
import { Fleet } from '../testing/fleet.ts';
import { FrameCounter } from '../testing/frame-counter.ts';
import { testTimeoutMs } from '../testing/seeds.ts';
import type { Lock } from './lock.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

const { CONTENDERS = '50' } = env;
const COUNT = Number(CONTENDERS);

/** Op codes of the protocol (ZooDefs.OpCode). */
const GET_DATA = 4;
const GET_CHILDREN_2 = 12;

test(
  `a release wakes one of ${COUNT} that wait`,
  async () => {
    const { world, ensemble } = new Fleet(1, { servers: 1 });
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await counter.connectAll(world, ensemble, COUNT + 1);
      const first = await new Mutex(clients[0]!, '/lock').acquire();
      let released = 0;
      const waiting = clients.slice(1).map(async (client) => {
        const lock = await new Mutex(client, '/lock').acquire();
        await lock.release();
        released++;
      });
      while ((await new Mutex(clients[0]!, '/lock').contenders()).length <= COUNT) await world.sleep(50);
      // Each of them has its watch by then.
      await world.sleep(2000);
      counter.clear();
      await first.release();
      await Promise.all(waiting);
      expect(released).toBe(COUNT);
      // Each holder gets two events: the deletion of the one ahead, and of its own znode.
      const events = counter.events / (COUNT + 1);
      const lists = (counter.sent.get(GET_CHILDREN_2) ?? 0) / COUNT;
      const reads = (counter.sent.get(GET_DATA) ?? 0) / COUNT;
      if (COUNT !== 50) console.log({ contenders: COUNT, eventsPerRelease: events, lists, reads });
      expect(events).toBeLessThanOrEqual(2);
      expect(lists).toBe(1);
      expect(reads).toBe(1);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
  testTimeoutMs(10),
);

interface Line {
  readonly title: string;
  /** Waits for its turn; `i` numbers the waiters. */
  readonly acquire: (client: Client, i: number) => Promise<Lock | Holding>;
  /** The number of contenders, including the holder. */
  readonly count: (client: Client) => Promise<number>;
  /** Per turn. */
  readonly eventsMax: number;
  readonly listsMax: number;
}

const LINES: readonly Line[] = [
  {
    title: 'read/write lock, of which every fifth waiter writes,',
    acquire: (client, i) => {
      const lock = new ReadWriteLock(client, '/lock');
      return i % 5 === 0 ? lock.acquireWrite() : lock.acquireRead();
    },
    count: async (client) => (await new ReadWriteLock(client, '/lock').contenders()).length,
    // The deletion of the one ahead, and of its own znode. A writer may find that a reader further ahead is still
    // there.
    eventsMax: 2.3,
    listsMax: 1.3,
  },
  ...(['curator', 'kazoo'] as const).map((layout) => ({
    title: `semaphore with the layout of ${layout}`,
    acquire: (client: Client) => new Semaphore(client, '/lock', { layout, leasesMax: 1 }).acquire(),
    count: async (client: Client) => {
      const lockPath = layout === 'curator' ? '/lock/locks' : '/lock-__lock__';
      return 1 + ((await client.exists(lockPath, { read: 'linearizable' }))?.numChildren ?? 0);
    },
    // The turn with the semaphore's lock, the lease before it, and both of its own znodes.
    eventsMax: 4,
    listsMax: 2,
  })),
];

test.each(LINES)(
  `a release of a $title wakes few of ${COUNT} that wait`,
  async ({ title, acquire, count, eventsMax, listsMax }) => {
    const { world, ensemble } = new Fleet(1, { servers: 1 });
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await counter.connectAll(world, ensemble, COUNT + 1);
      const first = await acquire(clients[0]!, 0);
      let released = 0;
      const waiting = clients.slice(1).map(async (client, i) => {
        const held = await acquire(client, i);
        await held.release();
        released++;
      });
      while ((await count(clients[0]!)) <= COUNT) await world.sleep(50);
      await world.sleep(2000);
      counter.clear();
      await first.release();
      await Promise.all(waiting);
      expect(released).toBe(COUNT);
      const events = counter.events / (COUNT + 1);
      const lists = (counter.sent.get(GET_CHILDREN_2) ?? 0) / COUNT;
      if (COUNT !== 50) console.log({ title, contenders: COUNT, eventsPerRelease: events, lists });
      expect(events).toBeLessThanOrEqual(eventsMax);
      expect(lists).toBeLessThanOrEqual(listsMax);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
  testTimeoutMs(10),
);

test.each([
  ['each before all others', (i: number) => -i],
  ['each behind all others', (i: number) => i],
  ['here and there', (i: number) => (i * 37) % 11],
])(
  `a release by priority wakes few of ${COUNT} that wait, and so does an arrival (%s)`,
  async (_, priorityOf) => {
    const { world, ensemble } = new Fleet(1, { servers: 1 });
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await counter.connectAll(world, ensemble, COUNT + 1);
      const first = await new PriorityLock(clients[0]!, '/lock').acquire();
      const figures = (): { events: number; lists: number; reads: number } => ({
        events: counter.events / COUNT,
        lists: (counter.sent.get(GET_CHILDREN_2) ?? 0) / COUNT,
        reads: (counter.sent.get(GET_DATA) ?? 0) / COUNT,
      });
      counter.clear();
      const waiting: Promise<void>[] = [];
      for (const [i, client] of clients.slice(1).entries()) {
        const lock = new PriorityLock(client, '/lock');
        waiting.push(lock.acquire({ priority: priorityOf(i) }).then((held) => held.release()));
        await world.sleep(100);
      }
      const arrival = figures();
      counter.clear();
      await first.release();
      await Promise.all(waiting);
      const release = figures();
      if (COUNT !== 50) console.log({ contenders: COUNT, arrival, release });
      // Events for the one that is pushed back, and for the one behind it, for which nothing has changed.
      expect(arrival.events).toBeLessThanOrEqual(3);
      expect(arrival.lists).toBeLessThanOrEqual(3);
      expect(arrival.reads).toBeLessThanOrEqual(8);
      // The next one, the holder itself, its own place, and a watch of a client that was pushed back since.
      expect(release.events).toBeLessThanOrEqual(4.5);
      expect(release.lists).toBeLessThanOrEqual(2);
      expect(release.reads).toBeLessThanOrEqual(4);
      await Promise.all(clients.map((client) => client.close()));
    });
  },
  testTimeoutMs(10),
);
