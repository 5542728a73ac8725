import {
  AbortedError,
  type CallOptions,
  type Client,
  NoNodeError,
  TimeoutError,
  ZooKeeperError,
} from '@meerkat/client';
import type { SeededRandom } from '@meerkat/simulator';
import { expect } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import type { ItemQueue } from '../queues/item-queue.ts';
import type { QueueItem } from '../queues/queue-item.ts';
import { Books } from './books.ts';
import { Fleet } from './fleet.ts';
import { underLimit } from './limited-call.ts';
import { LostSessions } from './lost-sessions.ts';
import {
  checkBeliefs,
  checkEnds,
  checkLeases,
  checkLosses,
  checkOrder,
  checkPuts,
  type ItemOrder,
} from './queue-checker.ts';
import { QueueHistory } from './queue-history.ts';
import { type Job, keyOf } from './queue-job.ts';

export interface QueueStorm<Q extends ItemQueue<Job>> extends ItemOrder {
  readonly seed: number;
  /** Called before any faults. */
  readonly prepare?: ((fleet: Fleet, hosts: readonly string[]) => void) | undefined;
  readonly open: (client: Client) => Q;
  readonly put: (queue: Q, job: Job, call: CallOptions, fleet: Fleet) => Promise<void>;
  /** Puts several in some seeds. Default: not used. */
  readonly putAll?: ((queue: Q, jobs: readonly Job[], call: CallOptions) => Promise<void>) | undefined;
  /** Maximum number of items. Default: more than fit into one transaction. */
  readonly batchMax?: number | undefined;
  /** The option of the queues. Default true. */
  readonly leases?: boolean | undefined;
  /** Called with each item that a consumer has taken. */
  readonly onTaken?: ((item: QueueItem<Job>) => void) | undefined;
  /** Concurrent actions of another client, called repeatedly. */
  readonly meddle?: ((queue: Q, fleet: Fleet) => Promise<void>) | undefined;
  /** The paths of items and leases. Default: `/jobs` and `/jobs-leases`. */
  readonly paths?: { readonly items: string; readonly leases: string; readonly lines: string } | undefined;
}

/** All results, and the committed history; null when it is not known. */
export interface QueueReport {
  readonly books: Books;
  readonly history: QueueHistory | null;
}

export const PRODUCERS = 2;
/** At least this many and, with the last batch, more. */
const ITEMS = 12;
export const ITEMS_MAX = 200;
const CONSUMERS = 3;
const FAULT_MS = 15_000;
const PATHS = { items: '/jobs', leases: '/jobs-leases', lines: '/jobs-lines' };

/**
 * Two producers put jobs, each of which is taken by three consumers, and by others that come and go, one or more times
 * until it is done, under all kinds of faults. Then all faults are healed, and the queue runs empty. In every seed:
 *
 * 1. a put that succeeded has created one item, one of unknown outcome at most one, and no other put has created any; a
 *    batch is created together;
 * 2. every item is done, once, by a client that had the lease: none is lost. Without leases it is delivered to at most
 *    one consumer, and lost only with the session of a client that has taken it;
 * 3. two consumers are never certain of one item at the same time, and tokens grow;
 * 4. no item is delivered while a better one is free from the call to its reply, nor is the queue reported empty while
 *    an item is free;
 * 5. no call exceeds its timeout, and a waiting call fails for no other reason;
 * 6. a lease is ended by its holder, or with the holder's session;
 * 7. in the end there are no leases, and the line is empty.
 */
