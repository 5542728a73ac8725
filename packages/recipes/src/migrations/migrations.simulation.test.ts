/**
 * Four processes apply the same migrations, each of which is visible when it is applied twice or out of order, while
 * servers and links fail and processes die. In every seed each migration is applied exactly once, in order, and none of
 * them in part.
 */
import type { Children } from '@meerkat/client';
import { expect, test } from 'vitest';
import { neverAborted, untilDone } from '../groups/persistence.ts';
import { type GroupWorld, inWorld } from '../groups/testing/world.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import type { Migration } from './migration-digest.ts';
import { Migrations } from './migrations.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
const COUNT = 8;
const SEEDS = seeds(4);

test('each migration is applied once', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

/** Two znodes each, of which the number says in which order they came to be. */
const MIGRATIONS: readonly Migration[] = Array.from({ length: COUNT }, (_, i) => [
  { kind: 'create', path: `/log/${i}-`, sequential: true },
  { kind: 'create', path: `/log/${i}b-`, sequential: true },
]);

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const observer = await world.connect('observer');
  await observer.create('/log');
  let isOver = false;
  const living = HOSTS.map(async (host) => {
    await world.world.sleep(random.between(0, 2000));
    for (;;) {
      const client = await world.connect(host);
      let isDead = false;
      const life = new AbortController();
      if (!isOver && random.chance(0.8)) {
        const lifeMs = random.between(5, 3000);
        void world.world.sleep(lifeMs).then(() => {
          isDead = true;
          life.abort();
          return world.kill(client);
        });
      }
      // A part at a time, as releases of a program do.
      const known = isOver ? COUNT : random.between(1, COUNT);
      const applied = await new Migrations(client).appliedCount('m').catch(() => 0);
      await new Migrations(client)
        .apply('m', MIGRATIONS.slice(0, Math.max(known, applied)), { signal: life.signal })
        .catch((error: unknown) => {
          // Somebody with a later release may have been faster.
          if (!isDead && !String(error).includes('have been applied, and there are only')) throw error;
        });
      if (!isDead) await client.close();
      if (isOver) return;
      await world.world.sleep(random.between(0, 1500));
    }
  });
  await world.storm(HOSTS, 15_000);
  await world.heal();
  isOver = true;
  await Promise.all(living);
  const last = await world.connect('last');
  expect(await new Migrations(last).apply('m', MIGRATIONS)).toMatchObject({ total: COUNT });
  const read = (): Promise<Children> => observer.children('/log', { read: 'linearizable' });
  const { children } = await untilDone(observer, neverAborted(), read);
  const expected = MIGRATIONS.flatMap((_, i) => [`${i}-`, `${i}b-`]).map(
    (name, i) => `${name}${String(i).padStart(10, '0')}`,
  );
  expect(children.toSorted()).toEqual(expected.toSorted());
  expect(await new Migrations(last).appliedCount('m')).toBe(COUNT);
  await Promise.all([observer, last].map((client) => client.close()));
}
