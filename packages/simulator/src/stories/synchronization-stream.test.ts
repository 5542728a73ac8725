/** Rows of the catalogue in which the stream from leader to learner ended in the middle, or had a hole. */
import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { isNewLeaderAck, play, type Stage } from './stage.ts';

/** Its memory has what its disk has, without a gap in an epoch. */
function expectMemoryAsDisk(stage: Stage, server: VirtualServer): void {
  expect(stage.lastZxid(server)).toBe(server.core?.view.lastZxid);
  const zxids = stage.found(server).txns.map(({ zxid }) => zxid);
  for (let i = 1; i < zxids.length; i++) {
    const isNext = zxids[i] === zxids[i - 1]! + 1 || zxids[i]! % 2 ** 32 === 1;
    expect(isNext, `0x${zxids[i]!.toString(16)} is the next one`).toBe(true);
  }
}

describe('a learner whose link breaks', () => {
  test('2355: behind DIFF and before its txns counts only what it has, and the ephemeral znode of a dead session goes', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk3] = [stage.zk(1), stage.zk(3)];
      await stage.start();
      const owner = await stage.connect('owner', { servers: 'zk3:2181' });
      await owner.create('/alive', '', { mode: 'ephemeral' });
      await stage.whole();
      stage.kill(zk1);
      const before = stage.lastZxid(zk1);
      await owner.close();
      await stage.write(zk3, 3);
      const cut = stage.cut(zk3, zk1, { type: PacketType.diff }, 'after');
      zk1.start();
      await cut;
      await stage.until('server 1 follows', () => zk1.role === 'following');
      await stage.until('server 1 stops following', () => zk1.role === 'looking');
      expect(stage.lastZxid(zk1)).toBe(before);
      stage.heal();
      await stage.whole();
      expect(await stage.has(zk1, '/alive')).toBe(false);
    }));

  test("3642: in a snapshot's stream, or behind it, keeps nothing of it, whatever the next leader sends", () =>
    play({ servers: 3, ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1);
      const before = stage.lastZxid(zk1);
      const paths = await stage.write(zk3, 30);
      for (const bytes of [0, 1, 100, 1000]) {
        const cut = stage.cut(zk3, zk1, { type: PacketType.snap }, bytes);
        zk1.start();
        await cut;
        await stage.sleep(50);
        expect(stage.lastZxid(zk1)).toBe(before);
        stage.kill(zk1);
        stage.heal();
      }
      // The snapshot is complete; the leader dies before NEWLEADER, and the next one continues from server 1's last zxid.
      const cut = stage.cut(zk3, zk1, { type: PacketType.newLeader });
      zk1.start();
      await cut;
      stage.cutPower(zk3);
      stage.heal();
      const next = await stage.leader(zk1, zk2);
      await stage.write(next, 3);
      await stage.whole(zk1, zk2);
      stage.cutPower(zk1);
      zk1.start();
      await stage.whole(zk1, zk2);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
    }));

  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14])(
    '2872: when its power goes at effect %i of the installation, has the snapshot as a whole or its old history',
    (effect) =>
      play({ servers: 3, seeds: [1, 2], ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
        const [zk1, zk3] = [stage.zk(1), stage.zk(3)];
        await stage.start();
        await stage.write(zk3, 3);
        stage.kill(zk1);
        const before = stage.lastZxid(zk1);
        await stage.write(zk3, 30);
        const after = stage.lastZxid(zk3);
        const received = stage.packet({ to: zk1, stage: 'received', type: PacketType.snap });
        zk1.start();
        await received;
        for (let i = 0; i < effect; i++) await stage.effect(zk1);
        stage.cutPower(zk1);
        // Its state without any leader.
        stage.isolate(zk1);
        zk1.start();
        await stage.until('server 1 looks for a leader', () => zk1.role === 'looking');
        await stage.sleep(100);
        expect([before, after]).toContain(stage.lastZxid(zk1));
        stage.heal();
        await stage.whole();
        expect(await stage.has(zk1, '/n33')).toBe(true);
      }),
  );

  test('4712: and that finds a leader at once has the same in memory as on its slow disk', () =>
    play({ servers: 3 }, async (stage) => {
      const zk1 = stage.zk(1);
      const zk3 = await stage.start();
      const client = await stage.at(zk3);
      zk1.stallDisk(300);
      const writes = Array.from({ length: 1000 }, (_, i) => client.create(`/queued${i}`));
      await stage.until('the proposals are at server 1', () => zk3.committedZxid % 2 ** 32 > 900);
      expect(stage.lastZxid(zk1)).toBeLessThan(zk3.committedZxid - 500);
      stage.breakLinks(zk1, zk3);
      await Promise.all(writes);
      await stage.whole();
      expectMemoryAsDisk(stage, zk1);
      stage.cutPower(zk1);
      await stage.start(zk1);
      expectMemoryAsDisk(stage, zk1);
    }));
});

