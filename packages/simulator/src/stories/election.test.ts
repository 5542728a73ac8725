/** Rows of the catalogue about elections and epochs. */
import { epochOf, PacketType, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ELECTION_PORT } from '../virtual-ensemble.ts';
import { isNewLeaderAck, play } from './stage.ts';

describe('an election', () => {
  test('1419: ends, although the servers with the lower ids have the later epochs', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      await stage.write(zk5, 3);
      // Epochs go by in which ever fewer take part: the lower the id, the later the epoch, all at the same zxid.
      stage.kill(zk4, zk5);
      await stage.leader(zk1, zk2, zk3);
      stage.kill(zk1, zk2, zk3);
      await stage.start(zk1, zk2, zk3);
      stage.kill(zk1, zk2, zk3);
      await stage.start();
    }));

  test('1514: is not decided by what others said in an older round', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      // Its election port stays open to nobody for some rounds; the others follow it, then another one.
      stage.world.network.blockPort('zk3', ELECTION_PORT);
      for (let round = 0; round < 3; round++) {
        stage.breakLinks(zk3);
        await stage.sleep(700);
      }
      stage.heal();
      await stage.whole();
      const leader = await stage.leader();
      expect([zk1, zk2, zk3].filter(({ role }) => role === 'leading')).toEqual([leader]);
    }));

  test('131, 569, 480: nobody goes on following a leader that is gone, and a newcomer never begins to', () =>
    play({ servers: 4 }, async (stage) => {
      const [zk1, zk2, zk3, zk4] = [stage.zk(1), stage.zk(2), stage.zk(3), stage.zk(4)];
      zk1.start();
      zk2.start();
      zk3.start();
      expect(await stage.leader()).toBe(zk3);
      // The others have not noticed yet when server 4 asks them.
      stage.cutPower(zk3);
      zk4.start();
      const next = await stage.leader(zk1, zk2, zk4);
      await stage.write(next, 2);
      expect([zk1, zk2, zk4]).toContain(next);
    }));

  test('1732, 1805, 1817, 1818: lets a newcomer join members that came together in different rounds and epochs', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk2);
      await stage.write(zk3, 1);
      await stage.start(zk2);
      stage.kill(zk3);
      await stage.leader(zk1, zk2);
      stage.isolate(zk3);
      zk3.start();
      await stage.sleep(1500);
      stage.heal();
      await stage.whole();
      stage.kill(zk1);
      await stage.start(zk1);
    }));

  test('3109: is not held up by a voter that changes its mind when a better one is heard late', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      // Server 1 hears of server 3 only after it has settled on server 2; server 2 does not hear of it at all.
      stage.world.network.partition(['zk2'], ['zk3']);
      zk1.start();
      zk2.start();
      await stage.until('server 2 leads', () => zk2.role === 'leading');
      zk3.start();
      const startedMs = stage.world.nowMs;
      await stage.leader();
      // Apache's leader would wait for a voter that has gone for all of initLimit.
      expect(stage.world.nowMs - startedMs).toBeLessThan(2000);
    }));

  test('261, openraft: a server whose disk was emptied does not make a quorum with one that is behind', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      stage.kill(zk1);
      const paths = await stage.write(zk5, 5);
      await stage.whole(zk2, zk3, zk4, zk5);
      // One copy of four is lost: the three that are left are one in any quorum of the others.
      stage.kill(zk2, zk3, zk4, zk5);
      zk3.wipe();
      zk1.start();
      zk3.start();
      await stage.sleep(3000);
      expect(stage.servers.some(({ isServing }) => isServing)).toBe(false);
      zk2.start();
      expect(await stage.leader(zk1, zk2, zk3)).toBe(zk2);
      await stage.whole(zk1, zk2, zk3);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
    }));

  test('2930, 3756: goes on at once when requests to one server vanish in the network', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.world.network.dropConnects('zk3');
      stage.cutPower(zk3);
      const lostMs = stage.world.nowMs;
      await stage.leader(zk1, zk2);
      expect(stage.world.nowMs - lostMs).toBeLessThan(3000);
    }));
});

