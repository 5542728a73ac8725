/** Rows of the catalogue about epochs. */
import { epochOf, PacketType, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { isNewLeaderAck, play } from './stage.ts';

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

  test('335, 1081, 1082: is never led twice, although its first leader has logged a txn that no other server has', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      const leader = await stage.start();
      const { epoch } = leader;
      await stage.logAlone(leader, '/alone');
      stage.isolate(leader);
      const next = await stage.leader(...stage.servers.filter((server) => server !== leader));
      expect(next.epoch).toBeGreaterThan(epoch);
      await stage.write(next, 1);
      stage.heal();
      await stage.whole();
      expect(stage.hasLogged(leader, '/alone')).toBe(false);
    }));

  test('1343: is later than the one that the last server to join had accepted, which was just the next one', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      stage.kill(zk1, zk2, zk3, zk4, zk5);
      // Server 1 accepts epoch 2, of a leader that gets no further.
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

  test('1277: ends before its counter would wrap, and the next one continues', () =>
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
