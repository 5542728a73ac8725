/**
 * Instances register, change, close and die while servers and links fail; providers choose all the time. In every seed:
 *
 * 1. what is chosen was registered, with data that its process has set;
 * 2. an instance that was closed or has died is not chosen any more by a provider that has been connected for longer than
 *    its session could live;
 * 3. when everything is healed, every provider chooses among exactly those that live, with their newest data.
 */
import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { type Registration, ServiceDiscovery, type ServiceProvider } from './service-discovery.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three'];
const CALLERS = ['ann', 'bob'];
const STORM_MS = 25_000;
const SEEDS = seeds(3);

test('providers choose what is registered', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

interface Server {
  readonly host: string;
  client: Client | null;
  registration: Registration<number> | null;
  /** Of its payload. */
  newest: number;
}

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const servers: Server[] = HOSTS.map((host) => ({ host, client: null, registration: null, newest: 0 }));
  const callers = await Promise.all(CALLERS.map((host) => world.connect(host)));
  const providers = callers.map((client) => new ServiceDiscovery(client, '/services').provider<number>('search'));
  let isOver = false;
  let chosen = 0;

  const register = async (server: Server): Promise<void> => {
    server.client = await world.connect(server.host);
    const payload = ++server.newest;
    const { host } = server;
    const discovery = new ServiceDiscovery(server.client, '/services');
    server.registration = discovery.register<number>({ name: 'search', id: host, address: host, payload });
  };
  const living = servers.map(async (server) => {
    while (!isOver) {
      await register(server);
      const endMs = world.world.nowMs + random.between(1000, 12_000);
      while (!isOver && world.world.nowMs < endMs) {
        await world.world.sleep(random.between(50, 1500));
        server.newest++;
        void server.registration?.update({ payload: server.newest }).catch(() => {});
      }
      if (isOver) return;
      const { client, registration } = server;
      server.client = null;
      server.registration = null;
      if (random.chance(0.5)) await world.kill(client!);
      else {
        await registration?.close();
        await client?.close();
      }
      await world.world.sleep(random.between(0, 5000));
    }
  });
  const call = async (provider: ServiceProvider<number>): Promise<void> => {
    const instance = await provider.choose().catch(() => null);
    if (instance === null) return;
    const server = servers.find(({ host }) => host === instance.id);
    expect(server, instance.id).toBeDefined();
    expect(instance.address).toBe(instance.id);
    expect(instance.payload).toBeGreaterThan(0);
    expect(instance.payload).toBeLessThanOrEqual(server!.newest);
    chosen++;
  };
  const calling = providers.map(async (provider) => {
    while (!isOver) {
      await call(provider);
      await world.world.sleep(random.between(10, 200));
    }
  });
  await world.storm([...HOSTS, ...CALLERS], STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all([...living, ...calling]);
  expect(chosen).toBeGreaterThan(0);

  // One of them dies for good, after everything was healed.
  for (const server of servers) if (server.client === null) await register(server);
  const [doomed] = servers;
  await world.kill(doomed!.client!);
  const alive = servers.slice(1);
  const expected = alive.map(({ host, newest }) => `${host} ${newest}`).sort();
  const seenBy = async (provider: ServiceProvider<number>): Promise<string> =>
    (await provider.candidates()).map(({ id, payload }) => `${id} ${payload}`).join();
  for (const [i, provider] of providers.entries()) {
    let seen = '';
    for (let tries = 0; tries < 600 && seen !== expected.join(); tries++) {
      await world.world.sleep(50);
      seen = await seenBy(provider);
    }
    expect(seen, CALLERS[i]).toBe(expected.join());
  }
  await Promise.all(alive.map(({ registration }) => registration?.close()));
  await Promise.all(providers.map((provider) => provider.close()));
  await Promise.all([...callers, ...alive.map(({ client }) => client)].map((client) => client?.close()));
}