export async function runQueueStorm<Q extends ItemQueue<Job>>(storm: QueueStorm<Q>): Promise<QueueReport> {
  const { seed, open, meddle, paths = PATHS, leases = true } = storm;
  const fleet = new Fleet(seed);
  const books = new Books();
  const lost = new LostSessions();
  const history = await fleet.run(async () => {
    const clients = await fleet.connectAll(PRODUCERS + CONSUMERS + 1);
    const follow = (client: Client): (() => void) => lost.follow(client, fleet);
    for (const client of clients) follow(client);
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
    consuming.push(consumeAndLeave(fleet, storm, books, isOver, follow));
    const producing = clients.slice(0, PRODUCERS).map((client, i) => produce(fleet, open(client), i, storm, books));
    await fleet.world.sleep(FAULT_MS + 2000);
    fleet.heal();
    await Promise.all(producing);
    const queue = open(clients[0]!);
    // All items are taken in the end: otherwise the test would hang here.
    while ((await queue.size().catch(() => 1)) > 0) await fleet.world.sleep(200);
    isOver.value = true;
    await Promise.all([...consuming, meddling]);
    // Abandoned znodes are removed in the background.
    await fleet.world.sleep(10_000);
    for (const path of [paths.leases, `${paths.lines}/consumers`, `${paths.lines}/producers`]) {
      expect((await namesBelow(clients[0]!, path)).join(), path).toBe('');
    }
    const tree = await fleet.committedTree();
    return tree === null ? null : new QueueHistory(tree, paths.items, paths.leases);
  });
  checkBeliefs(books, meddle === undefined && leases);
  if (history === null) return { books, history };
  checkPuts(books, history, leases);
  if (leases) checkEnds(books, history);
  else checkLosses(books, history, lost);
  if (meddle === undefined) checkLeases(history);
  checkOrder(books, history, storm, leases);
  return { books, history };
}

async function namesBelow(client: Client, path: string): Promise<readonly string[]> {
  try {
    return (await client.children(path, { read: 'linearizable' })).children;
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

/** Ignores errors of the service, which are part of the storm. */
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
  const haste = random.pick([0, 0.3]);
  const puts: Promise<void>[] = [];
  for (let number = 0; number < ITEMS; ) {
    const jobs = [{ producer, number }];
    for (let left = drawBatch(random, storm); left > 1; left--) jobs.push({ producer, number: number + jobs.length });
    number += jobs.length;
    const keys = jobs.map(keyOf);
    if (keys.length > 1) books.batches.push(keys);
    const put = underLimit(fleet, haste, (call) =>
      jobs.length > 1 ? storm.putAll!(queue, jobs, call) : storm.put(queue, jobs[0]!, call, fleet),
    ).then(
      () => {
        for (const key of keys) books.put.add(key);
      },
      (error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error;
        expect(error.code, error.message).toMatch(error.outcome === 'unknown' ? GIVEN_UP_OR_LOST : GIVEN_UP);
        if (error.outcome === 'unknown') for (const key of keys) books.doubtfulPuts.add(key);
      },
    );
    puts.push(put);
    if (puts.length % 3 === 1) await put;
    if (random.chance(0.5)) await fleet.world.sleep(random.between(0, 2000));
  }
  await Promise.all(puts);
}

/** The number of items in a batch. */
function drawBatch<Q extends ItemQueue<Job>>(random: SeededRandom, storm: QueueStorm<Q>): number {
  const { seed, putAll, batchMax = 110 } = storm;
  if (putAll === undefined || seed % 3 === 0 || random.chance(0.8)) return 1;
  return Math.min(batchMax, random.chance(0.1) ? random.between(90, 110) : random.between(2, 4));
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
      await using item = await ask(fleet, queue, books, storm.leases !== false);
      if (item === null) return world.sleep(world.random.between(100, 1000));
      await handle(fleet, item, storm, books);
    });
  }
}

/** Consumers that come and go: their loop is aborted and then their client closed, or it is closed while they wait. */
async function consumeAndLeave<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  storm: QueueStorm<Q>,
  books: Books,
  isOver: { readonly value: boolean },
  follow: (client: Client) => () => void,
): Promise<void> {
  const { world } = fleet;
  const { random } = world;
  while (!isOver.value) {
    await passing(fleet, async () => {
      const client = await fleet.connectAs('passer-by');
      const stopFollowing = follow(client);
      const end = new AbortController();
      const looping = loop(fleet, storm.open(client), storm, books, end.signal);
      // Often while the first item is in flight.
      await Promise.race([looping, world.sleep(random.between(0, random.chance(0.5) ? 50 : 3000))]);
      if (random.chance(0.8)) {
        end.abort();
        await looping;
        stopFollowing();
      }
      await client.close();
      await looping;
    });
  }
}

