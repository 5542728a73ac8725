/**
 * The safety property of counters: each addition that succeeds counts exactly once, whatever happened to its reply. In
 * every seed:
 *
 * 1. no two additions return the same result, and each returns one more than it found;
 * 2. the counter ends at the number of additions that succeeded, plus at most those of unknown outcome;
 * 3. those of unknown outcome are of lost sessions;
 * 4. nothing is left of the writers.
 */
import { isZooKeeperError } from '@meerkat/client';
import { expect } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { expectEmpty, untilWhole } from '../testing/aftermath.ts';
import { simulate } from '../testing/simulate.ts';
import { AtomicLong } from './counters.ts';

const CLIENTS = 4;
const STORM_MS = 10_000;
const KINDS = ['crash', 'power', 'pause', 'partition', 'isolate', 'break', 'slow', 'flap', 'restart-all'] as const;

simulate('each addition counts exactly once', 3, async (fleet) => {
  const { world } = fleet;
  const random = world.random.fork('program');
  // Short sessions are lost with replies, long ones are not.
  const sessionTimeoutMs = random.pick([1000, 30_000]);
  const clients = await fleet.connectAll(CLIENTS, { sessionTimeoutMs });
  let sessionsLost = 0;
  for (const client of clients) client.onState(({ state }) => (sessionsLost += state === 'lost' ? 1 : 0));
  fleet.unleash(STORM_MS, CLIENTS, KINDS, 400);

  const results: bigint[] = [];
  let unknown = 0;
  const endMs = world.nowMs + STORM_MS;
  const counting = clients.map(async (client, i) => {
    const lock = i === 0 ? undefined : new Mutex(client, '/locks/hits');
    const counter = new AtomicLong(client, '/counters/hits', { lock, attemptsBeforeLock: 3 });
    while (world.nowMs < endMs) {
      try {
        const { before, after } = await counter.increment();
        expect(after).toBe(before + 1n);
        results.push(after);
      } catch (error) {
        if (!isZooKeeperError(error)) throw error;
        // Additions of outcome 'not-applied' are not counted.
        if (error.outcome === 'unknown') unknown++;
      }
      await world.sleep(random.between(0, 50));
    }
    return counter;
  });
  const counters = await Promise.all(counting);
  fleet.heal();

  expect(new Set(results).size).toBe(results.length);
  const value = await counters[0]!.get({ read: 'linearizable' });
  expect(value).toBeGreaterThanOrEqual(BigInt(results.length));
  expect(value).toBeLessThanOrEqual(BigInt(results.length + unknown));
  if (sessionsLost === 0) expect(unknown).toBe(0);
  expect(results.length).toBeGreaterThan(0);

  for (const counter of counters) await counter.close();
  await Promise.all(clients.map((client) => client.close()));
  await untilWhole(fleet);
  await expectEmpty(fleet, ['/counters/hits.witnesses']);
});
