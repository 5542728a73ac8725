/**
 * Readers and writers under faults, with downgrades. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/read-write-lock.simulation.test.ts`.
 */
import { TimeoutError } from '@meerkat/client';
import { describe } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { FencedStore } from '../testing/fenced-store.ts';
import { contendInStorm, drawLimits, simulateStorm } from '../testing/storm.ts';
import { ReadWriteLock } from './read-write-lock.ts';

describe('a read/write lock in a storm', () => {
  simulateStorm('has one writer or readers, and leaves nothing behind', 6, (fleet, seed) => {
    const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
    const store = new FencedStore('/entries');
    return contendInStorm(fleet, store, ['/lock'], async ({ station, client, random }) => {
      const lock = new ReadWriteLock(client, '/lock', { layout });
      const limits = drawLimits(random);
      if (random.chance(0.5)) return { held: await lock.acquireRead(limits), access: 'read' };
      const writing = await lock.acquireWrite(limits);
      if (random.chance(0.5)) return { held: writing, access: 'write' };
      await station.sleep(random.between(1, 100));
      // Handles that should be over are checked, whatever the result of the downgrade.
      if (writing.isHeld) store.onAcquired(station.host, writing.reenter());
      try {
        const haste = random.chance(0.3) ? { timeoutMs: random.between(0, 20) } : drawLimits(random);
        return { held: await lock.downgrade(writing, haste), access: 'read' };
      } catch (error) {
        // Nothing is held, and nothing has to be released.
        if (!(error instanceof TimeoutError) && !(error instanceof NotHeldError)) throw error;
        await station.sleep(random.between(1, 1000));
        return null;
      }
    });
  });
});
