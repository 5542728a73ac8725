import type { Client, ReconfigOptions } from '@meerkat/client';
import { formatMember, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { makeMembership } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { play, type Stage } from './stage.ts';

const SHAPE = { servers: 3, spares: 2 };

/** Longer than a server takes to write its membership files. */
const FILES_MS = 50;

/** A client that may change the members. */
function operate(stage: Stage, server?: VirtualServer): Promise<Client> {
  const servers = server === undefined ? {} : { servers: `${server.host}:${server.port}` };
  return stage.connect('operator', { ...servers, auth: [{ scheme: 'digest', auth: 'super:super' }] });
}

function line(id: number): string {
  return formatMember(makeMembership(5).members[id - 1]!);
}

/** Sends the request, and does not wait for the reply. */
function ask(client: Client, change: ReconfigOptions): Promise<boolean> {
  return client.reconfig(change).then(
    () => true,
    () => false,
  );
}

function idsAt(server: VirtualServer): readonly number[] {
  return server.core?.view.ensemble?.membership.members.map(({ serverId }) => serverId) ?? [];
}

function hasLoggedChange(stage: Stage, server: VirtualServer): boolean {
  return stage.logOf(server).some(({ txn }) => txn.type === OpCode.reconfig);
}

describe('a change of the members', () => {
  test('1699: is not committed without the new majority, whose loss ends the leadership', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const [four, five] = [stage.zk(4), stage.zk(5)];
      void stage.cut(leader, four, { type: PacketType.proposal });
      void stage.cut(leader, five, { type: PacketType.proposal });
      const answer = ask(await operate(stage, leader), {
        joining: [line(4), line(5)],
        leaving: [leader.serverId === 1 ? 2 : 1],
      });
      await stage.until('the change is logged', () => hasLoggedChange(stage, leader));
      stage.kill(four, five);
      await stage.until('the leader steps down', () => leader.role !== 'leading', 5000);
      expect(await answer).toBe(false);
      expect(idsAt(leader)).toEqual([1, 2, 3]);
    }));

  test('96: of a leader that is gone is dropped when the next leader does not know it', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const others = stage.servers.filter((server) => server !== leader);
      const operator = await operate(stage, leader);
      for (const other of others) void stage.cut(leader, other, { type: PacketType.proposal });
      void ask(operator, { joining: [line(4)] });
      await stage.until('the change is logged', () => hasLoggedChange(stage, leader));
      stage.kill(leader);
      stage.heal();
      const next = await stage.leader(...others);
      const client = await stage.connect('second', { auth: [{ scheme: 'digest', auth: 'super:super' }] });
      await stage.until('the others follow', () => others.filter(({ isServing }) => isServing).length === 4);
      await client.reconfig({ joining: [line(5)] });
      await client.close();
      leader.start();
      await stage.whole();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3, 5]);
      expect(next.role).toBe('leading');
    }));

  test('89: may come while a new participant is still catching up', () =>
    play(SHAPE, async (stage) => {
      const four = stage.zk(4);
      const leader = await stage.start(stage.zk(1), stage.zk(2), stage.zk(3));
      await stage.write(leader, 5);
      const client = await operate(stage, leader);
      const isAnnounced = stage.packet({ type: PacketType.newLeader, to: four, stage: 'sent' });
      four.start();
      await isAnnounced;
      await client.reconfig({ joining: [line(4)] });
      await stage.whole(stage.zk(1), stage.zk(2), stage.zk(3), four);
      expect(idsAt(four)).toEqual([1, 2, 3, 4]);
      await client.close();
    }));

  test('98: holds although the leader that it removes dies while it announces it', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const isReceived = stage.packet({ type: PacketType.commitAndActivate, stage: 'received' });
      void ask(await operate(stage, leader), { joining: [line(4)], leaving: [leader.serverId] });
      await isReceived;
      stage.kill(leader);
      const next = await stage.leader(...stage.servers.filter((server) => server !== leader));
      await stage.until('it is in force', () => !idsAt(next).includes(leader.serverId));
      await stage.write(next);
    }));

  test('is in force nowhere before it is committed, not even at a learner that catches up meanwhile', () =>
    play(SHAPE, async (stage) => {
      const [four, five] = [stage.zk(4), stage.zk(5)];
      const leader = await stage.start(stage.zk(1), stage.zk(2), stage.zk(3), five);
      const voters = [stage.zk(1), stage.zk(2), stage.zk(3)].filter((server) => server !== leader);
      // The old majority does not get it, so it is not committed.
      const operator = await operate(stage, leader);
      for (const voter of voters) void stage.cut(leader, voter, { type: PacketType.proposal });
      void ask(operator, {
        joining: [line(4), line(5)],
        leaving: voters.map(({ serverId }) => serverId),
      });
      await stage.until('a newcomer has it', () => hasLoggedChange(stage, five));
      const isUpToDate = stage.packet({ type: PacketType.upToDate, to: four, stage: 'received' });
      four.start();
      await isUpToDate;
      expect(leader.role).toBe('leading');
      await stage.sleep(2);
      expect(idsAt(four)).not.toContain(4);
      expect(idsAt(five)).not.toContain(5);
    }));

  // The leader proposes to the newcomers and loses its power before its own log has the last txn.
  test.each([['one'], ['two']])(
    'is completed by the newcomers, %s of them, where they have more than all before',
    (how) =>
      play(SHAPE, async (stage) => {
        const leader = await stage.start();
        const operator = await operate(stage, leader);
        await stage.at(leader);
        const others = stage.servers.filter((server) => server !== leader);
        const newcomers = others.slice(0, how === 'one' ? 1 : 2);
        await operator.reconfig({ leaving: [1, 2, 3].filter((id) => id !== leader.serverId) });
        await stage.sleep(FILES_MS);
        stage.kill(...others.filter((server) => !newcomers.includes(server)));
        // So that it is not committed.
        for (const newcomer of newcomers) void stage.cut(newcomer, leader, { type: PacketType.ack });
        void ask(operator, { joining: newcomers.map(({ serverId }) => line(serverId)) });
        await stage.until('the change is logged', () =>
          [leader, ...newcomers].every((server) => hasLoggedChange(stage, server)),
        );
        // Synced, too.
        await stage.sleep(5);
        leader.stallDisk(1000);
        await stage.begin(leader, '/last');
        await stage.until('the newcomers have more', () =>
          newcomers.every((server) => stage.hasLogged(server, '/last')),
        );
        stage.cutPower(leader);
        stage.kill(...newcomers);
        expect(stage.hasLogged(leader, '/last')).toBe(false);
        stage.heal();
        for (const server of [leader, ...newcomers]) server.start();
        await stage.whole(leader, ...newcomers);
        expect(idsAt(leader).toSorted()).toEqual([leader, ...newcomers].map(({ serverId }) => serverId).toSorted());
        expect(stage.ensemble.leader).not.toBe(leader);
      }),
  );

  test('is dropped when the old majority does not know it, although a newcomer has the longest log', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const four = stage.zk(4);
      const voters = [stage.zk(1), stage.zk(2), stage.zk(3)].filter((server) => server !== leader);
      const operator = await operate(stage, leader);
      await stage.at(leader);
      for (const voter of voters) void stage.cut(leader, voter, { type: PacketType.proposal });
      void ask(operator, { joining: [line(4)], leaving: voters.map(({ serverId }) => serverId) });
      await stage.until('the change is logged', () => hasLoggedChange(stage, leader) && hasLoggedChange(stage, four));
      // Synced, too.
      await stage.sleep(5);
      leader.stallDisk(1000);
      await stage.begin(leader, '/last');
      await stage.until('the newcomer has more', () => stage.hasLogged(four, '/last'));
      stage.cutPower(leader);
      stage.kill(four, ...voters);
      expect(stage.hasLogged(leader, '/last')).toBe(false);
      stage.heal();
      for (const server of [leader, four, ...voters]) server.start();
      await stage.whole(leader, four, ...voters);
      for (const server of [leader, four]) expect(idsAt(server)).toEqual([1, 2, 3]);
    }));

  test('is dropped by those who know of it when the old majority has continued without it', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const [four, five] = [stage.zk(4), stage.zk(5)];
      const voters = [stage.zk(1), stage.zk(2), stage.zk(3)].filter((server) => server !== leader);
      const operator = await operate(stage, leader);
      for (const voter of voters) void stage.cut(leader, voter, { type: PacketType.proposal });
      void ask(operator, { joining: [line(4), line(5)], leaving: voters.map(({ serverId }) => serverId) });
      await stage.until('the spares have it', () => hasLoggedChange(stage, four) && hasLoggedChange(stage, five));
      stage.kill(leader, four, five);
      stage.heal();
      await stage.write(await stage.leader(...voters), 3);
      for (const server of [leader, four, five]) server.start();
      await stage.whole();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3]);
    }));

  test('is known again after a restart, by the log', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const followers = [stage.zk(1), stage.zk(2), stage.zk(3)].filter((server) => server !== leader);
      const [follower, other] = followers as [VirtualServer, VirtualServer];
      const operator = await operate(stage, leader);
      void stage.cut(leader, other, { type: PacketType.proposal });
      for (const spare of stage.ensemble.spares) void stage.cut(leader, spare, { type: PacketType.proposal });
      void ask(operator, { joining: [line(4), line(5)], leaving: [leader.serverId] });
      await stage.until('the follower has it', () => hasLoggedChange(stage, follower));
      stage.kill(leader, follower, ...stage.ensemble.spares);
      stage.heal();
      follower.start();
      // Two of the three from before, and one of the four from after.
      await stage.sleep(2000);
      expect([follower.role, follower.isServing, other.isServing]).toEqual(['looking', false, false]);
      for (const spare of stage.ensemble.spares) spare.start();
      await stage.whole(follower, other, ...stage.ensemble.spares);
      expect(idsAt(follower)).toEqual([1, 2, 3, 4, 5].filter((id) => id !== leader.serverId));
    }));

  test('is refused while another one is not committed', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const client = await operate(stage, leader);
      const [first, second] = await Promise.allSettled([
        client.reconfig({ joining: [line(4)] }),
        client.reconfig({ joining: [line(5)] }),
      ]);
      expect(first.status).toBe('fulfilled');
      expect(second).toMatchObject({ status: 'rejected', reason: { code: 'RECONFIGINPROGRESS' } });
      await client.reconfig({ joining: [line(5)] });
      await stage.whole();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3, 4, 5]);
      await client.close();
    }));

  test('fires a watch on /zookeeper/config at every remaining server', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const operator = await operate(stage, leader);
      const reports: string[] = [];
      for (const server of stage.servers) {
        const client = await stage.at(server);
        const events = client.watch('/zookeeper/config')[Symbol.asyncIterator]();
        void events.next().then(({ value }) => reports.push(`${server.host} ${value?.type}`));
      }
      await stage.sleep(10);
      await operator.reconfig({ joining: [line(4)] });
      await stage.until('all are told', () => reports.length === stage.servers.length, 1000);
      expect(reports.toSorted()).toEqual([1, 2, 3, 4, 5].map((id) => `zk${id} changed`));
      await operator.close();
    }));

  test('gives weights to servers that run', () =>
    play({ servers: 3, core: { reconfigEnabled: true } }, async (stage) => {
      const leader = await stage.start();
      const others = stage.servers.filter((server) => server !== leader);
      const operator = await operate(stage, leader);
      const weights = stage.servers.map((server) => `weight.${server.serverId}=${server === leader ? 3 : 1}`);
      await operator.reconfig({ members: [...[1, 2, 3].map(line), 'group.1=1:2:3', ...weights] });
      await stage.whole();
      stage.kill(...others);
      await stage.sleep(2000);
      await stage.write(leader, 3);
      expect(leader.role).toBe('leading');
      stage.kill(leader);
      for (const server of others) server.start();
      await stage.sleep(3000);
      expect(others.map(({ isServing }) => isServing)).toEqual([false, false]);
      leader.start();
      await stage.whole();
      await operator.close();
    }));

  test('to one participant lets it lead alone, and others may join again', () =>
    play(SHAPE, async (stage) => {
      const leader = await stage.start();
      const client = await operate(stage, leader);
      const others = [1, 2, 3].filter((id) => id !== leader.serverId);
      await client.reconfig({ leaving: others });
      stage.kill(...stage.servers.filter((server) => server !== leader));
      await stage.sleep(1500);
      await stage.write(leader, 3);
      for (const server of stage.servers) server.start();
      await stage.whole();
      await client.reconfig({ joining: others.map(line) });
      await stage.whole();
      await client.close();
      for (const server of stage.servers) expect(idsAt(server)).toEqual([1, 2, 3]);
    }));
});
