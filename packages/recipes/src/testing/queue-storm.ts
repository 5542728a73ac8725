import { type Client, NoNodeError, ZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import { NotHeldError } from '../locks/not-held-error.ts';
import type { ItemQueue } from '../queues/item-queue.ts';
import type { QueueItem } from '../queues/queue-item.ts';
import { Books } from './books.ts';
import { Fleet } from './fleet.ts';
import { type ItemHistory, QueueHistory } from './queue-history.ts';

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
  /** Before anything goes wrong. */
  readonly prepare?: ((fleet: Fleet, hosts: readonly string[]) => void) | undefined;
  readonly open: (client: Client) => Q;
  readonly put: (queue: Q, job: Job, fleet: Fleet) => Promise<void>;
  /** Negative: of two items that anybody may take, `a` is taken first. */
  readonly compare: (a: ItemHistory, b: ItemHistory) => number;
  /** When anybody may take it at last, virtual milliseconds. Default: at once. */
  readonly dueMs?: ((item: ItemHistory) => number) | undefined;
  /** Told of each item when a consumer has got it. */
  readonly onTaken?: ((item: QueueItem<Job>) => void) | undefined;
  /** What others do at the same time, again and again. */
  readonly meddle?: ((queue: Q, fleet: Fleet) => Promise<void>) | undefined;
  /** Where items and leases lie. Default: `/jobs` and `/jobs-leases`. */
  readonly paths?: { readonly items: string; readonly leases: string; readonly lines: string } | undefined;
}

/** What everybody believed, and what was; null when nobody can tell any more. */
export interface QueueReport {
  readonly books: Books;
  readonly history: QueueHistory | null;
}

export const PRODUCERS = 2;
export const ITEMS = 12;
const CONSUMERS = 3;
const FAULT_MS = 15_000;
const PATHS = { items: '/jobs', leases: '/jobs-leases', lines: '/jobs-lines' };

/**
 * Two producers put jobs, each of which three consumers have once or more until it is done, while everything goes wrong.
 * Then all is healed, and the queue runs empty. In every seed:
 *
 * 1. a put that succeeded has made one item, one of unknown outcome at most one, and no other put has made any;
 * 2. every item is done, once, by somebody who had the lease: none is lost;
 * 3. two consumers are never sure of one item at one time, and tokens grow;
 * 4. nobody is given an item while a better one may be taken from his question to the answer, or is told that there
 *    is none;
 * 5. in the end there are no leases, and nobody stands in line.
 */
export async function runQueueStorm<Q extends ItemQueue<Job>>(storm: QueueStorm<Q>): Promise<QueueReport> {
  const { seed, open, meddle, paths = PATHS } = storm;
  const fleet = new Fleet(seed);
  const books = new Books();
  const history = await fleet.run(async () => {
    const clients = await fleet.connectAll(PRODUCERS + CONSUMERS + 1);
    storm.prepare?.(fleet, fleet.hosts);
    if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
    else fleet.unleash(FAULT_MS, clients.length);
    if (seed % 4 === 1 || seed % 4 === 3) fleet.unleashCuts(FAULT_MS, clients.length);
    const isOver = { value: false };
    const meddling = (async () => {
      const queue = open(clients.at(-1)!);
      while (meddle !== undefined && !isOver.value) await passing(fleet, () => meddle(queue, fleet));
    })();
    const consuming = clients.slice(PRODUCERS, -1).map((client) => consume(fleet, open(client), storm, books, isOver));
    const producing = clients.slice(0, PRODUCERS).map((client, i) => produce(fleet, open(client), i, storm, books));
    await fleet.world.sleep(FAULT_MS + 2000);
    fleet.heal();
    await Promise.all(producing);
    const queue = open(clients[0]!);
    // Everything is taken in the end: the tests would be stuck here otherwise.
    while ((await queue.size().catch(() => 1)) > 0) await fleet.world.sleep(200);
    isOver.value = true;
    await Promise.all([...consuming, meddling]);
    // What was given up is removed in the background.
    await fleet.world.sleep(10_000);
    for (const path of [paths.leases, `${paths.lines}/consumers`, `${paths.lines}/producers`]) {
      expect((await namesBelow(clients[0]!, path)).join(), path).toBe('');
    }
    const tree = await fleet.committedTree();
    return tree === null ? null : new QueueHistory(tree, paths.items, paths.leases);
  });
  judgeBeliefs(books, meddle === undefined);
  if (history === null) return { books, history };
  judgePuts(books, history);
  judgeEnds(history);
  judgeOrder(books, history, storm);
  return { books, history };
}

