import { CreateMode, ErrorCode, type Hierarchy } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create, dataIn, get, SYNC, set } from './requests.ts';
import { play } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';
import { WireClient } from './wire-client.ts';

function hierarchyOf(
  groups: readonly (readonly number[])[],
  weights: Readonly<Record<number, number>> = {},
): Hierarchy {
  return {
    groups: new Map(groups.map((ids, i) => [i + 1, ids])),
    weights: new Map(groups.flat().map((id) => [id, weights[id] ?? 1])),
  };
}

describe('an ensemble of groups', () => {
  test('keeps serving where most groups are, although most servers are elsewhere', () =>
    play({ servers: 5, hierarchy: hierarchyOf([[1, 2, 3], [4], [5]]) }, async (stage) => {
      await stage.start();
      const [majority, quorum] = [stage.servers.slice(0, 3), stage.servers.slice(3)];
      const client = await stage.connect('app', { servers: 'zk1,zk2,zk3' });
      await client.create('/before');
      await stage.whole();
      stage.isolate(...quorum);
      const next = await stage.leader(...quorum);
      await stage.write(next, 3);
      await stage.until('the others do not serve', () => majority.every(({ isServing }) => !isServing));
      await expect(client.create('/during', '', { timeoutMs: 1000 })).rejects.toThrow();
      await stage.sleep(1000);
      expect(majority.map(({ isServing }) => isServing)).toEqual([false, false, false]);
      expect(stage.ensemble.leader).toBe(next);
      stage.heal();
      await stage.whole();
      await client.create('/after');
      await client.close();
    }));

  test('commits nothing that only a majority of servers has, and not a majority of groups', () =>
    play({ servers: 5, hierarchy: hierarchyOf([[1], [2], [3, 4, 5]]) }, async (stage) => {
      const leader = await stage.start();
      const [one, two, three, four] = stage.servers;
      expect(leader.serverId).toBe(5);
      const client = new WireClient(stage.world, 'app', three!, { timeoutMs: 60_000 });
      await client.whenAnswered();
      await stage.whole();
      // The other groups are unreachable; most of the servers are not.
      stage.world.network.block(one!.host, leader.host);
      stage.world.network.block(two!.host, leader.host);
      client.send(1, create('/x'));
      await stage.sleep(200);
      expect(client.replies).toEqual([]);
      expect([three!, four!, leader].map((server) => stage.hasLogged(server, '/x'))).toEqual([true, true, true]);
      expect(leader.isServing).toBe(true);
      // A sync needs the same quorum.
      const reader = new WireClient(stage.world, 'reader', four!, { session: client.session, timeoutMs: 60_000 });
      reader.send(1, SYNC);
      await stage.sleep(100);
      expect(reader.replies).toEqual([]);
      stage.world.network.unblock(two!.host, leader.host);
      await stage.until('it is committed', () => leader.core!.view.outstandingRequests === 0);
    }));

  test('counts weights: servers without one neither lead nor are waited for, and a heavy one decides alone', () =>
    play({ servers: 4, hierarchy: hierarchyOf([[1, 2, 3, 4]], { 1: 3, 2: 1, 3: 1, 4: 0 }) }, async (stage) => {
      const leader = await stage.start();
      const [heavy, two, three, four] = stage.servers;
      expect(leader).not.toBe(four);
      await stage.write(leader, 2);
      // Two, three and four are most of the servers, and less than half of the weight.
      stage.kill(heavy!);
      await stage.until('no server serves', () => stage.servers.every(({ isServing }) => !isServing));
      await stage.sleep(1500);
      expect(stage.ensemble.leader).toBeNull();
      stage.kill(two!, three!, four!);
      // The heavy one needs no other server.
      heavy!.start();
      expect(await stage.leader()).toBe(heavy);
      await stage.write(heavy!, 2);
    }));
});

describe('an observer', () => {
  test('serves reads, forwards writes, and receives everything', () =>
    play({ servers: 3, observers: 2 }, async (stage) => {
      await stage.start();
      const [one, two] = stage.ensemble.observers;
      expect([one!.role, two!.role]).toEqual(['observing', 'observing']);
      const client = new WireClient(stage.world, 'app', one!);
      await client.whenAnswered();
      expect((await client.ask(1, create('/mine', CreateMode.ephemeral))).error).toBe(ErrorCode.ok);
      const reader = new WireClient(stage.world, 'reader', two!);
      await reader.whenAnswered();
      reader.send(1, SYNC);
      expect(dataIn((await reader.ask(2, get('/mine', true))).body)).toBe('');
      await client.ask(2, set('/mine', 'data'));
      await stage.until('the watch has fired', () => reader.events.length === 1);
      expect(dataIn((await reader.ask(3, get('/mine'))).body)).toBe('data');
      await stage.whole();
      // Its log is as long as the others'.
      expect(stage.logOf(two!).map(({ header }) => header.zxid)).toEqual(
        stage.logOf(stage.servers[0]!).map(({ header }) => header.zxid),
      );
    }));

  test('never counts: with most of the voters gone any number of observers is no quorum', () =>
    play({ servers: 3, observers: 4, seeds: [1, 2] }, async (stage) => {
      const leader = await stage.start();
      const others = stage.ensemble.participants.filter((server) => server !== leader);
      const client = new WireClient(stage.world, 'app', stage.ensemble.observers[0]!, { timeoutMs: 60_000 });
      await client.whenAnswered();
      await stage.whole();
      for (const { host } of others) stage.world.network.block(host, leader.host);
      client.send(1, create('/x'));
      client.send(2, SYNC);
      await stage.sleep(200);
      expect(client.replies).toEqual([]);
      stage.kill(...others);
      await client.whenClosed();
      expect(client.replies).toEqual([]);
      await stage.until('no server serves', () => stage.servers.every(({ isServing }) => !isServing));
      await stage.sleep(500);
      expect(stage.ensemble.leader).toBeNull();
      expect(stage.ensemble.observers.map(({ role }) => role)).toEqual(Array.from({ length: 4 }, () => 'looking'));
    }));

  test('that is slow, cut off or gone delays no write', () =>
    play({ servers: 3, observers: 2 }, async (stage) => {
      const leader = await stage.start();
      const [one, two] = stage.ensemble.observers;
      const client = await stage.at(leader);
      one!.stallDisk(2000);
      stage.kill(two!);
      const beganMs = stage.world.nowMs;
      for (let i = 0; i < 20; i++) await client.create(`/x${i}`);
      expect(stage.world.nowMs - beganMs).toBeLessThan(20 * 10);
      two!.start();
      await stage.whole();
      await expectSameTrees(stage);
    }));
});
