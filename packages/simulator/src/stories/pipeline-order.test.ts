import { ErrorCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { check, children, create, dataIn, exists, get, multi, multiErrorsIn, remove, SYNC, set } from './requests.ts';
import { play } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';
import { WireClient } from './wire-client.ts';

describe('a server', () => {
  test('1863: answers two sessions that use the same xids each correctly, in order, and reads behind writes', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.ensemble.participants.find((server) => server !== leader)!;
      const clients: WireClient[] = [];
      // Two at the follower, and one at each other kind of server, all with the same xids.
      for (const server of [follower, follower, leader, stage.ensemble.observers[0]!]) {
        const client = new WireClient(stage.world, `c${clients.length}`, server);
        clients.push(client);
        await client.whenAnswered();
      }
      for (const [i, client] of clients.entries()) await client.ask(1, create(`/x${i}`));
      const far = { delayMinMs: 1, delayMaxMs: 12, splitChance: 0.3, mergeChance: 0.3 };
      stage.world.network.slowDown(leader.host, follower.host, far);
      stage.world.network.slowDown(follower.host, leader.host, far);
      for (let round = 0; round < 20; round++) {
        for (const [i, client] of clients.entries()) {
          const xid = 2 + 4 * round;
          client.send(xid, set(`/x${i}`, `${i}.${round}`));
          client.send(xid + 1, get(`/x${i}`));
          client.send(xid + 2, set(`/x${(i + 1) % clients.length}`, 'wrong', 1000));
          client.send(xid + 3, exists(`/none${i}`));
        }
        if (round % 3 === 0) await stage.sleep(7);
      }
      for (const [i, client] of clients.entries()) {
        await client.reply(81);
        expect(client.replies.map(({ xid }) => xid)).toEqual(Array.from({ length: 81 }, (_, xid) => xid + 1));
        for (let round = 0; round < 20; round++) {
          const xid = 2 + 4 * round;
          expect(client.replyTo(xid)?.error).toBe(ErrorCode.ok);
          expect(dataIn(client.replyTo(xid + 1)!.body)).toBe(`${i}.${round}`);
          expect(client.replyTo(xid + 2)?.error).toBe(ErrorCode.badVersion);
          expect(client.replyTo(xid + 3)?.error).toBe(ErrorCode.noNode);
        }
        const zxids = client.replies.map(({ zxid }) => zxid);
        expect(zxids).toEqual(zxids.toSorted((a, b) => a - b));
      }
    }));

  test('answers a read behind a write with the state of that write, although more is applied in the same turn', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const writer = await stage.at(follower);
      const client = new WireClient(stage.world, 'app', leader);
      await client.whenAnswered();
      // The followers are a quorum: everything is committed, and applied at the leader when its disk resumes.
      leader.stallDisk(400);
      client.send(1, create('/x'));
      client.send(2, get('/x', true));
      client.send(3, create('/x/y'));
      client.send(4, children('/x', true));
      await stage.until('the followers have it', () => follower.core!.view.lastZxid >= leader.core!.view.lastZxid + 2);
      const stats = [await writer.set('/x', 'one'), await writer.set('/x', 'two')];
      const { stat } = await writer.create('/x/z');
      expect(client.replies).toEqual([]);
      await client.reply(4);
      const [made, read, child, list] = client.replies;
      expect([read!.zxid, dataIn(read!.body), list!.zxid]).toEqual([made!.zxid, '', child!.zxid]);
      await stage.until('both watches have fired', () => client.events.length === 2);
      expect(client.events.map(({ path, zxid }) => [path, zxid])).toEqual([
        ['/x', Number(stats[0]!.mzxid)],
        ['/x', Number(stat.czxid)],
      ]);
    }));

  test('4537: answers a single write of a single client, whenever its commit comes', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const client = new WireClient(stage.world, 'app', follower);
      await client.whenAnswered();
      // COMMIT arrives together with its PROPOSAL, right behind it, long after it, and before it is durable here.
      for (const [i, delayMs] of [0, 0.1, 5, 40, 90].entries()) {
        const way = { delayMinMs: delayMs, delayMaxMs: delayMs, splitChance: 0, mergeChance: i % 2 };
        stage.world.network.slowDown(leader.host, follower.host, way);
        follower.stallDisk(90 - delayMs);
        expect((await client.ask(i + 1, create(`/x${i}`))).error).toBe(ErrorCode.ok);
      }
    }));

  test('1624: undoes exactly what a failed multi would have done', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      await stage.start();
      for (const [i, server] of stage.servers.entries()) {
        const client = new WireClient(stage.world, `c${i}`, server);
        await client.whenAnswered();
        const x = `/x${i}`;
        client.send(1, create(x));
        client.send(2, set(x, 'one', 0));
        client.send(3, multi(set(x, 'lost', 1), create(`${x}/lost`), set(x, 'lost too', 2), check('/none', 0)));
        // As if the multi had never been sent: the version is that of the write before it, and no znode is in the way.
        client.send(4, set(x, 'two', 1));
        client.send(5, create(`${x}/lost`));
        client.send(6, multi(remove(`${x}/lost`), check(x, 9), remove(x, 2)));
        client.send(7, set(x, 'three', 2));
        client.send(8, multi(remove(`${x}/lost`), remove(x, 3), create(x), set(x, 'again', 0)));
        client.send(9, get(x));
        await client.reply(9);
        expect(client.replies.map(({ error }) => error)).toEqual(Array.from({ length: 9 }, () => ErrorCode.ok));
        const { ok, runtimeInconsistency, noNode, badVersion } = ErrorCode;
        expect(multiErrorsIn(client.replyTo(3)!.body)).toEqual([ok, ok, ok, noNode]);
        expect(multiErrorsIn(client.replyTo(6)!.body)).toEqual([ok, badVersion, runtimeInconsistency]);
        expect(dataIn(client.replyTo(9)!.body)).toBe('again');
      }
      await expectSameTrees(stage);
    }));

  test('3598: that ends its role with txns in progress keeps nothing of them in memory, and continues with what is on its disk', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const { network } = stage.world;
      const client = new WireClient(stage.world, 'app', follower, { timeoutMs: 60_000 });
      await client.whenAnswered();
      await client.ask(1, create('/x'));
      for (let xid = 2; xid < 10; xid++) await client.ask(xid, set('/x', String(xid)));
      // Proposals arrive and wait for the disk, and for their COMMITs; in the middle of them the connection breaks.
      for (let xid = 10; xid < 30; xid++) client.send(xid, set('/x', String(xid)));
      client.send(30, SYNC);
      await stage.packet({ from: leader, to: follower, stage: 'received', type: PacketType.proposal });
      follower.stallDisk(20);
      stage.breakLinks(leader, follower);
      await stage.until('the role ends', () => follower.role === 'looking');
      const life = follower.life;
      await client.whenClosed();
      const answered = client.replies.map(({ xid }) => xid);
      expect(answered).toEqual(answered.map((_, i) => i + 1));
      expect(answered.length).toBeLessThan(30);
      network.heal();
      await stage.whole();
      expect(follower.life).toBe(life);
      // What was answered is there; what was not may be, in order.
      const { stat, data } = await (await stage.at(follower)).get('/x', { read: 'linearizable' });
      expect(stat.version).toBeGreaterThanOrEqual(answered.length - 1);
      expect(new TextDecoder().decode(data)).toBe(String(stat.version + 1));
      await expectSameTrees(stage);
    }));
});