/** @param isAllDone nobody takes items off in another way */
function judgeBeliefs(books: Books, isAllDone: boolean): void {
  for (const key of isAllDone ? books.put : []) {
    expect(books.done.has(key) || books.doubtfulDones.has(key), `${key} was put and must be done`).toBe(true);
  }
  for (const [key, count] of books.done) {
    expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was put`).toBe(true);
    expect(count, `${key} was done ${count} times`).toBe(1);
  }
  expect(books.put.size).toBeGreaterThan(0);
}

function judgePuts(books: Books, { items }: QueueHistory): void {
  const made = items.map(({ job }) => keyOf(job));
  expect(made, 'no item is made twice').toEqual([...new Set(made)]);
  for (const key of books.put) expect(made, `${key} was put`).toContain(key);
  for (const key of made) expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was put`).toBe(true);
}

function judgeEnds({ items }: QueueHistory): void {
  for (const { job, toZxid, enderId, leases } of items) {
    const key = keyOf(job);
    expect(toZxid, `${key} is taken off`).toBeLessThan(Number.POSITIVE_INFINITY);
    const last = leases.find((lease) => lease.toZxid === toZxid);
    expect(last?.sessionId, `who takes ${key} off has the lease`).toBe(enderId);
  }
}

function judgeOrder(
  books: Books,
  history: QueueHistory,
  { compare, dueMs }: Pick<QueueStorm<never>, 'compare' | 'dueMs'>,
): void {
  const namesOf = (items: readonly ItemHistory[]): string => items.map(({ name }) => name).join();
  for (const { name, token, sinceZxid } of books.takes) {
    const taken = history.item(name);
    const better = history.free(sinceZxid, Number(token)).filter((other) => compare(other, taken) < 0);
    expect(namesOf(better), `better than ${name}, and free from zxid ${sinceZxid} to ${token}`).toBe('');
  }
  for (const { sinceZxid, untilZxid, sinceMs } of books.misses) {
    const free = history.free(sinceZxid, untilZxid).filter((item) => dueMs === undefined || dueMs(item) <= sinceMs);
    expect(namesOf(free), `free from zxid ${sinceZxid} to ${untilZxid}, and not found`).toBe('');
  }
}

async function namesBelow(client: Client, path: string): Promise<readonly string[]> {
  try {
    return (await client.children(path, { read: 'linearizable' })).children;
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

/** Whatever the service says is part of the storm. */
async function passing(fleet: Fleet, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ZooKeeperError) && !(error instanceof NotHeldError)) throw error;
    await fleet.world.sleep(50);
  }
}

async function produce<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  queue: Q,
  producer: number,
  storm: QueueStorm<Q>,
  books: Books,
): Promise<void> {
  const { random } = fleet.world;
  const puts: Promise<void>[] = [];
  for (let number = 0; number < ITEMS; number++) {
    const key = keyOf({ producer, number });
    const put = storm.put(queue, { producer, number }, fleet).then(
      () => void books.put.add(key),
      (error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error;
        if (error.outcome === 'unknown') books.doubtfulPuts.add(key);
      },
    );
    puts.push(put);
    if (number % 3 === 0) await put;
    if (random.chance(0.5)) await fleet.world.sleep(random.between(0, 2000));
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
    await passing(fleet, async () => {
      await using item = await ask(fleet, queue, books);
      if (item === null) return world.sleep(world.random.between(100, 1000));
      const key = keyOf(item.value);
      books.take(key, item.token, () => item.isHeld);
      storm.onTaken?.(item);
      await world.sleep(world.random.between(100, 1500));
      if (world.random.chance(0.2)) return;
      try {
        await item.done();
        books.done.set(key, (books.done.get(key) ?? 0) + 1);
      } catch (error) {
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') books.doubtfulDones.add(key);
        else if (!(error instanceof NotHeldError)) throw error;
      }
    });
  }
}

async function ask<Q extends ItemQueue<Job>>(fleet: Fleet, queue: Q, books: Books): Promise<QueueItem<Job> | null> {
  const { random, nowMs: sinceMs } = fleet.world;
  const { committedZxid: sinceZxid } = fleet;
  const isTry = random.chance(0.2);
  const item = isTry
    ? await queue.tryTake()
    : await queue.take({ timeoutMs: random.chance(0.1) ? random.between(0, 100) : 3000 });
  if (item !== null) books.takes.push({ name: item.name, token: item.token, sinceZxid });
  else books.misses.push({ sinceZxid, untilZxid: fleet.committedZxid, sinceMs });
  return item;
}
