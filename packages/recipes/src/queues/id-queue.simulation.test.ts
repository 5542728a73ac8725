/**
 * Id queues under faults, while a client removes items by their ids. A failure prints its seed:
 * `SEEDS=17 npx vitest run packages/recipes/src/queues/id-queue.simulation.test.ts`.
 */
import { json } from '@meerkat/client';
import { expect, test } from 'vitest';
import { sequenceOf } from '../kernel/sequence.ts';
import type { ItemHistory } from '../testing/queue-history.ts';
import type { Job } from '../testing/queue-job.ts';
import { runQueueStorm } from '../testing/queue-storm.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { IdQueue } from './id-queue.ts';

const IDS = ['a', 'b/1', 'b/2', 'c|d'];
/** Half of the items have the first id. */
const idOf = ({ producer, number }: Job): string => IDS[number % 2 === 0 ? 0 : 1 + ((number + producer) % 3)]!;

/** A reply of the queue, and the two zxids between which it was given. */
interface Answer<T> {
  readonly id: string;
  readonly sinceZxid: number;
  readonly untilZxid: number;
  readonly value: T;
}

test.each(seeds(4))(
  'an item is done or removed, once, and remove misses no free item (seed %i)',
  async (seed) => {
    const removed: Answer<number>[] = [];
    const found: Answer<boolean>[] = [];
    const doubtful = new Set<string>();
    const options = { codec: json<Job>(), ...(seed % 4 === 0 ? { itemsMax: 8 } : {}) };
    const { books, history } = await runQueueStorm({
      seed,
      open: (client) => new IdQueue<Job>(client, '/jobs', options),
      put: (queue, job, call) => queue.put(idOf(job), job, call),
      compare: (a, b) => sequenceOf(a.name)! - sequenceOf(b.name)!,
      meddle: async (queue, fleet) => {
        const { random } = fleet.world;
        await fleet.world.sleep(random.between(0, 500));
        const id = random.pick(IDS);
        const { committedZxid: sinceZxid } = fleet;
        const answer = <T>(value: T): Answer<T> => ({ id, sinceZxid, untilZxid: fleet.committedZxid, value });
        if (random.chance(0.5)) found.push(answer(await queue.has(id)));
        try {
          removed.push(answer(await queue.remove(id, random.chance(0.2) ? { timeoutMs: random.between(1, 100) } : {})));
        } catch (error) {
          doubtful.add(id);
          throw error;
        }
      },
    });
    expect(removed.length).toBeGreaterThan(0);
    if (history === null) return;
    const withId = (id: string, items: readonly ItemHistory[]): ItemHistory[] =>
      items.filter(({ job }) => idOf(job) === id);
    for (const { id, sinceZxid, untilZxid, value } of removed) {
      const left = withId(id, history.free(sinceZxid, untilZxid)).map(({ name }) => name);
      expect(left, `${id} was removed, ${value} times, from zxid ${sinceZxid} to ${untilZxid}`).toEqual([]);
    }
    for (const { id, sinceZxid, untilZxid, value } of found) {
      const during = withId(id, history.items).filter((item) => item.fromZxid <= untilZxid && item.toZxid > sinceZxid);
      const throughout = during.filter((item) => item.fromZxid <= sinceZxid && item.toZxid > untilZxid);
      const what = `${id} ${value ? 'is' : 'is not'} there from zxid ${sinceZxid} to ${untilZxid}`;
      expect(value ? during.length > 0 : throughout.length === 0, what).toBe(true);
    }
    for (const id of IDS) {
      const items = withId(id, history.items).length;
      const countOf = (jobs: Iterable<string>): number => [...jobs].filter((key) => idOf(jobOf(key)) === id).length;
      const removals = removed.filter((answer) => answer.id === id).reduce((sum, { value }) => sum + value, 0);
      const completed = countOf(books.done.keys()) + removals;
      expect(completed, `${id} is done or removed once`).toBeLessThanOrEqual(items);
      if (doubtful.has(id)) continue;
      expect(completed + countOf(books.doubtfulDones), `none of ${id} is lost`).toBeGreaterThanOrEqual(items);
    }
  },
  testTimeoutMs(1),
);

function jobOf(key: string): Job {
  const [producer, number] = key.split('/').map(Number);
  return { producer: producer!, number: number! };
}
