/**
 * Processes claim names and numbers while servers and links fail and processes die. In every seed no name and no number is
 * given out twice, and names whose claims are over leave no znode behind.
 */
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { NameService } from './name-service.ts';
import { neverAborted, untilDone } from './persistence.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three'];
const STORM_MS = 20_000;
const SEEDS = seeds(4);

test('names and numbers are given out once', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const given: string[] = [];
  let isOver = false;

  const living = HOSTS.map(async (host) => {
    while (!isOver) {
      const client = await world.connect(host);
      const names = new NameService(client, '/names');
      const endMs = world.world.nowMs + random.between(1000, 10_000);
      while (!isOver && world.world.nowMs < endMs) {
        try {
          const options = { timeoutMs: random.between(1, 5000) };
          if (random.chance(0.5)) given.push(`id ${await names.nextId('ids', options)}`);
          else {
            const claimed = await names.claim('workers/w-', '', options);
            given.push(claimed.name);
            await world.world.sleep(random.between(0, 500));
            if (random.chance(0.8)) await claimed.release();
          }
        } catch {
          // Whatever it was: the next one must be another name again.
        }
        await world.world.sleep(random.between(0, 300));
      }
      if (random.chance(0.5)) await world.kill(client);
      else await client.close();
      await world.world.sleep(random.between(0, 1000));
    }
  });
  await world.storm(HOSTS, STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all(living);
  expect(given.length).toBeGreaterThan(3);
  expect(new Set(given).size).toBe(given.length);

  // Longer than any session: all claims are over now.
  const observer = await world.connect('observer');
  await world.world.sleep(20_000);
  const names = new NameService(observer, '/names');
  for (const parent of ['ids', 'workers']) {
    expect(await untilDone(observer, neverAborted(), () => names.list(parent)), parent).toEqual([]);
  }
  await observer.close();
}
