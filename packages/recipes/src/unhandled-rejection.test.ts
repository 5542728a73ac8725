/** A caller that gives up just when an answer comes leaves no promise behind that rejects unhandled and so ends the process. */
import type { CallOptions, Client } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { DoubleBarrier } from './barriers/double-barrier.ts';
import type { Inside } from './barriers/inside.ts';
import { Rendezvous } from './barriers/rendezvous.ts';
import { Mutex } from './locks/mutex.ts';
import { PriorityLock } from './locks/priority-lock.ts';
import { Semaphore } from './locks/semaphore.ts';
import { Queue } from './queues/queue.ts';
import { countAnswers } from './testing/answer-counter.ts';
import { inWorld } from './testing/in-world.ts';
import { watchUnhandledRejections } from './testing/unhandled-rejections.ts';

interface Case {
  readonly title: string;
  /** What another client does, and we do before. @returns what waits in vain */
  readonly prepare: (client: Client, other: Client) => Promise<(call: CallOptions) => Promise<unknown>>;
}

const CASES: readonly Case[] = [
  {
    title: 'Mutex.acquire',
    prepare: async (client, other) => {
      await new Mutex(other, '/it').acquire();
      return (call) => new Mutex(client, '/it').acquire(call);
    },
  },
  {
    title: 'PriorityLock.acquire',
    prepare: async (client, other) => {
      await new PriorityLock(other, '/it').acquire();
      return (call) => new PriorityLock(client, '/it').acquire(call);
    },
  },
  ...(['curator', 'kazoo'] as const).map((layout) => ({
    title: `Semaphore.acquire (layout of ${layout})`,
    prepare: async (client: Client, other: Client) => {
      await new Semaphore(other, '/it', { layout, leasesMax: 1 }).acquire();
      return (call: CallOptions) => new Semaphore(client, '/it', { layout, leasesMax: 1 }).acquire(call);
    },
  })),
  {
    title: 'Queue.take',
    prepare: (client) => Promise.resolve((call) => new Queue(client, '/it').take(call)),
  },
  {
    title: 'Rendezvous.meet',
    prepare: (client) => Promise.resolve((call) => new Rendezvous(client, '/it', 2).meet(new Uint8Array(1), call)),
  },
  {
    title: 'DoubleBarrier.enter',
    prepare: (client) => Promise.resolve((call) => new DoubleBarrier(client, '/it', 2).enter(call)),
  },
  {
    title: 'Inside.leave of the one that came first',
    prepare: async (client, other) => {
      const [inside] = await enterBoth(client, other);
      return (call) => inside.leave(call);
    },
  },
  {
    title: 'Inside.leave of the one that came last',
    prepare: async (client, other) => {
      const [, inside] = await enterBoth(other, client);
      return (call) => inside.leave(call);
    },
  },
];

const unhandledRejections = watchUnhandledRejections();

describe.each(CASES)('$title', ({ prepare }) => {
  test.each([true, false])(
    'may be given up with any of its answers (the client closed at once: %s)',
    async (atOnce) => {
      let hasWaited = false;
      for (let nth = 1; !hasWaited; nth++) {
        await inWorld(2, async ([one, two], { sleep }) => {
          const controller = new AbortController();
          const { client, onAnswer } = countAnswers(one.client);
          const waiting = await prepare(client, two.client);
          onAnswer(nth, () => {
            controller.abort();
            if (atOnce) void one.client.close();
          });
          const given = waiting({ signal: controller.signal }).catch((error: unknown) => error);
          await sleep(100);
          // So many answers do not come.
          hasWaited = !controller.signal.aborted;
          controller.abort();
          expect(await given).toMatchObject({
            code: expect.stringMatching(atOnce ? /^(ABORTED|CLOSED)$/ : /^ABORTED$/),
          });
          await one.client.close();
          await sleep(100);
        });
        expect(await unhandledRejections(), `given up with answer ${nth}`).toEqual([]);
        expect(nth).toBeLessThan(50);
      }
    },
  );
});

async function enterBoth(first: Client, second: Client): Promise<[Inside, Inside]> {
  const entering = new DoubleBarrier(first, '/it', 2).enter();
  while ((await second.exists('/it', { read: 'linearizable' }))?.numChildren !== 1);
  return Promise.all([entering, new DoubleBarrier(second, '/it', 2).enter()]);
}
