import { type CallOptions, type Client, text, ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { Lock } from '../locks/lock.ts';
import { Mutex } from '../locks/mutex.ts';
import { NotHeldError } from '../locks/not-held-error.ts';
import { Fleet } from '../testing/fleet.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Condition } from './condition.ts';

const CONSUMERS = 2;
const PRODUCERS = 2;
const FAULT_MS = 12_000;

/** Changes of the stock that were told to have happened, and those of which nobody knows. */
interface Books {
  certain: number;
  doubtful: number;
}

test.each(seeds(4))(
  'no notification is lost, whatever goes wrong (seed %i)',
  async (seed) => {
    const fleet = new Fleet(seed);
    const put: Books = { certain: 0, doubtful: 0 };
    const taken: Books = { certain: 0, doubtful: 0 };
    await fleet.run(async () => {
      const clients = await fleet.connectAll(CONSUMERS + PRODUCERS);
      await clients[0]!.create('/stock', '0');
      fleet.unleash(FAULT_MS, clients.length);
      const controller = new AbortController();
      const isOver = { value: false };
      const consuming = clients.slice(0, CONSUMERS).map((client) => consume(client, taken, controller.signal));
      const producing = clients.slice(CONSUMERS).map((client) => produce(fleet, client, put, isOver));
      const ended = Promise.all([...consuming, ...producing]);
      await Promise.race([fleet.world.sleep(FAULT_MS + 2000), ended]);
      fleet.heal();
      await fleet.world.sleep(5000);
      isOver.value = true;
      await Promise.all(producing);
      // Everything that is left over has somebody who was woken for it.
      let left = Number.NaN;
      for (let i = 0; i < 600 && left !== 0; i++) {
        await Promise.race([fleet.world.sleep(100), Promise.all(consuming)]);
        left = await readStock(clients[0]!, {}).catch(() => Number.NaN);
      }
      expect(left, 'what is left while consumers wait').toBe(0);
      controller.abort();
      await ended;
    });
    expect(put.certain).toBeGreaterThan(0);
    expect(taken.certain).toBeLessThanOrEqual(put.certain + put.doubtful);
    expect(taken.certain + taken.doubtful).toBeGreaterThanOrEqual(put.certain);
  },
  patienceMs(1),
);

async function consume(client: Client, taken: Books, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await underLock(client, signal, async (hand, condition) => {
      while ((await readStock(client, { signal })) === 0) hand.lock = await condition.wait(hand.lock, { signal });
      await change(client, hand.lock, -1, taken);
    });
  }
}

async function produce(fleet: Fleet, client: Client, put: Books, isOver: { readonly value: boolean }): Promise<void> {
  while (!isOver.value) {
    let hasPut = false;
    let isNotified = false;
    // Whoever has changed something and could not tell has to tell before it goes on.
    while (!isNotified) {
      await underLock(client, undefined, async ({ lock }, condition) => {
        if (!hasPut) {
          hasPut = true;
          await change(client, lock, 1, put);
        }
        await condition.notify(lock);
        isNotified = true;
      });
    }
    await fleet.world.sleep(fleet.world.random.between(0, 800));
  }
}

/** The lock as it is held now: a wait exchanges it. */
interface Hand {
  lock: Lock;
}

/** Does something with the lock, and gives back the one that is held in the end. What faults end is left at that. */
async function underLock(
  client: Client,
  signal: AbortSignal | undefined,
  work: (hand: Hand, condition: Condition<Lock>) => Promise<void>,
): Promise<void> {
  const mutex = new Mutex(client, '/lock');
  let hand: Hand | null = null;
  try {
    hand = { lock: await mutex.acquire({ signal }) };
    await work(hand, new Condition(client, '/changed', mutex));
  } catch (error) {
    if (!(error instanceof ZooKeeperError || error instanceof NotHeldError)) throw error;
  } finally {
    await hand?.lock.release();
  }
}

async function change(client: Client, lock: Lock, by: number, books: Books): Promise<void> {
  try {
    const stock = await readStock(client, {});
    await lock.guarded.set('/stock', `${stock + by}`);
    books.certain++;
  } catch (error) {
    if (error instanceof ZooKeeperError && error.outcome === 'unknown') books.doubtful++;
    throw error;
  }
}

async function readStock(client: Client, options: CallOptions): Promise<number> {
  return Number((await client.get('/stock', { ...options, read: 'linearizable', codec: text })).data);
}
