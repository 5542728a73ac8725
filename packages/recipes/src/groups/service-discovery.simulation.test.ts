/**
 * Instances of both kinds register, change, close, die and come back under faults of servers and links; providers
 * choose all the time. In every seed, checked against the committed history:
 *
 * 1. a chosen instance was registered at some time, and for a provider that has been connected for a while, recently;
 * 2. an update that has resolved is registered, or a later one is; an instance closed while connected is gone, and a
 *    permanent one that was not closed stays when its process dies;
 * 3. cancelled calls end in time;
 * 4. when all faults are healed, every provider chooses among exactly the live instances, with their newest data.
 */
import { type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { type Registration, ServiceDiscovery, type ServiceProvider } from './service-discovery.ts';

const HOSTS = ['one', 'two', 'three'];
const CALLERS = ['ann', 'bob'];
const STORM_MS = 25_000;
/**
 * Longer than a client waits for a silent server, two thirds of a session (4000 ms), and than a lagging one keeps its
 * clients.
 */
const LAG_MS = 5000;

simulate('providers choose registered instances', 3, liveThrough);

interface Server {
  readonly host: string;
  client: Client | null;
  registration: Registration<number> | null;
  /** Whether it outlives its process. */
  isLasting: boolean;
  /** Of its payload. */
  newest: number;
}

/** What was reported, with the last zxid committed by then. */
interface Notes {
  readonly chosen: {
    readonly id: string;
    readonly payload: number;
    readonly sinceZxid: number;
    readonly zxid: number;
  }[];
  /** The payload that was reported as registered: it was, or a newer one; null: nothing. */
  readonly states: { readonly path: string; readonly payload: number | null; readonly zxid: number }[];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const servers: Server[] = HOSTS.map((host) => ({
    host,
    client: null,
    registration: null,
    isLasting: false,
    newest: 0,
  }));
  const callers = await Promise.all(CALLERS.map((host) => fleet.connectAs(host)));
  const providers = callers.map((client) => new ServiceDiscovery(client, '/services').provider<number>('search'));
  const notes: Notes = { chosen: [], states: [] };
  const connectedMs = callers.map(() => fleet.world.nowMs);
  for (const [i, client] of callers.entries()) {
    client.onState(({ state }) => {
      connectedMs[i] = state === 'connected' ? fleet.world.nowMs : Number.POSITIVE_INFINITY;
    });
  }
  /** The last committed zxid at each time. */
  const marks: { readonly ms: number; readonly zxid: number }[] = [];
  let isOver = false;

  const register = async (server: Server): Promise<void> => {
    server.client ??= await fleet.connectAs(server.host);
    const payload = ++server.newest;
    const { host } = server;
    const discovery = new ServiceDiscovery(server.client, '/services');
    const serviceType = server.isLasting ? 'PERMANENT' : 'DYNAMIC';
    server.registration = discovery.register<number>({ name: 'search', id: host, address: host, payload, serviceType });
  };
  const update = async ({ registration, newest: payload }: Server, timeoutMs?: number): Promise<void> => {
    const dueMs = fleet.world.nowMs + (timeoutMs ?? Number.POSITIVE_INFINITY);
    const own = registration!;
    try {
      await own.update({ payload }, timeoutMs === undefined ? {} : { timeoutMs });
      if (own.isRegistered) notes.states.push({ path: own.path, payload, zxid: fleet.committedZxid });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
    }
    expect(fleet.world.nowMs, 'when a call with a limit has ended').toBeLessThanOrEqual(dueMs + 1);
  };
  /** @returns whether it was connected throughout */
  const leave = async ({ client, registration }: Server): Promise<boolean> => {
    let wasConnected = client!.state === 'connected';
    const states = client!.onState(() => {
      wasConnected = false;
    });
    await registration!.close();
    states[Symbol.dispose]();
    expect(registration!.isRegistered).toBe(false);
    if (wasConnected) notes.states.push({ path: registration!.path, payload: null, zxid: fleet.committedZxid });
    return wasConnected;
  };
  const living = servers.map(async (server) => {
    while (!isOver) {
      await register(server);
      const endMs = fleet.world.nowMs + random.between(1000, 12_000);
      while (!isOver && fleet.world.nowMs < endMs) {
        await fleet.world.sleep(random.between(50, 1500));
        server.newest++;
        void update(server, random.chance(0.3) ? random.between(0, 500) : undefined);
      }
      if (isOver) return;
      if (random.chance(0.4)) {
        const { client } = server;
        server.client = null;
        server.registration = null;
        await fleet.kill(client!);
      } else {
        const { client } = server;
        const hasLeft = await leave(server);
        server.registration = null;
        // A permanent one that could not be removed stays, and is taken over by the next of its id.
        if (hasLeft) server.isLasting = random.chance(0.4);
        if (!hasLeft || random.chance(0.5)) {
          server.client = null;
          await client!.close();
        }
      }
      await fleet.world.sleep(random.between(0, 5000));
    }
  });
  const call = async (provider: ServiceProvider<number>, i: number): Promise<void> => {
    const ms = fleet.world.nowMs;
    marks.push({ ms, zxid: fleet.committedZxid });
    const instance = await provider.choose({ timeoutMs: 1000 }).catch(() => null);
    if (instance === null) return;
    const { id, address, payload } = instance;
    expect(address).toBe(id);
    const isFresh = connectedMs[i]! <= ms - LAG_MS;
    const sinceZxid = isFresh ? (marks.findLast((mark) => mark.ms <= ms - LAG_MS)?.zxid ?? 0) : 0;
    notes.chosen.push({ id, payload: payload!, sinceZxid, zxid: fleet.committedZxid });
  };
  const calling = providers.map(async (provider, i) => {
    while (!isOver) {
      await call(provider, i);
      await fleet.world.sleep(random.between(10, 200));
    }
  });
  await fleet.storm([...HOSTS, ...CALLERS], STORM_MS);
  await fleet.recover();
  isOver = true;
  await Promise.all([...living, ...calling]);
  expect(notes.chosen.length).toBeGreaterThan(0);

  // One of them dies for good, after all faults were healed.
  for (const server of servers) if (server.registration === null) await register(server);
  const doomed = servers.find(({ isLasting }) => !isLasting);
  if (doomed !== undefined) await fleet.kill(doomed.client!);
  const alive = servers.filter((server) => server !== doomed);
  const expected = alive.map(({ host, newest }) => `${host} ${newest}`).sort();
  const seenBy = async (provider: ServiceProvider<number>): Promise<string> =>
    (await provider.candidates()).map(({ id, payload }) => `${id} ${payload}`).join();
  for (const [i, provider] of providers.entries()) {
    let seen = '';
    for (let tries = 0; tries < 600 && seen !== expected.join(); tries++) {
      await fleet.world.sleep(50);
      seen = await seenBy(provider);
    }
    expect(seen, CALLERS[i]).toBe(expected.join());
  }
  await Promise.all(alive.map(leave));
  await Promise.all(providers.map((provider) => provider.close()));
  await Promise.all([...callers, ...alive.map(({ client }) => client)].map((client) => client?.close()));
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes);
}

/** Compares what was reported with what was committed. */
function check(tree: CommittedTree, { chosen, states }: Notes): void {
  const payloadAt = (path: string, zxid: number): number | null => {
    const state = tree.stateAt(path, zxid);
    return state === null ? null : JSON.parse(new TextDecoder().decode(state.data ?? undefined)).payload;
  };
  for (const { id, payload, sinceZxid, zxid } of chosen) {
    const path = `/services/search/${id}`;
    // The server that knew of a new one may have crashed at once.
    const times = tree.changesOf(path).filter((change) => change.zxid > sinceZxid);
    const stood = [sinceZxid, ...times.map((change) => change.zxid)].some((at) => payloadAt(path, at) === payload);
    if (!stood) expect.fail(`${id} with ${payload} was chosen at ${zxid}, and was not there since ${sinceZxid}`);
  }
  for (const { path, payload, zxid } of states) {
    const found = payloadAt(path, zxid);
    if (payload === null) expect(found, `${path} is closed at ${zxid}`).toBeNull();
    // The instance of a client that has lost its session since is no longer there.
    else if (found !== null) expect(found, `${path} at ${zxid}`).toBeGreaterThanOrEqual(payload);
  }
}
