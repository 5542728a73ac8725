import { type Client, ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import { NotHeldError } from '../locks/not-held-error.ts';
import type { ItemQueue } from '../queues/item-queue.ts';
import type { QueueItem } from '../queues/queue-item.ts';
import { Books } from './books.ts';
import { Fleet } from './fleet.ts';

/** What is put into the queues of these tests. */
export interface Job {
  readonly producer: number;
  readonly number: number;
}

export function keyOf({ producer, number }: Job): string {
  return `${producer}/${number}`;
}

export interface QueueStorm<Q extends ItemQueue<Job>> {
  readonly seed: number;
  readonly open: (client: Client) => Q;
  readonly put: (queue: Q, job: Job) => Promise<void>;
  /** Told of each item when a consumer has got it. */
  readonly onTaken?: ((item: QueueItem<Job>) => void) | undefined;
}

export const PRODUCERS = 2;
export const ITEMS = 12;
const CONSUMERS = 3;
const FAULT_MS = 15_000;

/**
 * Two producers put jobs, each of which three consumers have once or more until it is done, while everything goes wrong.
 * Then all is healed, and the queue runs empty. What every queue promises is judged here.
 *
 * @returns what everybody believed
 */
export async function runQueueStorm<Q extends ItemQueue<Job>>(storm: QueueStorm<Q>): Promise<Books> {
  const { seed, open } = storm;
  const fleet = new Fleet(seed);
  const books = new Books();
  await fleet.run(async () => {
    const clients = await fleet.connectAll(PRODUCERS + CONSUMERS);
    if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
    else fleet.unleash(FAULT_MS, clients.length);
    const isOver = { value: false };
    const consuming = clients.slice(PRODUCERS).map((client) => consume(fleet, open(client), storm, books, isOver));
    const producing = clients.slice(0, PRODUCERS).map((client, i) => produce(open(client), i, storm, books));
    await fleet.world.sleep(FAULT_MS + 2000);
    fleet.heal();
    await Promise.all(producing);
    const queue = open(clients[0]!);
    // Everything is taken in the end: the tests would be stuck here otherwise.
    while ((await queue.size().catch(() => 1)) > 0) await fleet.world.sleep(200);
    isOver.value = true;
    await Promise.all(consuming);
  });
  for (const key of books.put) {
    const isDone = books.done.has(key) || books.doubtfulDones.has(key);
    expect(isDone, `${key} was put and must be done`).toBe(true);
  }
  for (const [key, count] of books.done) {
    expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was never put`).toBe(true);
    expect(count, `${key} was done ${count} times`).toBe(1);
  }
  expect(books.put.size).toBeGreaterThan(0);
  return books;
}

async function produce<Q extends ItemQueue<Job>>(
  queue: Q,
  producer: number,
  storm: QueueStorm<Q>,
  books: Books,
): Promise<void> {
  const puts: Promise<void>[] = [];
  for (let number = 0; number < ITEMS; number++) {
    const key = keyOf({ producer, number });
    const put = storm.put(queue, { producer, number }).then(
      () => void books.put.add(key),
      (error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error;
        if (error.outcome === 'unknown') books.doubtfulPuts.add(key);
      },
    );
    puts.push(put);
    if (number % 3 === 0) await put;
  }
  await Promise.all(puts);
}

async function consume<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  queue: Q,
  storm: QueueStorm<Q>,
  books: Books,
  isOver: { readonly value: boolean },
): Promise<void> {
  const { world } = fleet;
  while (!isOver.value) {
    try {
      await using item = await queue.take({ timeoutMs: 3000 });
      const key = keyOf(item.value);
      books.take(key, item.token, () => item.isHeld);
      storm.onTaken?.(item);
      await world.sleep(100 + world.random.between(0, 400));
      if (world.random.chance(0.2)) continue;
      try {
        await item.done();
        books.done.set(key, (books.done.get(key) ?? 0) + 1);
      } catch (error) {
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') books.doubtfulDones.add(key);
        else if (!(error instanceof NotHeldError)) throw error;
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      await world.sleep(50);
    }
  }
}
