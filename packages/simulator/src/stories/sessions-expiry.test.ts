import { CreateMode, ErrorCode, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create } from './requests.ts';
import { play } from './stage.ts';
import { WireClient } from './wire-client.ts';

/** Sessions of two ticks: they expire before any server suspects another one. */
const SHORT = { timeoutMs: 200 };

describe('a session that expires', () => {
  test('1208, 1496: gets no more ephemerals once its end is decided', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const client = new WireClient(stage.world, 'app', follower, SHORT);
      await client.whenAnswered();
      const { sessionId } = client.session;
      // The leader receives no pings of the session, and a create waits on the way to it.
      stage.world.network.block(follower.host, leader.host);
      const ended = stage.packet({
        from: leader,
        type: PacketType.proposal,
        is: (packet) => packet.type === PacketType.proposal && packet.entry.txn.type === OpCode.closeSession,
      });
      client.send(1, create('/orphan', CreateMode.ephemeral));
      client.ping();
      await ended;
      // Now both arrive: what shows that the session is alive, and the request for an ephemeral.
      stage.world.network.unblock(follower.host, leader.host);
      await client.whenClosed();
      expect(client.replyTo(1)?.error ?? ErrorCode.sessionExpired).toBe(ErrorCode.sessionExpired);
      await stage.whole();
      for (const server of stage.servers) expect(await stage.has(server, '/orphan')).toBe(false);
      const again = new WireClient(stage.world, 'app', follower, { session: client.session });
      await again.whenAnswered();
      expect(again.hasSession).toBe(false);
      expect(stage.logOf(leader).filter(({ txn }) => txn.type === OpCode.closeSession)).toMatchObject([
        { header: { sessionId } },
      ]);
    }));

  test('1208: takes along the ephemerals that are proposed and not committed when it ends', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const { network } = stage.world;
      const others = stage.servers.filter((server) => server !== leader);
      const client = new WireClient(stage.world, 'app', leader, SHORT);
      await client.whenAnswered();
      await client.ask(1, create('/mine'));
      // Nothing is acknowledged until the session has ended.
      for (const { host } of others) network.block(host, leader.host);
      client.send(2, create('/mine/early', CreateMode.ephemeral));
      client.send(3, create('/mine/late', CreateMode.ephemeralSequential));
      await stage.packet({
        from: leader,
        type: PacketType.proposal,
        is: (packet) => packet.type === PacketType.proposal && packet.entry.txn.type === OpCode.closeSession,
      });
      for (const { host } of others) network.unblock(host, leader.host);
      await client.whenClosed();
      await stage.whole();
      const txns = stage.logOf(leader).map(({ txn }) => txn);
      expect(txns.find(({ type }) => type === OpCode.closeSession)).toEqual({
        type: OpCode.closeSession,
        paths: ['/mine/early', '/mine/late0000000001'],
      });
      for (const server of stage.servers) {
        const { children, stat } = await (await stage.at(server)).children('/mine');
        expect([children, stat.cversion]).toEqual([[], 4]);
      }
    }));

  test('1496: is not brought back by a touch, nor by its client, between its end being decided and being committed', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const [follower, other] = stage.servers.filter((server) => server !== leader);
      const { network } = stage.world;
      const client = new WireClient(stage.world, 'app', follower!, SHORT);
      await client.whenAnswered();
      await client.ask(1, create('/mine', CreateMode.ephemeral));
      network.block('app', follower!.host);
      await stage.packet({
        from: leader,
        type: PacketType.proposal,
        is: (packet) => packet.type === PacketType.proposal && packet.entry.txn.type === OpCode.closeSession,
      });
      // The leader has closed it and has not applied that, as it waits for its disk; no other server knows it yet.
      leader.stallDisk(40);
      const back = [follower!, other!, leader].map(
        (server) => new WireClient(stage.world, 'app-elsewhere', server, { session: client.session }),
      );
      for (const connection of back) {
        await connection.whenAnswered();
        expect(connection.hasSession).toBe(false);
      }
      await stage.whole();
      for (const server of stage.servers) expect(await stage.has(server, '/mine')).toBe(false);
    }));
});

describe('a session whose client is not read, because its server waits for commits', () => {
  test.each(['leader', 'follower'])('lives on at a %s', (role) =>
    play({ servers: 3, core: { globalOutstandingLimit: 1 } }, async (stage) => {
      const leader = await stage.start();
      const server = role === 'leader' ? leader : stage.servers.find((other) => other !== leader)!;
      const client = new WireClient(stage.world, 'app', server, SHORT);
      await client.whenAnswered();
      await client.ask(1, create('/mine', CreateMode.ephemeral));
      // Shorter than syncLimit: pings go on, and nothing is committed.
      for (const one of stage.servers) one.stallDisk(400);
      for (let xid = 2; xid <= 5; xid++) client.send(xid, create(`/mine-${xid}`));
      for (let pings = 0; pings < 10; pings++) {
        client.ping();
        await stage.sleep(50);
      }
      for (let xid = 2; xid <= 5; xid++) expect((await client.reply(xid)).error).toBe(ErrorCode.ok);
      expect(await stage.has(leader, '/mine')).toBe(true);
      expect(client.isClosed).toBe(false);
    }),
  );
});
