/**
 * Mutual exclusion under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/mutex.simulation.test.ts`.
 */
import { describe } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { OrderlyEnds } from '../testing/orderly-ends.ts';
import { contendInStorm, drawLimits, SKEWED_MARGIN_MS, simulateStorm } from '../testing/storm.ts';
import { Mutex } from './mutex.ts';

describe('a mutex in a storm', () => {
  simulateStorm('has one holder at a time, and leaves nothing behind', 6, (fleet, seed) => {
    const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
    return contendInStorm(fleet, new FencedStore('/entries'), ['/lock'], async ({ client, random }) => {
      const mutex = new Mutex(client, '/lock', { layout });
      const limits = drawLimits(random);
      const held = random.chance(0.1) ? await mutex.tryAcquire(limits) : await mutex.acquire(limits);
      return held === null ? null : { held, access: 'write' };
    });
  });
});

describe('a mutex with a delay after a death in a storm', () => {
  simulateStorm('has one holder at a time, and there is no delay after a graceful end', 3, (fleet, seed) => {
    const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
    const lockDelayMs = seed % 3 === 0 ? 2000 : 200;
    const ends = new OrderlyEnds('/lock');
    return contendInStorm(
      fleet,
      new FencedStore('/entries'),
      ['/lock'],
      async ({ client, random }) => {
        const mutex = new Mutex(client, '/lock', { layout, lockDelayMs });
        const limits = drawLimits(random);
        const held = random.chance(0.2) ? await mutex.tryAcquire(limits) : await mutex.acquire(limits);
        return held === null ? null : { held, access: 'write' };
      },
      {
        onBegin: ({ client }) => ends.follow(client, fleet),
        onTaken: (held) => ends.onTaken(held),
        onGivenBack: (held) => ends.onGivenBack(held),
        check: (tree) => ends.check(tree, (_, czxid, words) => words.has(`held 0x${czxid.toString(16)}`)),
      },
    );
  });
});

describe('a mutex in a storm in which clocks run apart', () => {
  simulateStorm('has one holder at a time with a margin for the clock drift', 2, (fleet) =>
    contendInStorm(
      fleet,
      new FencedStore('/entries'),
      ['/lock'],
      async ({ client, random }) => {
        const mutex = new Mutex(client, '/lock', { marginMs: SKEWED_MARGIN_MS });
        return { held: await mutex.acquire(drawLimits(random)), access: 'write' };
      },
      { skews: true },
    ),
  );

  simulateStorm('lets no holder write after the next holder has written, even without a margin', 2, (fleet) =>
    contendInStorm(
      fleet,
      // The number of concurrent holders is not checked.
      new FencedStore('/entries', () => true),
      ['/lock'],
      async ({ client, random }) => {
        const mutex = new Mutex(client, '/lock');
        return { held: await mutex.acquire(drawLimits(random)), access: 'write' };
      },
      { skews: true },
    ),
  );
});
