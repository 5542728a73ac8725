/**
 * Priority queues under faults. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/queues/priority-queue.simulation.test.ts`.
 */
import { json } from '@meerkat/client';
import { expect, test } from 'vitest';
import { sequenceOf } from '../kernel/sequence.ts';
import type { Job } from '../testing/queue-job.ts';
import { runQueueStorm } from '../testing/queue-storm.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { PriorityQueue } from './priority-queue.ts';

const LAYOUTS = ['curator', 'kazoo', 'kazoo-locking'] as const;
const KAZOO_LOCKING = { items: '/jobs/entries', leases: '/jobs/taken', lines: '/jobs/lines' };

test.each(seeds(4))(
  'no item is delivered while there is one with a better priority, and none is lost (seed %i)',
  async (seed) => {
    const layout = LAYOUTS[seed % LAYOUTS.length]!;
    const options = { layout, codec: json<Job>(), leases: seed % 5 !== 0, ...(seed % 2 === 0 ? { itemsMax: 4 } : {}) };
    /** Curator's may be negative, kazoo's are not. */
    const priorityOf = ({ producer, number }: Job): number => {
      const priority = (number * 7 + producer * 3 + seed) % 5;
      return layout === 'curator' ? priority - 2 : priority;
    };
    const { books } = await runQueueStorm({
      seed,
      open: (client) => new PriorityQueue<Job>(client, '/jobs', options),
      put: (queue, job, call) => queue.put(job, { ...call, priority: priorityOf(job) }),
      leases: options.leases,
      compare: (a, b) => priorityOf(a.job) - priorityOf(b.job) || sequenceOf(a.name)! - sequenceOf(b.name)!,
      ...(layout === 'kazoo-locking' ? { paths: KAZOO_LOCKING } : {}),
    });
    expect(books.takes.length).toBeGreaterThan(0);
  },
  testTimeoutMs(1),
);
