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

test('clients of a server of its own know that its answers need no lease', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const { connectString } = world.startEnsemble({ servers: 1 });
  await world.run(async () => {
    const client = await world.connect('app', { servers: connectString });
    expect(await client.hasLeasedAnswers()).toBe(true);
    await client.close();
  });
});

test('beside a server of Apache no answers are leased, and its clients find nothing to read', () =>
  playMixed({ servers: 3, apache: [2] }, async (stage) => {
    await stage.start();
    for (const server of stage.ours) {
      expect(await (await stage.at(server)).hasLeasedAnswers()).toBe(false);
    }
  }));

const TICK_MS = 2000;

/** Milliseconds without an answer that a client of a follower sees, which asks again every millisecond or two. */
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
    // It waits for the same server, whatever happens.
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

test('reads at a follower stop when its leader stands still, and go on with it', async () => {
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
