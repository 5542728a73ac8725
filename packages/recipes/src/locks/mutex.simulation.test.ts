/**
 * Mutual exclusion under faults. A failure names its seed: `SEEDS=17 npx vitest run packages/recipes/src/locks/mutex.simulation.test.ts`.
 */
import { ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { runStorm, type Worker } from '../testing/storm.ts';
import { Mutex } from './mutex.ts';
import { NotHeldError } from './not-held-error.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
const SEEDS = seeds(8);

describe('a mutex in a storm', () => {
  test.each(SEEDS)(
    'has one holder at a time, and leaves nothing behind (seed %i)',
    async (seed) => {
      const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
      const store = new FencedStore('/entries');
      const work = async ({ station, client, random, isOver }: Worker): Promise<void> => {
        const { host } = station;
        await client.ensurePath('/entries').catch(() => {});
        const mutex = new Mutex(client, '/lock', { layout });
        while (!isOver()) {
          try {
            const isTry = random.chance(0.1);
            const patience = random.chance(0.3) ? { timeoutMs: random.between(1, 6000) } : {};
            await using lock = isTry ? await mutex.tryAcquire(patience) : await mutex.acquire(patience);
            if (lock === null) continue;
            store.onAcquired(host, lock);
            for (let i = random.between(0, 3); i > 0; i--) {
              await station.sleep(random.between(1, 300));
              if (lock.isHeld) store.writeOutside(lock);
              await store.writeInside(lock);
            }
            store.onReleased(host);
          } catch (error) {
            store.onReleased(host);
            if (!(error instanceof ZooKeeperError) && !(error instanceof NotHeldError)) throw error;
          }
          await station.sleep(random.between(1, 200));
        }
      };
      await runStorm(
        { seed, hosts: HOSTS },
        work,
        () => store.check(),
        async (judge) => {
          await store.judge(judge);
          expect(store.acquired).toBeGreaterThan(0);
          const stat = await judge.exists('/lock');
          expect(stat?.numChildren ?? 0).toBe(0);
        },
      );
    },
    patienceMs(1),
  );
});
