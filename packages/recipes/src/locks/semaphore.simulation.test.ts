/**
 * Leases under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/semaphore.simulation.test.ts`.
 */
import { describe } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { contendInStorm, drawLimits, simulateStorm } from '../testing/storm.ts';
import { Semaphore } from './semaphore.ts';

describe('a semaphore in a storm', () => {
  simulateStorm('has no more holders than leases, and leaves nothing behind', 6, (fleet, seed) => {
    const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
    const lines = layout === 'kazoo' ? ['/limit', '/limit-__lock__'] : ['/limit/leases', '/limit/locks'];
    const store = new FencedStore('/entries', (holders) => holders.length <= 2);
    return contendInStorm(fleet, store, lines, async ({ client, random }) => {
      const semaphore = new Semaphore(client, '/limit', { layout, leasesMax: 2 });
      const limits = drawLimits(random);
      const held = random.chance(0.2) ? await semaphore.tryAcquire(limits) : await semaphore.acquire(limits);
      return held === null ? null : { held, access: 'read' };
    });
  });
});
