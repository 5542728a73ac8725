/**
 * Delay queues under faults, while the consumers' own clocks are wrong. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/queues/delay-queue.simulation.test.ts`.
 */
import { json } from '@meerkat/client';
import { expect, test } from 'vitest';
import { sequenceOf } from '../kernel/sequence.ts';
import { EPOCH_MS } from '../testing/committed.ts';
import type { ItemHistory } from '../testing/queue-history.ts';
import { type Job, keyOf } from '../testing/queue-job.ts';
import { runQueueStorm } from '../testing/queue-storm.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { DelayQueue } from './delay-queue.ts';

test.each(seeds(4))(
  'no item is delivered before its time, and none is lost (seed %i)',
  async (seed) => {
    /** The time before which a job must not be delivered, milliseconds since 1970. */
    const promised = new Map<string, number>();
    const options = { codec: json<Job>(), ...(seed % 2 === 0 ? { itemsMax: 6 } : {}) };
    const { history } = await runQueueStorm({
      seed,
      prepare: ({ world }, hosts) => {
        for (const host of hosts) world.clockOf(host).jumpWall(world.random.between(-3_600_000, 3_600_000));
      },
      open: (client) => new DelayQueue<Job>(client, '/jobs', options),
      put: (queue, job, call, { world }) => {
        const delayMs = world.random.pick([0, 10, 300, 2000]);
        const nowMs = EPOCH_MS + world.nowMs;
        const at = Math.ceil(nowMs + delayMs);
        promised.set(keyOf(job), delayMs === 0 ? 0 : nowMs + delayMs);
        return queue.put(job, { ...call, ...(world.random.chance(0.5) ? { delayMs } : { at }) });
      },
      compare: (a, b) => dueMsOf(a) - dueMsOf(b) || sequenceOf(a.name)! - sequenceOf(b.name)!,
      // A clock reading from the service is in the past when it arrives.
      dueMs: (item) => dueMsOf(item) - EPOCH_MS + LAG_MS,
    });
    for (const item of history?.items ?? []) {
      const key = keyOf(item.job);
      expect(dueMsOf(item), `the due time of ${key}`).toBeGreaterThanOrEqual(promised.get(key)!);
      for (const { fromMs } of item.leases) expect(fromMs, `${key} is taken`).toBeGreaterThanOrEqual(dueMsOf(item));
    }
  },
  testTimeoutMs(1),
);

const LAG_MS = 5000;

/** As given by its name. */
function dueMsOf({ name }: ItemHistory): number {
  const [, due] = /^queue-\|([0-9A-F]+)\|\d{10}$/.exec(name)!;
  return Number.parseInt(due!, 16);
}