describe('a history that goes from server to server', () => {
  test('4925: has no hole where its leader was synchronized itself while txns were applied', () =>
    play({ servers: 5, ensemble: { commitLogCount: 50 } }, async (stage) => {
      const [zk1, zk5] = [stage.zk(1), stage.zk(5)];
      await stage.start();
      await stage.write(zk5, 3);
      stage.kill(zk1, zk5);
      const leader = await stage.leader(stage.zk(2), stage.zk(3), stage.zk(4));
      const client = await stage.at(leader);
      await stage.write(leader, 10);
      // Server 5 comes back by DIFF in the middle of writes.
      zk5.start();
      await stage.packet({ from: zk5, to: leader, type: PacketType.ackEpoch });
      await Promise.all(Array.from({ length: 60 }, (_, i) => client.create(`/during${i}`)));
      await stage.whole(stage.zk(2), stage.zk(3), stage.zk(4), zk5);
      stage.kill(leader);
      expect(await stage.leader(stage.zk(2), stage.zk(3), zk5)).toBe(zk5);
      // Server 1 lags behind, and gets all of it from server 5.
      zk1.start();
      await stage.whole();
      expectMemoryAsDisk(stage, zk1);
      for (let i = 0; i < 60; i++) expect(await stage.has(zk1, `/during${i}`)).toBe(true);
    }));

  test("2846, 2418: is complete despite the hole that a snapshot has left in its leader's log", () =>
    play({ servers: 5, ensemble: { commitLogCount: 5, snapshotSizeFactor: 1000 } }, async (stage) => {
      const [zk1, zk5] = [stage.zk(1), stage.zk(5)];
      const others = [stage.zk(2), stage.zk(3), stage.zk(4)];
      await stage.start();
      await stage.write(zk5, 3);
      stage.kill(...stage.servers);
      await stage.start(...others, zk5);
      // Alone in epoch 2: no server knows which of its txns server 5 has, so server 5 will be sent a snapshot.
      await stage.logAlone(zk5, '/alone');
      stage.isolate(zk5);
      const leader = await stage.leader(...others);
      const paths = await stage.write(leader, 20);
      const snap = stage.packet({ to: zk5, type: PacketType.snap });
      stage.heal();
      await snap;
      await stage.whole(...others, zk5);
      await stage.write(leader, 10);
      stage.kill(leader);
      expect(await stage.leader(...others, zk5)).toBe(zk5);
      // Server 1 lacks the txns that the snapshot covers.
      zk1.start();
      await stage.whole(zk1, zk5);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
      expect(await stage.has(zk1, '/alone')).toBe(false);
    }));

  test('1319: reaches a server that was never there, when all restart and no client writes', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start(zk2, zk3);
      const paths = await stage.write(zk3, 5);
      stage.kill(zk2, zk3);
      await stage.start();
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
      expectMemoryAsDisk(stage, zk1);
    }));

  test('4352: reaches servers that join one after the other, over a change of leaders', () =>
    play({ servers: 3, ensemble: { commitLogCount: 5 } }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start(zk1, zk2);
      const paths = await stage.write(zk2, 30);
      stage.kill(zk2);
      const again = await stage.start(zk1, zk2);
      await stage.write(again, 2);
      stage.kill(zk1);
      await stage.start(zk3, zk2);
      for (const path of paths) expect(await stage.has(zk3, path)).toBe(true);
    }));

  test('962: has no hole when learners reconnect repeatedly while clients write', () =>
    play({ servers: 5, seeds: [1, 2], ensemble: { commitLogCount: 20 } }, async (stage) => {
      const leader = await stage.start();
      const client = await stage.at(leader);
      let isOver = false;
      let count = 0;
      const writing = (async () => {
        while (!isOver) await Promise.all([0, 1, 2].map(() => client.create(`/w${count++}`)));
      })();
      for (let round = 0; round < 6; round++) {
        const learner = stage.zk(1 + (round % 2));
        stage.kill(learner);
        await stage.sleep(30);
        learner.start();
        await stage.packet({ from: learner, is: isNewLeaderAck });
      }
      isOver = true;
      await writing;
      await stage.whole();
      for (const server of stage.servers) expectMemoryAsDisk(stage, server);
    }));

  test('790: is not longer because a leader was elected that no server could follow', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      const before = stage.lastZxid(zk3);
      // Server 3 wins, but no quorum can connect to its port.
      stage.world.network.blockPort('zk3', 2888);
      await stage.launch();
      await stage.until('server 3 leads without followers', () => zk3.role === 'leading');
      await stage.until('server 3 looks again', () => zk3.role === 'looking');
      expect(stage.lastZxid(zk3)).toBe(before);
      stage.isolate(zk3);
      const next = await stage.leader(zk1, zk2);
      const paths = await stage.write(next, 3);
      stage.kill(zk1, zk2, zk3);
      stage.heal();
      await stage.start();
      for (const path of paths) expect(await stage.has(zk3, path)).toBe(true);
    }));

  test('790: does not win elections by promising an epoch whose history never came', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1);
      const paths = await stage.write(zk3, 5);
      stage.kill(zk2, zk3);
      // Server 1 promises the next epoch to server 3, and is sent none of the txns that it lacks.
      zk1.start();
      zk3.start();
      await stage.packet({ from: zk1, to: zk3, type: PacketType.ackEpoch });
      stage.cutPower(zk1, zk3);
      expect(stage.found(zk1).acceptedEpoch).toBeGreaterThan(stage.found(zk2).acceptedEpoch);
      let hasLed = false;
      stage.world.watch({
        onTrace: (server, event) => {
          if (server === zk1 && event.kind === 'role-changed') hasLed ||= event.role === 'leading';
        },
      });
      await stage.start(zk1, zk2);
      expect(hasLed).toBe(false);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
    }));
});
