import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { VirtualWorld } from '../virtual-world.ts';
import { playMixed } from './mixed-stage.ts';

const ENSEMBLES = [
  ['of servers with the same lease', [2, 2, 2], true],
  ['of servers without leases', [0, 0, 0], false],
  ['with a voter that has another lease', [2, 2, 3], false],
] as const;

test.each(ENSEMBLES)('clients of an ensemble %s know whether its answers are leased', async (_, ticks, isLeased) => {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.addEnsemble({ servers: 3 });
  await world.run(async () => {
    ensemble.servers.forEach((server, i) => {
      const { ensemble: own } = server.options;
      Object.assign(own!, { leaseTicks: ticks[i] });
      server.start();
    });
    await world.until(() => ensemble.isWhole, 60_000);
    for (const { host } of ensemble.servers) {
      const client = await world.connect(`app-${host}`, { servers: `${host}:2181/chroot` });
      expect(await client.hasLeasedAnswers()).toBe(isLeased);
      await client.close();
    }
  });
});

test('servers that decide before they are connected to each other know of each other’s lease afterwards', async () => {
  const world = new VirtualWorld({ seed: 1 });
  world.network.block('zk1', 'zk2');
  const ensemble = world.startEnsemble({ servers: 3 });
  await world.run(async () => {
    await world.until(() => ensemble.isWhole, 60_000);
    const clients = await Promise.all(
      ['zk1', 'zk2'].map((at) => world.connect(`app-${at}`, { servers: `${at}:2181` })),
    );
    const answers = () => Promise.all(clients.map((client) => client.hasLeasedAnswers()));
    expect(await answers()).toEqual([false, false]);
    world.network.heal();
    await world.sleep(30_000);
    expect(await answers()).toEqual([true, true]);
  });
});

test('clients of a standalone server know that its answers need no lease', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const { connectString } = world.startEnsemble({ servers: 1 });
  await world.run(async () => {
    const client = await world.connect('app', { servers: connectString });
    expect(await client.hasLeasedAnswers()).toBe(true);
    await client.close();
  });
});

test('beside a server of Apache no answers are leased, and clients are told nothing of leases', () =>
  playMixed({ servers: 3, apache: [2] }, async (stage) => {
    await stage.start();
    for (const server of stage.ours) {
      expect(await (await stage.at(server)).hasLeasedAnswers()).toBe(false);
    }
  }));

const TICK_MS = 2000;

/** Longest time without a reply, in milliseconds, for a follower's client that sends a request every 1 or 2 ms. */
async function longestSilence(
  seed: number,
  leaseTicks: number,
  ask: (client: Client) => Promise<unknown>,
  disturb: (leader: VirtualServer, world: VirtualWorld) => Promise<void>,
): Promise<{ readonly gapMs: number; readonly beganMs: number }> {
  const world = new VirtualWorld({ seed });
  const ensemble = world.startEnsemble({ servers: 3, tickTimeMs: TICK_MS, ensemble: { initLimit: 10, leaseTicks } });
  return world.run(async () => {
    await world.until(() => ensemble.isWhole, 60_000);
    const leader = ensemble.leader!;
    const follower = ensemble.servers.find((server) => server !== leader)!;
    // It waits for this server only.
    const client = await world.connect('app', { servers: `${follower.host}:2181`, sessionTimeoutMs: 40_000 });
    await client.create('/counter', '');
    await world.sleep(5000 + 137 * seed);
    const startMs = world.nowMs;
    const end = disturb(leader, world).then(() => world.sleep(5000));
    let isOver = false;
    void end.then(() => {
      isOver = true;
    });
    let [lastMs, gapMs, beganMs] = [startMs, 0, 0];
    while (!isOver) {
      await ask(client).then(
        () => {
          if (world.nowMs - lastMs > gapMs) [gapMs, beganMs] = [world.nowMs - lastMs, lastMs - startMs];
          lastMs = world.nowMs;
        },
        () => {},
      );
      await world.sleep(1);
    }
    return { gapMs, beganMs };
  });
}

test('leases do not make the pause longer when a leader dies', async () => {
  const longer: number[] = [];
  for (let seed = 1; seed <= 6; seed++) {
    const gapWith = async (leaseTicks: number): Promise<number> => {
      const write = (client: Client): Promise<unknown> => client.set('/counter', 'again', { timeoutMs: 5000 });
      const kill = async (leader: VirtualServer): Promise<void> => leader.crash();
      return (await longestSilence(seed, leaseTicks, write, kill)).gapMs;
    };
    longer.push((await gapWith(2)) - (await gapWith(0)));
  }
  expect(Math.max(...longer)).toBeLessThan(20);
});

test('reads at a follower stop when its leader is paused, and continue when it resumes', async () => {
  for (let seed = 1; seed <= 4; seed++) {
    const read = (client: Client): Promise<unknown> => client.exists('/counter', { timeoutMs: 20_000 });
    const pause = async (leader: VirtualServer, world: VirtualWorld): Promise<void> => {
      leader.pause();
      await world.sleep(7000);
      leader.resume();
    };
    const { gapMs, beganMs } = await longestSilence(seed, 2, read, pause);
    expect(beganMs).toBeGreaterThan(TICK_MS);
    expect(beganMs).toBeLessThan(2 * TICK_MS);
    expect(beganMs + gapMs).toBeLessThan(7050);
    expect((await longestSilence(seed, 0, read, pause)).gapMs).toBeLessThan(50);
  }
});

/** Packets between servers at the quorum port, in twenty seconds, and per operation in them. */
async function quorumTraffic(
  leaseTicks: number,
  work: ((client: Client) => Promise<unknown>) | null,
): Promise<{ readonly packets: number; readonly perWork: number }> {
  const world = new VirtualWorld({ seed: 3 });
  const ensemble = world.addEnsemble({ servers: 3, tickTimeMs: TICK_MS, ensemble: { initLimit: 10, leaseTicks } });
  const links = new Set<number>();
  let [packets, works, counts] = [0, 0, false];
  world.network.tap = {
    onOpen(connection, _dialler, _host, port) {
      if (port === QUORUM_PORT) links.add(connection);
    },
    onBytes(connection, _from, stage) {
      if (counts && stage === 'sent' && links.has(connection)) packets++;
    },
    onClose() {},
  };
  await world.run(async () => {
    for (const server of ensemble.servers) server.start();
    await world.until(() => ensemble.isWhole, 60_000);
    const client = await world.connect('app', { servers: ensemble.connectString, sessionTimeoutMs: 40_000 });
    await client.create('/counter', '');
    await world.sleep(5000);
    counts = true;
    const endMs = world.nowMs + 20_000;
    while (world.nowMs < endMs) {
      works++;
      if (work !== null) await work(client);
      await world.sleep(100);
    }
    counts = false;
    await client.close();
  });
  return { packets, perWork: packets / works };
}

const QUORUM_PORT = 2888;

test.each([
  ['at rest', null],
  ['with ten writes a second', (client: Client) => client.set('/counter', 'again')],
  ['with ten syncs a second', (client: Client) => client.sync('/')],
] as const)('servers send each other as much with leases as without, %s', async (_, work) => {
  const leased = await quorumTraffic(2, work);
  const plain = await quorumTraffic(0, work);
  if (work === null) expect(leased).toEqual(plain);
  expect(plain.packets).toBeGreaterThan(0);
  expect(leased.perWork / plain.perWork).toBeLessThan(1.01);
});
