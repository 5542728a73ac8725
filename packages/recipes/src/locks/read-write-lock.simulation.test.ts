/**
 * Readers and writers under faults, with writers that become readers. A failure names its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/read-write-lock.simulation.test.ts`.
 */
import { TimeoutError } from '@meerkat/client';
import { describe, test } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { contendInStorm, drawPatience, MARGIN_MS } from '../testing/storm.ts';
import { ReadWriteLock } from './read-write-lock.ts';

describe('a read/write lock in a storm', () => {
  test.each(seeds(6))(
    'has one writer or readers, and leaves nothing behind (seed %i)',
    (seed) => {
      const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
      return contendInStorm(seed, new FencedStore('/entries'), ['/lock'], async ({ station, client, random }) => {
        const lock = new ReadWriteLock(client, '/lock', { layout, marginMs: MARGIN_MS });
        const patience = drawPatience(random);
        if (random.chance(0.5)) return { held: await lock.acquireRead(patience), access: 'read' };
        const writing = await lock.acquireWrite(patience);
        if (random.chance(0.5)) return { held: writing, access: 'write' };
        try {
          await station.sleep(random.between(1, 100));
          return { held: await lock.downgrade(writing, drawPatience(random)), access: 'read' };
        } catch (error) {
          await writing.release();
          // Nothing is held any more, whatever came of it.
          if (error instanceof TimeoutError) return null;
          throw error;
        }
      });
    },
    patienceMs(1),
  );
});
