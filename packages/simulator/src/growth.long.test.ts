import { expect, test } from 'vitest';
import { Churn } from './testing/churn.ts';
import { HeapCensus } from './testing/heap-census.ts';
import { OBSERVER_MASTER_PORT } from './virtual-ensemble.ts';
import { VirtualWorld } from './virtual-world.ts';

const CYCLES = 60;
const ROUNDS = 4;
/** In a round, of what leaks once in eight cycles. */
const LEAKED = CYCLES / 8;

/** A leak of our own: the test fails when it is not found. */
class Planted {}

test.each([
  ['an ensemble whose leaders change', { servers: 3, observers: 1, clientThreads: 2 }, true],
  ['an ensemble that keeps its leader', { servers: 5, observers: 1 }, false],
])('%s: nothing grows, whatever clients and links do', async (_, shape, leadersChange) => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({
    ...shape,
    isSlow: true,
    ensemble: { commitLogCount: 50, observerMasterPort: OBSERVER_MASTER_PORT },
    core: {
      snapCount: 100,
      purgeIntervalMs: 1000,
      logBytesMax: 65_536,
      extendedTypesEnabled: true,
      // The digests of a thousand txns are kept, one in 128.
      digestEnabled: false,
    },
  });
  const churn = new Churn(world, ensemble, leadersChange);
  const census = new HeapCensus(ROUNDS);
  const planted: Planted[] = [];
  // Caches fill.
  await world.run(() => churn.run(CYCLES));
  for (let round = 0; round < ROUNDS; round++) {
    await world.run(() => churn.run(CYCLES));
    for (let i = 0; i < LEAKED; i++) planted.push(new Planted());
    await census.take();
  }
  expect(census.growing(LEAKED)).toEqual([{ what: 'object Planted', counts: [8, 16, 24, 32] }]);
  expect(planted).toHaveLength(32);
});
