/**
 * The safety property of counters: each addition that is reported counts exactly once, whatever happened to its reply.
 * In every seed:
 *
 * 1. no two additions report the same result, and each reports one more than it found;
 * 2. the counter ends at the number of additions that succeeded, plus at most those that said they cannot tell;
 * 3. those that cannot tell are of sessions that were lost;
 * 4. nothing is left of the writers.
 */
import { type Client, isZooKeeperError } from '@meerkat/client';
import { Nemesis, planFaults, VirtualWorld } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { AtomicLong } from './counters.ts';

const SEEDS = seeds(3);
const HOSTS = ['one', 'two', 'three', 'four'];

test.each(SEEDS)('each addition counts exactly once, seed %i', (seed) => count(seed), patienceMs(1));

async function count(seed: number): Promise<void> {
  const world = new VirtualWorld({ seed });
  const ensemble = world.startEnsemble({ servers: 3 });
  await world.run(async () => {
    const random = world.random.fork('program');
    // Short sessions are lost with replies, long ones are not.
    const sessionTimeoutMs = random.pick([1000, 30_000]);
    const options = { servers: ensemble.connectString, sessionTimeoutMs, connectTimeoutMs: 60_000 };
    const clients = await Promise.all(HOSTS.map((host) => world.connect(host, options)));
    let sessionsLost = 0;
    for (const client of clients) client.onState(({ state }) => (sessionsLost += state === 'lost' ? 1 : 0));

    const nemesis = new Nemesis(world, ensemble);
    const kinds = ['crash', 'power', 'pause', 'partition', 'isolate', 'break', 'slow', 'flap', 'restart-all'] as const;
    const plan = { kinds, durationMs: 10_000, servers: ensemble.hosts, clients: HOSTS, pauseMs: 400 };
    nemesis.unleash(planFaults(world.random.fork('faults'), plan));

    const results: bigint[] = [];
    let unknown = 0;
    const endMs = world.nowMs + 10_000;
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
          // What certainly had no effect need not be counted.
          if (error.outcome === 'unknown') unknown++;
        }
        await world.sleep(random.between(0, 50));
      }
      return counter;
    });
    const counters = await Promise.all(counting);
    nemesis.heal();

    expect(new Set(results).size).toBe(results.length);
    const value = await counters[0]!.get({ read: 'linearizable' });
    expect(value).toBeGreaterThanOrEqual(BigInt(results.length));
    expect(value).toBeLessThanOrEqual(BigInt(results.length + unknown));
    if (sessionsLost === 0) expect(unknown).toBe(0);
    expect(results.length).toBeGreaterThan(0);

    for (const counter of counters) await counter.close();
    await Promise.all(clients.slice(1).map((client) => client.close()));
    expect(await world.until(() => ensemble.isWhole, 60_000)).toBe(true);
    await expectNoWitness(world, clients[0]!);
    await clients[0]!.close();
  });
}

async function expectNoWitness(world: VirtualWorld, client: Client): Promise<void> {
  // Sessions that were given up end by themselves.
  for (let i = 0; i < 100; i++) {
    const stat = await client.exists('/counters/hits.witnesses', { read: 'linearizable' });
    if (stat === null || stat.numChildren === 0) return;
    await world.sleep(1000);
  }
  throw new Error('witnesses stay behind');
}