async function loop<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  queue: Q,
  storm: QueueStorm<Q>,
  books: Books,
  signal: AbortSignal,
): Promise<void> {
  let sinceZxid = fleet.committedZxid;
  try {
    for await (const item of queue.items({ signal })) {
      books.takes.push({ name: item.name, token: item.token, sinceZxid });
      await passing(fleet, () => handle(fleet, item, storm, books));
      sinceZxid = fleet.committedZxid;
    }
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
    // Without a lease an item is lost with its session, or with a client that is closed during the loop.
    expect(storm.leases, error.message).toBe(false);
    if (error.code === 'CLOSED') expect(signal.aborted, error.message).toBe(false);
    else expect(error).toMatchObject({ code: 'SESSIONLOST', outcome: 'unknown' });
  }
}

/** Completes it, or does not. */
async function handle<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  item: QueueItem<Job>,
  storm: QueueStorm<Q>,
  books: Books,
): Promise<void> {
  const { world } = fleet;
  const key = keyOf(item.value);
  books.take(key, item.token, () => item.isHeld);
  storm.onTaken?.(item);
  await world.sleep(item.value.number < ITEMS ? world.random.between(100, 1500) : world.random.between(0, 100));
  if (world.random.chance(0.2)) {
    if (world.random.chance(0.5)) await passing(fleet, () => underLimit(fleet, 1, (call) => item.release(call), 50));
    return;
  }
  try {
    await finish(fleet, item);
    books.done.set(key, (books.done.get(key) ?? 0) + 1);
  } catch (error) {
    if (error instanceof NotHeldError) books.refusals.push(item);
    else if (error instanceof ZooKeeperError && error.outcome === 'unknown') books.doubtfulDones.add(key);
    else throw error;
  }
}

/** Sometimes calls again after a cancelled call. */
async function finish(fleet: Fleet, item: QueueItem<Job>): Promise<void> {
  try {
    await underLimit(fleet, 0.3, (call) => item.done(call), 50);
  } catch (error) {
    if (!(error instanceof TimeoutError) && !(error instanceof AbortedError)) throw error;
    await item.done();
  }
}

async function ask<Q extends ItemQueue<Job>>(
  fleet: Fleet,
  queue: Q,
  books: Books,
  hasLeases: boolean,
): Promise<QueueItem<Job> | null> {
  const { random, nowMs: sinceMs } = fleet.world;
  const { committedZxid: sinceZxid } = fleet;
  const isTry = random.chance(0.2);
  try {
    const item = isTry
      ? await underLimit(fleet, 0.1, (call) => queue.tryTake(call))
      : await underLimit(fleet, 1, (call) => queue.take(call), random.chance(0.1) ? 100 : 6000);
    if (item !== null) books.takes.push({ name: item.name, token: item.token, sinceZxid });
    else books.misses.push({ sinceZxid, untilZxid: fleet.committedZxid, sinceMs });
    return item;
  } catch (error) {
    if (error instanceof ZooKeeperError) {
      // Without a lease an item may be lost with the session.
      const mayBeLost = !hasLeases && error.outcome === 'unknown';
      expect(error.code, error.message).toMatch(mayBeLost ? GIVEN_UP_OR_LOST : GIVEN_UP);
    }
    throw error;
  }
}

const GIVEN_UP = /^(ABORTED|TIMEOUT)$/;
const GIVEN_UP_OR_LOST = /^(ABORTED|TIMEOUT|SESSIONLOST)$/;
