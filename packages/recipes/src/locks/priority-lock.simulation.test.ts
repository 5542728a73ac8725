/**
 * Mutual exclusion and order under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/priority-lock.simulation.test.ts`.
 */
import { describe, expect } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { OrderlyEnds } from '../testing/orderly-ends.ts';
import { simulate } from '../testing/simulate.ts';
import { contendInStorm, drawLimits, simulateStorm } from '../testing/storm.ts';
import type { PriorityContending } from './priority-line.ts';
import { PriorityLock } from './priority-lock.ts';

describe('a lock with priorities in a storm', () => {
  simulateStorm(
    'has one holder at a time, leaves nothing behind, and records that no holder died',
    6,
    (fleet, seed) => {
      const lockDelayMs = seed % 3 === 0 ? 200 : 0;
      const ends = new OrderlyEnds('/lock');
      return contendInStorm(
        fleet,
        new FencedStore('/entries'),
        ['/lock'],
        async ({ client, random }) => {
          const lock = new PriorityLock(client, '/lock', { lockDelayMs });
          const ask = { ...drawLimits(random), priority: random.between(-2, 2) };
          const held = random.chance(0.1) ? await lock.tryAcquire(ask) : await lock.acquire(ask);
          return held === null ? null : { held, access: 'write' };
        },
        {
          onBegin: ({ client }) => ends.follow(client, fleet),
          onTaken: (held) => ends.onTaken(held),
          onGivenBack: (held) => ends.onGivenBack(held),
          check: (tree) => ends.check(tree, (name) => name === 'held'),
        },
      );
    },
  );
});

const WAITERS = 6;
const ROUNDS = 8;

simulate('is acquired by the best waiter at the time of the release, without faults', 4, async (fleet) => {
  const random = fleet.world.random.fork('waiters');
  let given = 0;
  const clients = await fleet.connectAll(WAITERS);
  /** The first waiter just before the last release. */
  let best: PriorityContending | null = null;
  const work = clients.map(async (client) => {
    const lock = new PriorityLock(client, '/lock');
    for (let round = 0; round < ROUNDS; round++) {
      await fleet.world.sleep(random.between(0, 60));
      const priority = random.between(-2, 2);
      const held = await lock.acquire({ priority });
      // A contender that came after the release may be better, but not with an equal priority.
      if (best !== null && best.sessionId !== held.sessionId) expect(priority).toBeLessThan(best.priority);
      await fleet.world.sleep(random.between(0, 40));
      const [holder, next] = await lock.contenders();
      expect(holder).toMatchObject({ isFirst: true, token: held.token, priority });
      best = next ?? null;
      if (best !== null) given++;
      await held.release();
    }
  });
  await Promise.all(work);
  expect((await clients[0]!.exists('/lock', { read: 'linearizable' }))?.numChildren).toBe(0);
  expect(given).toBeGreaterThan(0);
});
