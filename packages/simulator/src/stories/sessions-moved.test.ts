import { ErrorCode, getInt, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { OBSERVER_MASTER_PORT } from '../virtual-ensemble.ts';
import { check, create, multi, set } from './requests.ts';
import { play } from './stage.ts';
import { WireClient } from './wire-client.ts';

describe('a session that moves', () => {
  test('710, 2886, 907: is where its client came last, also when an earlier server asks about it late', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const [a, b] = stage.servers.filter((server) => server !== leader);
      const { world } = stage;
      const first = new WireClient(world, 'app', a!);
      await first.whenAnswered();
      await first.ask(1, create('/x'));
      first.destroy();
      await stage.whole();
      // B takes the client and asks about its session. The question is held up; the client does not wait for it.
      world.network.block(b!.host, leader.host);
      const asked = stage.packet({ from: b!, to: leader, type: PacketType.revalidate });
      const second = new WireClient(world, 'app', b!, { session: first.session });
      await asked;
      second.destroy();
      const third = new WireClient(world, 'app', leader, { session: first.session });
      await third.whenAnswered();
      expect(third.hasSession).toBe(true);
      expect((await third.ask(1, multi(check('/x', 0), set('/x', 'at the leader')))).error).toBe(ErrorCode.ok);
      world.network.unblock(b!.host, leader.host);
      await stage.packet({ from: b!, to: leader, stage: 'received', type: PacketType.revalidate });
      // The leader cannot know which of the two the client is at now: it closes the connection, without SESSIONMOVED.
      third.send(2, set('/x', 'still at the leader'));
      await third.whenClosed();
      expect(third.replyTo(2)).toBeNull();
      await stage.sleep(50);
      // Its session follows it to any server.
      for (const [round, server] of [leader, b!, a!, leader].entries()) {
        const next = new WireClient(world, 'app', server, { session: first.session });
        await next.whenAnswered();
        expect(next.hasSession).toBe(true);
        const reply = await next.ask(1, multi(check('/x', 1 + 2 * round), set('/x', 'a'), set('/x', 'b')));
        expect(reply.error).toBe(ErrorCode.ok);
        await stage.whole();
      }
    }));

  test('484, 907: a write that is still on its way over its old server is not applied behind those over the new one', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const [a, b] = stage.servers.filter((server) => server !== leader);
      const { world } = stage;
      const first = new WireClient(world, 'app', a!);
      await first.whenAnswered();
      await first.ask(1, create('/x'));
      await stage.whole();
      // The request waits between A and the leader when the client goes to B.
      world.network.block(a!.host, leader.host);
      const sent = stage.packet({ from: a!, to: leader, type: PacketType.request });
      first.send(2, set('/x', 'old'));
      await sent;
      const second = new WireClient(world, 'app', b!, { session: first.session });
      await second.whenAnswered();
      expect((await second.ask(1, set('/x', 'new'))).error).toBe(ErrorCode.ok);
      world.network.unblock(a!.host, leader.host);
      // What A still forwards for it is refused, and A closes its connection rather than reporting it.
      await first.whenClosed();
      expect(first.replyTo(2)).toBeNull();
      const client = await stage.at(leader);
      const { data, stat } = await client.get('/x', { read: 'linearizable' });
      expect([new TextDecoder().decode(data), stat.version]).toEqual(['new', 1]);
      expect((await second.ask(2, multi(check('/x', 1), set('/x', 'newer')))).error).toBe(ErrorCode.ok);
    }));

  test('2886: is not ended, nor taken from its client, when its client comes twice to one server', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.servers.find((server) => server !== leader)!;
      const { world } = stage;
      let client = new WireClient(world, 'app', follower);
      await client.whenAnswered();
      const { session } = client;
      await client.ask(1, create('/x'));
      // Each connection opens before the one before has its answer.
      const slow = { delayMinMs: 20, delayMaxMs: 60, splitChance: 0, mergeChance: 0 };
      world.network.slowDown(follower.host, leader.host, slow);
      for (let i = 0; i < 4; i++) {
        client = new WireClient(world, 'app', follower, { session });
        await stage.sleep(5);
      }
      await client.whenAnswered();
      expect(client.hasSession).toBe(true);
      for (let xid = 1; xid <= 5; xid++) {
        expect((await client.ask(xid, multi(check('/x', xid - 1), set('/x', 'y')))).error).toBe(ErrorCode.ok);
      }
    }));

  test('continues at an observer once that has received what the session asked for before', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const { world } = stage;
      const [a, b] = stage.servers.filter((server) => server !== leader && server.serverId !== 4);
      const observer = stage.zk(4);
      const first = new WireClient(world, 'app', a!);
      await first.whenAnswered();
      await first.ask(1, create('/x'));
      await stage.whole();
      // The write is proposed, but not acknowledged. An observer does not receive proposals.
      const proposed = stage.packet({ from: leader, to: a!, type: PacketType.proposal });
      first.send(2, set('/x', 'old'));
      await proposed;
      for (const follower of [a!, b!]) world.network.block(follower.host, leader.host);
      const asked = stage.packet({ from: observer, to: leader, stage: 'received', type: PacketType.revalidate });
      const second = new WireClient(world, 'app', observer, { session: first.session });
      await asked;
      await stage.sleep(100);
      expect(second.connected).toBeNull();
      for (const follower of [a!, b!]) world.network.unblock(follower.host, leader.host);
      await second.whenAnswered();
      expect(second.hasSession).toBe(true);
      // It starts its xids again, as some clients do: the answer is that of this request, which makes version 2.
      const { body } = await second.ask(2, set('/x', 'new'));
      expect(getInt(body, STAT_VERSION_AT)).toBe(2);
    }));

  test('continues at an observer of a follower once that has received what the session asked for before', () =>
    play({ servers: 5, observers: 1, ensemble: { observerMasterPort: OBSERVER_MASTER_PORT } }, async (stage) => {
      const observer = stage.zk(6);
      const hangs = stage.packet({ from: observer, stage: 'received', type: PacketType.observerInfo });
      const leader = await stage.start();
      const master = stage.zk((await hangs).to);
      expect(master).not.toBe(leader);
      const { world } = stage;
      const others = stage.five.filter((server) => server !== leader && server !== master);
      const first = new WireClient(world, 'app', leader);
      await first.whenAnswered();
      await first.ask(1, create('/x'));
      await stage.whole();
      // The write is proposed, and too few acknowledge it. The observer does not receive proposals.
      for (const follower of others) world.network.block(follower.host, leader.host);
      const proposed = stage.packet({ from: leader, to: master, stage: 'received', type: PacketType.proposal });
      first.send(2, set('/x', 'old'));
      await proposed;
      const answered = stage.packet({ from: leader, to: master, stage: 'received', type: PacketType.revalidate });
      const second = new WireClient(world, 'app', observer, { session: first.session });
      await answered;
      await stage.sleep(50);
      expect(second.connected).toBeNull();
      for (const follower of others) world.network.unblock(follower.host, leader.host);
      await second.whenAnswered();
      expect(second.hasSession).toBe(true);
      const { body } = await second.ask(2, set('/x', 'new'));
      expect(getInt(body, STAT_VERSION_AT)).toBe(2);
    }));

  test('does not continue at an observer when it has ended before that has received what it asked for', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const { world } = stage;
      const [a, b] = stage.servers.filter((server) => server !== leader && server.serverId !== 4);
      const observer = stage.zk(4);
      const first = new WireClient(world, 'app', a!);
      await first.whenAnswered();
      await first.ask(1, create('/x'));
      await stage.whole();
      // The followers forward requests, but do not receive the resulting proposals.
      for (const follower of [a!, b!]) world.network.block(leader.host, follower.host);
      const forwarded = stage.packet({ from: a!, to: leader, stage: 'received', type: PacketType.request });
      first.send(2, set('/x', 'old'));
      await forwarded;
      const asked = stage.packet({ from: observer, to: leader, stage: 'received', type: PacketType.revalidate });
      const second = new WireClient(world, 'app', observer, { session: first.session });
      await asked;
      // Another client ends the session at B.
      const ended = stage.packet({ from: b!, to: leader, stage: 'received', type: PacketType.request });
      b!.expireSession(first.session.sessionId);
      await ended;
      expect(second.connected).toBeNull();
      for (const follower of [a!, b!]) world.network.unblock(leader.host, follower.host);
      await second.whenAnswered();
      expect(second.hasSession).toBe(false);
    }));
});

/** Behind czxid, mzxid, ctime and mtime. */
const STAT_VERSION_AT = 32;
