import { type Client, json, ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { NotHeldError } from '../locks/not-held-error.ts';
import { sequenceOf } from '../sequence.ts';
import { Fleet } from '../testing/fleet.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Queue } from './queue.ts';

const SEEDS = seeds(4);
const PRODUCERS = 2;
const CONSUMERS = 3;
const ITEMS = 12;
const FAULT_MS = 15_000;

interface Job {
  readonly producer: number;
  readonly number: number;
}

/** What everybody believes, and what a judge with a clock of its own has seen. */
class Books {
  /** Puts that were told to have succeeded, and those of which nobody knows. */
  readonly put = new Set<string>();
  readonly doubtfulPuts = new Set<string>();
  readonly done = new Map<string, number>();
  readonly doubtfulDones = new Set<string>();
  /** Who has an item in hand at this moment, as far as the holders are certain. */
  readonly #holders = new Map<string, { readonly token: bigint; readonly isHeld: () => boolean }>();
  readonly #tokens = new Map<string, bigint>();
  /** Where in the queue each item of a producer stood. */
  readonly places = new Map<string, number>();

  take(key: string, token: bigint, isHeld: () => boolean): void {
    const holder = this.#holders.get(key);
    if (holder?.isHeld() === true && isHeld()) throw new Error(`two consumers have ${key} at one time`);
    const last = this.#tokens.get(key) ?? 0n;
    if (token <= last) throw new Error(`token ${token} of ${key} follows ${last}`);
    this.#tokens.set(key, token);
    this.#holders.set(key, { token, isHeld });
  }
}

test.each(SEEDS)(
  'no item is lost, and none is in two hands, whatever goes wrong (seed %i)',
  async (seed) => {
    const fleet = new Fleet(seed);
    const isBounded = seed % 2 === 0;
    const books = new Books();
    await fleet.run(async () => {
      const clients = await fleet.connectAll(PRODUCERS + CONSUMERS);
      if (seed % 4 === 0) fleet.unleashBreaks(FAULT_MS);
      else fleet.unleash(FAULT_MS, clients.length);
      const options = { codec: json<Job>(), ...(isBounded ? { itemsMax: 4 } : {}) };
      const isOver = { value: false };
      const consuming = clients.slice(PRODUCERS).map((client) => consume(fleet, client, options, books, isOver));
      const producing = clients.slice(0, PRODUCERS).map((client, i) => produce(client, i, options, books));
      await fleet.world.sleep(FAULT_MS + 2000);
      fleet.heal();
      await Promise.all(producing);
      const queue = new Queue<Job>(clients[0]!, '/jobs', options);
      // Everything is taken in the end: the tests would be stuck here otherwise.
      while ((await queue.size().catch(() => 1)) > 0) await fleet.world.sleep(200);
      isOver.value = true;
      await Promise.all(consuming);
    });
    for (const key of books.put) expect(doneOf(books, key), `${key} was put and must be done`).toBe(true);
    for (const [key, count] of books.done) {
      expect(books.put.has(key) || books.doubtfulPuts.has(key), `${key} was never put`).toBe(true);
      expect(count, `${key} was done ${count} times`).toBe(1);
    }
    for (let producer = 0; producer < PRODUCERS; producer++) {
      const numbers = Array.from({ length: ITEMS }, (_, number) => books.places.get(`${producer}/${number}`));
      const places = numbers.filter((place) => place !== undefined);
      expect(places, `the order of producer ${producer}`).toEqual(places.toSorted((a, b) => a - b));
    }
    expect(books.put.size).toBeGreaterThan(0);
  },
  patienceMs(1),
);

function doneOf(books: Books, key: string): boolean {
  return books.done.has(key) || books.doubtfulDones.has(key);
}

async function produce(
  client: Client,
  producer: number,
  options: { readonly itemsMax?: number },
  books: Books,
): Promise<void> {
  const queue = new Queue<Job>(client, '/jobs', { ...options, codec: json<Job>() });
  const puts: Promise<void>[] = [];
  for (let number = 0; number < ITEMS; number++) {
    const key = `${producer}/${number}`;
    const put = queue.put({ producer, number }).then(
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

async function consume(
  fleet: Fleet,
  client: Client,
  options: { readonly itemsMax?: number },
  books: Books,
  isOver: { readonly value: boolean },
): Promise<void> {
  const queue = new Queue<Job>(client, '/jobs', { ...options, codec: json<Job>() });
  while (!isOver.value) {
    try {
      await using item = await queue.take({ timeoutMs: 3000 });
      const { producer, number } = item.value;
      const key = `${producer}/${number}`;
      books.take(key, item.token, () => item.isHeld);
      books.places.set(key, sequenceOf(item.name)!);
      await fleet.world.sleep(100 + fleet.world.random.between(0, 400));
      if (fleet.world.random.chance(0.2)) continue;
      try {
        await item.done();
        books.done.set(key, (books.done.get(key) ?? 0) + 1);
      } catch (error) {
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') books.doubtfulDones.add(key);
        else if (!(error instanceof NotHeldError)) throw error;
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      await fleet.world.sleep(50);
    }
  }
}