describe('an epoch', () => {
  test.each(['leaderInfo', 'ackEpoch', 'newLeader'] as const)(
    '335, 1081, 1082: is never led twice, although all servers die when %s is sent and nothing was broadcast',
    (type) =>
      play({ servers: 3 }, async (stage) => {
        const [zk1, zk2, zk3] = stage.three;
        await stage.start();
        await stage.write(zk3, 3);
        stage.kill(zk1, zk2, zk3);
        const sent = stage.packet({ type: PacketType[type] });
        zk2.start();
        zk3.start();
        await sent;
        stage.cutPower(zk2, zk3);
        const used = stage.found(zk3).acceptedEpoch;
        // Others lead meanwhile, and server 3 comes back with its epoch.
        await stage.start(zk1, zk2);
        await stage.write(zk2, 2);
        stage.kill(zk1, zk2);
        const leader = await stage.start(zk3, zk1);
        expect(leader.epoch).toBeGreaterThan(used);
        expect(leader.epoch).toBeGreaterThan(stage.found(zk2).acceptedEpoch);
      }),
  );

  test('335, 1081, 1082: is never led twice, although its first leader has logged a txn that nobody else has', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      await stage.start();
      const epoch = zk3.epoch;
      await stage.logAlone(zk3, '/alone');
      stage.isolate(zk3);
      const next = await stage.leader(zk1, zk2);
      expect(next.epoch).toBeGreaterThan(epoch);
      await stage.write(next, 1);
      stage.heal();
      await stage.whole();
      expect(stage.hasLogged(zk3, '/alone')).toBe(false);
    }));

  test('1343: is later than the one that the last server to join had accepted, which was just the next one', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      stage.kill(zk1, zk2, zk3, zk4, zk5);
      // Server 1 accepts epoch 2, of a leader that comes no further.
      for (const server of [zk1, zk4, zk5]) server.start();
      await stage.packet({ from: zk1, to: zk5, type: PacketType.ackEpoch });
      stage.cutPower(zk1, zk4, zk5);
      const accepted = stage.found(zk1).acceptedEpoch;
      for (const server of [zk2, zk3]) expect(stage.found(server).acceptedEpoch).toBe(accepted - 1);
      const leader = await stage.start(zk1, zk2, zk3);
      expect(leader.epoch).toBeGreaterThan(accepted);
    }));

  test('1291: is on the disk of its leader when LEADERINFO leaves', () =>
    play({ servers: 3 }, async (stage) => {
      const sent = stage.packet({ type: PacketType.leaderInfo });
      for (const server of stage.servers) server.start();
      const event = await sent;
      const leader = stage.zk(event.from);
      stage.cutPower(leader);
      expect(event).toMatchObject({ packet: { zxid: stage.found(leader).acceptedEpoch * 2 ** 32 } });
    }));

  test('1282: is on the disk of a learner when its ACK of NEWLEADER leaves, long before UPTODATE', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      await stage.write(leader, 3);
      stage.kill(...stage.servers);
      const sent = stage.packet({ is: isNewLeaderAck });
      for (const server of stage.servers) server.start();
      const event = await sent;
      const learner = stage.zk(event.from);
      stage.cutPower(learner);
      expect(event).toMatchObject({ packet: { zxid: stage.found(learner).currentEpoch * 2 ** 32 } });
    }));

  test('1277: ends before its counter would wrap, and the next one goes on', () =>
    play({ servers: 3, ensemble: { epochTxnsMax: 16 } }, async (stage) => {
      const first = await stage.start();
      const client = await stage.connect('writer');
      const zxids: bigint[] = [];
      for (let i = 0; i < 60; i++) {
        try {
          zxids.push((await client.create(`/w${i}`)).stat.czxid);
        } catch {
          await stage.sleep(10);
        }
      }
      expect(zxids.length).toBeGreaterThan(50);
      for (const [i, zxid] of zxids.entries()) {
        expect(i === 0 || zxid > zxids[i - 1]!).toBe(true);
        expect(Number(zxid % 2n ** 32n)).toBeLessThan(100);
      }
      const last = await stage.leader();
      expect(last.epoch).toBeGreaterThan(epochOf(Number(zxids[0]) as Zxid));
      expect(first.failure).toBeNull();
      await client.close();
    }));
});
