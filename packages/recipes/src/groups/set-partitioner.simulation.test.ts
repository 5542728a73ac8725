/**
 * Workers divide a set while servers and links fail and workers die and come back. In every seed:
 *
 * 1. no item is ever held by two of them;
 * 2. the tokens of an item grow from holder to holder;
 * 3. when everything is healed and nobody comes or goes, every item is held.
 */
import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { SetPartitioner } from './set-partitioner.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three'];
const ITEMS = ['a', 'b', 'c', 'd', 'e'];
/** More than syncLimit × tickTime of these ensembles, as a follower may go on answering without its leader. */
const MARGIN_MS = 700;
const STORM_MS = 30_000;
const SEEDS = seeds(3);

test('no item is held twice, and in the end each is held', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

interface Worker {
  readonly host: string;
  client: Client | null;
  partitioner: SetPartitioner | null;
}

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const workers: Worker[] = HOSTS.map((host) => ({ host, client: null, partitioner: null }));
  const tokens = new Map<string, bigint>();
  let isOver = false;
  let isClosed = false;

  const held = (): Map<string, string> => {
    const holders = new Map<string, string>();
    for (const { host, partitioner } of workers) {
      for (const [item, lock] of partitioner?.share?.locks ?? []) {
        if (!lock.isHeld) continue;
        expect(holders.get(item), `${item} is held by ${host}, and also`).toBeUndefined();
        holders.set(item, host);
        const last = tokens.get(item) ?? 0n;
        expect(lock.token, `the token of ${item}`).toBeGreaterThanOrEqual(last);
        tokens.set(item, lock.token);
      }
    }
    return holders;
  };
  const serve = async (partitioner: SetPartitioner): Promise<void> => {
    for await (const share of partitioner) {
      while (!share.recall.aborted) await world.world.sleep(50);
      // Work that is not finished at once.
      await world.world.sleep(random.between(0, 500));
    }
  };
  const serving: Promise<void>[] = [];
  const start = async (worker: Worker): Promise<void> => {
    worker.client = await world.connect(worker.host);
    const partitioner = new SetPartitioner(worker.client, '/p', ITEMS, {
      identifier: worker.host,
      quietMs: 300,
      marginMs: MARGIN_MS,
    });
    worker.partitioner = partitioner;
    serving.push(serve(partitioner));
  };
  const looking = (async () => {
    while (!isClosed) {
      held();
      await world.world.sleep(10);
    }
  })();
  const living = workers.map(async (worker) => {
    while (!isOver) {
      await start(worker);
      const endMs = world.world.nowMs + random.between(2000, 20_000);
      await world.world.until(() => isOver || world.world.nowMs >= endMs, 60_000);
      if (isOver) return;
      const { client, partitioner } = worker;
      worker.client = null;
      worker.partitioner = null;
      if (random.chance(0.5)) await world.kill(client!);
      else {
        await partitioner?.close();
        await client?.close();
      }
      await world.world.sleep(random.between(0, 3000));
    }
  });
  await world.storm(HOSTS, STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all(living);
  for (const worker of workers) if (worker.client === null) await start(worker);

  const isCovered = await world.world.until(() => held().size === ITEMS.length, 60_000, 50);
  expect(isCovered, `held in the end: ${JSON.stringify([...held()])}`).toBe(true);
  isClosed = true;
  await looking;
  for (const { partitioner, client } of workers) {
    await partitioner?.close();
    await client?.close();
  }
  await Promise.all(serving);
}
