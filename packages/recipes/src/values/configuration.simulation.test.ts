/**
 * The safety properties of configurations. In every seed, whatever happens to servers, links and replies:
 *
 * 1. an update of a `Configuration` is carried out once: each version is what was made of the one before, and so are the
 *    former versions that are kept;
 * 2. who reads a `PublishedSet`, or observes one, gets all of one set and nothing of another;
 * 3. nothing of unfinished sets stays behind after the next publication.
 */
import { type Client, isZooKeeperError, json, text } from '@meerkat/client';
import { Nemesis, planFaults, VirtualWorld } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Configuration } from './configuration.ts';
import { type PublishedEntries, PublishedSet } from './published-set.ts';

const SEEDS = seeds(2);
const HOSTS = ['one', 'two', 'three'];
const STORM_MS = 6000;
const KEEP = 4;

interface Storm {
  readonly world: VirtualWorld;
  readonly clients: readonly Client[];
  readonly isOver: () => boolean;
}

/** Three clients of three servers, through what the seed has in store; `after` runs once everything is healed. */
async function throughStorm(
  seed: number,
  during: (storm: Storm) => Promise<void>,
  after: (client: Client) => Promise<void>,
): Promise<void> {
  const world = new VirtualWorld({ seed });
  const ensemble = world.startEnsemble({ servers: 3 });
  await world.run(async () => {
    const sessionTimeoutMs = world.random.fork('program').pick([1000, 30_000]);
    const options = { servers: ensemble.connectString, sessionTimeoutMs, connectTimeoutMs: 60_000 };
    const clients = await Promise.all(HOSTS.map((host) => world.connect(host, options)));
    const nemesis = new Nemesis(world, ensemble);
    const kinds = ['crash', 'power', 'pause', 'partition', 'isolate', 'break', 'slow', 'flap', 'restart-all'] as const;
    const plan = { kinds, durationMs: STORM_MS, servers: ensemble.hosts, clients: HOSTS, pauseMs: 400 };
    nemesis.unleash(planFaults(world.random.fork('faults'), plan));
    const endMs = world.nowMs + STORM_MS;
    const going = during({ world, clients, isOver: () => world.nowMs >= endMs });
    await world.sleep(STORM_MS);
    nemesis.heal();
    await going;
    await after(clients[0]!);
    await Promise.all(clients.map((client) => client.close()));
  });
}

test.each(SEEDS)(
  'an update of a configuration is carried out once, seed %i',
  async (seed) => {
    const numbered = (client: Client): Configuration<{ n: number }> =>
      new Configuration(client, '/app/config', json<{ n: number }>(), { keep: KEEP });
    let reported = 0;
    let unknown = 0;
    await throughStorm(
      seed,
      async ({ world, clients, isOver }) => {
        const random = world.random.fork('updates');
        const updating = clients.map(async (client) => {
          const configuration = numbered(client);
          while (!isOver()) {
            const update = configuration.update((current) => ({ n: (current?.n ?? -1) + 1 }));
            const published = await update.catch((error: unknown) => {
              ignoreService(error);
              if (isZooKeeperError(error) && error.outcome === 'unknown') unknown++;
            });
            if (published !== undefined && published !== null) {
              expect(published.value.n).toBe(published.version);
              reported++;
            }
            await world.sleep(random.between(0, 60));
          }
        });
        await Promise.all(updating);
      },
      async (client) => {
        const configuration = numbered(client);
        const last = await configuration.set({ n: -1 });
        expect(reported).toBeGreaterThan(0);
        // As many versions as updates, each of which made one.
        expect(last.version).toBeGreaterThanOrEqual(reported);
        expect(last.version).toBeLessThanOrEqual(reported + unknown);
        const former = await configuration.history();
        expect(former.slice(0, KEEP)).toEqual([1, 2, 3, 4].map((i) => last.version - i));
        for (const version of former) expect(await configuration.at(version)).toEqual({ n: version });
        const back = await configuration.rollback();
        expect(back).toEqual({ value: { n: last.version - 1 }, version: last.version + 1 });
      },
    );
  },
  patienceMs(1),
);

test.each(SEEDS)(
  'nobody reads half of a published set, seed %i',
  async (seed) => {
    const keep = 1 + (seed % 2);
    const flags = (client: Client): PublishedSet<string> =>
      new PublishedSet(client, '/flags', text, { keep, transactionZnodesMax: 8 });
    let seen = 0;
    let published = 0;
    await throughStorm(
      seed,
      async ({ world, clients, isOver }) => {
        const random = world.random.fork('sets');
        const [first, second, reader] = clients as [Client, Client, Client];
        const publishing = [first, second].map(async (client, i) => {
          for (let n = 0; !isOver(); n++) {
            // Some are published in one transaction, and some in many; some publishers give up in the midst of it.
            const timeoutMs = random.chance(0.2) ? random.between(1, 30) : 5000;
            const name = await flags(client)
              .publish(makeSet(`${i}.${n}`, random.between(1, 40)), { timeoutMs })
              .catch(ignoreService);
            if (name !== undefined) published++;
            if (random.chance(0.1)) await flags(client).rollback({ timeoutMs }).catch(ignoreMissing);
            await world.sleep(random.between(0, 40));
          }
        });
        const reading = (async () => {
          while (!isOver()) {
            const set = await flags(reader).read().catch(ignoreService);
            if (set !== undefined && set !== null) {
              expectWhole(set);
              seen++;
            }
            await world.sleep(random.between(0, 20));
          }
        })();
        const ending = new AbortController();
        const observing = (async () => {
          let zxid = 0n;
          for await (const set of flags(reader).observe({ signal: ending.signal })) {
            expectWhole(set);
            expect(set.zxid).toBeGreaterThan(zxid);
            zxid = set.zxid;
          }
        })();
        await Promise.all([...publishing, reading]);
        ending.abort();
        await observing;
      },
      async (client) => {
        expect(published).toBeGreaterThan(0);
        expect(seen).toBeGreaterThan(0);
        const name = await flags(client).publish(makeSet('last', 3));
        const history = await flags(client).history();
        expect(history[0]).toBe(name);
        const { children } = await client.children('/flags');
        expect(children.toSorted()).toEqual(['ready', ...history].toSorted());
      },
    );
  },
  patienceMs(1),
);

function makeSet(id: string, size: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: size }, (_, i) => [`entry${i}`, `${id} of ${size}`]));
}

function expectWhole({ entries }: PublishedEntries<string>): void {
  const values = new Set(entries.values());
  expect(values.size).toBe(1);
  expect([...values][0]).toMatch(new RegExp(` of ${entries.size}$`));
}

function ignoreService(error: unknown): undefined {
  if (!isZooKeeperError(error)) throw error;
}

function ignoreMissing(error: unknown): void {
  if (!isZooKeeperError(error) && !(error instanceof RangeError)) throw error;
}
