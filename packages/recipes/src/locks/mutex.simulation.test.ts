/**
 * Mutual exclusion under faults. A failure names its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/locks/mutex.simulation.test.ts`.
 */
import { describe, test } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { OrderlyEnds } from '../testing/orderly-ends.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { contendInStorm, drawLimits, SKEWED_MARGIN_MS } from '../testing/storm.ts';
import { Mutex } from './mutex.ts';

describe('a mutex in a storm', () => {
  test.each(seeds(6))(
    'has one holder at a time, and leaves nothing behind (seed %i)',
    (seed) => {
      const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
      return contendInStorm(seed, new FencedStore('/entries'), ['/lock'], async ({ client, random }) => {
        const mutex = new Mutex(client, '/lock', { layout });
        const limits = drawLimits(random);
        const held = random.chance(0.1) ? await mutex.tryAcquire(limits) : await mutex.acquire(limits);
        return held === null ? null : { held, access: 'write' };
      });
    },
    testTimeoutMs(1),
  );
});

describe('a mutex with a delay after a death in a storm', () => {
  test.each(seeds(3))(
    'has one holder at a time, and there is no delay after a graceful end (seed %i)',
    (seed) => {
      const layout = seed % 2 === 0 ? 'kazoo' : 'curator';
      const lockDelayMs = seed % 3 === 0 ? 2000 : 200;
      const ends = new OrderlyEnds('/lock');
      return contendInStorm(
        seed,
        new FencedStore('/entries'),
        ['/lock'],
        async ({ client, random }) => {
          const mutex = new Mutex(client, '/lock', { layout, lockDelayMs });
          const limits = drawLimits(random);
          const held = random.chance(0.2) ? await mutex.tryAcquire(limits) : await mutex.acquire(limits);
          return held === null ? null : { held, access: 'write' };
        },
        {
          onBegin: ({ client, mark }) => ends.follow(client, mark),
          onTaken: (held) => ends.onTaken(held),
          onGivenBack: (held) => ends.onGivenBack(held),
          check: (tree) => ends.check(tree, (_, czxid, words) => words.has(`held 0x${czxid.toString(16)}`)),
        },
      );
    },
    testTimeoutMs(1),
  );
});

describe('a mutex in a storm in which clocks run apart', () => {
  test.each(seeds(2))(
    'has one holder at a time when its margin makes good for the clocks, too (seed %i)',
    (seed) =>
      contendInStorm(
        seed,
        new FencedStore('/entries'),
        ['/lock'],
        async ({ client, random }) => {
          const mutex = new Mutex(client, '/lock', { marginMs: SKEWED_MARGIN_MS });
          return { held: await mutex.acquire(drawLimits(random)), access: 'write' };
        },
        { skews: true },
      ),
    testTimeoutMs(1),
  );

  test.each(seeds(2))(
    'lets no holder write after the next holder has written, without any margin (seed %i)',
    (seed) =>
      contendInStorm(
        seed,
        // How many are sure at one time is not checked.
        new FencedStore('/entries', () => true),
        ['/lock'],
        async ({ client, random }) => {
          const mutex = new Mutex(client, '/lock');
          return { held: await mutex.acquire(drawLimits(random)), access: 'write' };
        },
        { skews: true },
      ),
    testTimeoutMs(1),
  );
});
