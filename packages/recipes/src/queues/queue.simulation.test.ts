/**
 * Nothing is lost, duplicated or reordered under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/queues/queue.simulation.test.ts`.
 */
import { json } from '@meerkat/client';
import { expect, test } from 'vitest';
import { sequenceOf } from '../kernel/sequence.ts';
import { type Job, keyOf } from '../testing/queue-job.ts';
import { ITEMS_MAX, PRODUCERS, runQueueStorm } from '../testing/queue-storm.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { Queue } from './queue.ts';

test.each(seeds(4))(
  'no item is lost, and none has two holders, under any faults (seed %i)',
  async (seed) => {
    const options = {
      codec: json<Job>(),
      marginMs: seed % 3 === 0 ? 2000 : 0,
      leases: seed % 5 !== 0,
      ...(seed % 2 === 0 ? { itemsMax: 4 } : {}),
    };
    /** The position of each item in the queue, by producer. */
    const places = new Map<string, number>();
    await runQueueStorm({
      seed,
      open: (client) => new Queue<Job>(client, '/jobs', options),
      put: (queue, job, call) => queue.put(job, call),
      putAll: (queue, jobs, call) => queue.putAll(jobs, call),
      batchMax: options.itemsMax,
      leases: options.leases,
      compare: (a, b) => sequenceOf(a.name)! - sequenceOf(b.name)!,
      onTaken: ({ value, name }) => places.set(keyOf(value), sequenceOf(name)!),
    });
    // Without leases an item that is released is at the end.
    for (let producer = 0; options.leases && producer < PRODUCERS; producer++) {
      const numbers = Array.from({ length: ITEMS_MAX }, (_, number) => places.get(keyOf({ producer, number })));
      const seen = numbers.filter((place) => place !== undefined);
      expect(seen, `the order of producer ${producer}`).toEqual(seen.toSorted((a, b) => a - b));
    }
  },
  testTimeoutMs(1),
);
