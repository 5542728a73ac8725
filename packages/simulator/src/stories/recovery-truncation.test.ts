/** Rows of the catalogue in which something that was never committed came back, or something committed was cut away. */
import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { play, type Stage } from './stage.ts';

/** Server 3 leads, logs `/alone` by itself and is cut off; the others continue. @returns their leader */
async function loseLeader(stage: Stage, writesMeanwhile: number): Promise<VirtualServer> {
  const zk3 = stage.zk(3);
  await stage.logAlone(zk3, '/alone');
  stage.isolate(zk3);
  const next = await stage.leader(stage.zk(1), stage.zk(2));
  if (writesMeanwhile > 0) await stage.write(next, writesMeanwhile);
  return next;
}

async function expectForgotten(stage: Stage, server: VirtualServer, path: string): Promise<void> {
  expect(stage.hasLogged(server, path)).toBe(false);
  expect(await stage.has(server, path)).toBe(false);
}

describe('a txn that only an old leader has logged', () => {
  test.each([0, 3])(
    '2845: does not come back, in the living process or in the next one, behind %i other txns',
    (count) =>
      play({ servers: 3 }, async (stage) => {
        const zk3 = await stage.start();
        await stage.write(zk3, 3);
        await loseLeader(stage, count);
        stage.heal();
        await stage.whole();
        await expectForgotten(stage, zk3, '/alone');
        stage.kill(zk3);
        await stage.start(zk3);
        await expectForgotten(stage, zk3, '/alone');
        stage.kill(...stage.servers);
        await stage.start();
        await expectForgotten(stage, zk3, '/alone');
      }),
  );

  test('1549: is in no snapshot that outlives its truncation', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      const committed = stage.lastZxid(zk3);
      await loseLeader(stage, 3);
      // It starts again, reads its log, and waits for a follower, long enough to take a snapshot.
      stage.kill(zk3);
      zk3.start();
      await stage.sleep(4000);
      expect(stage.lastZxid(zk3)).toBe(committed + 1);
      expect(stage.found(zk3).base).toBeLessThanOrEqual(committed);
      stage.heal();
      await stage.whole();
      stage.kill(zk3);
      await stage.start(zk3);
      await expectForgotten(stage, zk3, '/alone');
    }));

  test('by reading (41a): does not survive when it begins its own log file behind a snapshot', () =>
    play({ servers: 3, ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      zk2.start();
      zk1.start();
      await stage.leader(zk2);
      await stage.write(zk2, 20);
      // Server 3 is sent a snapshot: its log is empty up to here.
      const snap = stage.packet({ from: zk2, to: zk3, type: PacketType.snap });
      zk3.start();
      await snap;
      await stage.whole();
      const snapped = stage.lastZxid(zk3);
      expect(stage.found(zk3)).toMatchObject({ base: snapped, txns: [] });
      // Only server 3 receives the next txn: the leader loses it with its power.
      zk2.setDiskQuality({ effectMinMs: 0.05, effectMaxMs: 0.5, syncMinMs: 1000, syncMaxMs: 1000 });
      void stage.cut(zk2, zk1, { type: PacketType.proposal });
      void stage.cut(zk3, zk2, { type: PacketType.ack });
      await stage.begin(zk2, '/alone');
      do await stage.disk(zk3, 'sync', 'log.');
      while (!stage.hasLogged(zk3, '/alone'));
      expect(stage.lastZxid(zk3)).toBe(snapped + 1);
      stage.cutPower(zk2);
      stage.heal();
      stage.isolate(zk3);
      zk2.setDiskQuality(null);
      zk2.start();
      const next = await stage.leader(zk1, zk2);
      await stage.write(next, 3);
      const truncated = stage.packet({ to: zk3, type: PacketType.trunc });
      stage.heal();
      expect((await truncated).kind).toBe('leader-packet');
      await stage.whole();
      await expectForgotten(stage, zk3, '/alone');
      stage.kill(zk3);
      await stage.start(zk3);
      await expectForgotten(stage, zk3, '/alone');
    }));
});

describe('a truncation', () => {
  test('1489: is followed by the next txns in the same file, all of which are there after a power cut', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      const next = await loseLeader(stage, 3);
      const truncated = stage.packet({ to: zk3, type: PacketType.trunc });
      stage.heal();
      await truncated;
      await stage.whole();
      const paths = await stage.write(next, 10);
      await stage.whole();
      stage.cutPower(zk3);
      for (const path of paths) expect(stage.hasLogged(zk3, path)).toBe(true);
      await stage.start(zk3);
      for (const path of paths) expect(await stage.has(zk3, path)).toBe(true);
    }));

  test('is finished before its role ends, when the leader has gone or is silent', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      await loseLeader(stage, 3);
      const truncated = stage.packet({ to: zk3, type: PacketType.trunc, stage: 'received' });
      stage.heal();
      await truncated;
      // Longer than a leader may be silent.
      zk3.setDiskQuality({ effectMinMs: 500, effectMaxMs: 1000 });
      stage.breakLinks(zk3);
      stage.isolate(zk3);
      const order: string[] = [];
      stage.world.watch({
        onTrace: (server, { kind }) => {
          if (server === zk3 && (kind === 'recovered' || kind === 'role-changed')) order.push(kind);
        },
      });
      await stage.until('the role has ended', () => order.includes('role-changed'), 60_000);
      // The rest of the log is read now, and once more by the next role.
      expect(order).toEqual(['recovered', 'recovered', 'role-changed']);
      zk3.setDiskQuality(null);
      stage.heal();
      await stage.whole();
      await expectForgotten(stage, zk3, '/alone');
    }));

  test('1154, 1156: cuts behind the last txn that the two have in common, wherever in the file that is', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 40);
      const committed = stage.lastZxid(zk3);
      const client = await stage.at(zk3);
      for (const server of [stage.zk(1), stage.zk(2)]) void stage.cut(zk3, server, { type: PacketType.proposal });
      // More than a reader takes at once, in txns of very different sizes.
      for (let i = 0; i < 60; i++) client.create(`/alone${i}`, 'x'.repeat((i * 997) % 9000)).catch(() => {});
      do await stage.disk(zk3, 'sync', 'log.');
      while (!stage.hasLogged(zk3, '/alone59'));
      stage.isolate(zk3);
      const next = await stage.leader(stage.zk(1), stage.zk(2));
      await stage.write(next, 3);
      const truncated = stage.packet({ to: zk3, type: PacketType.trunc });
      stage.heal();
      expect(await truncated).toMatchObject({ packet: { zxid: committed } });
      await stage.whole();
      for (let i = 0; i < 60; i++) expect(stage.hasLogged(zk3, `/alone${i}`)).toBe(false);
      for (let i = 1; i <= 43; i++) expect(stage.hasLogged(zk3, `/n${i}`)).toBe(true);
      stage.cutPower(zk3);
      await stage.start(zk3);
      expect(await stage.has(zk3, '/n40')).toBe(true);
      expect(await stage.has(zk3, '/alone0')).toBe(false);
    }));

  test('5094: that is cut off before NEWLEADER leaves nothing in memory that the disk lacks', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      const next = await loseLeader(stage, 8);
      stage.heal();
      const cut = stage.cut(next, zk3, { type: PacketType.newLeader });
      await cut;
      await stage.until('server 3 stops following', () => zk3.role === 'looking');
      stage.heal();
      await stage.whole();
      const paths = await stage.write(next, 3);
      await stage.whole();
      stage.cutPower(zk3);
      for (const path of paths) expect(stage.hasLogged(zk3, path)).toBe(true);
      await stage.start(zk3);
      await expectForgotten(stage, zk3, '/alone');
    }));

  test.each([0, 1, 2, 3, 4, 5, 6, 8, 10, 12])(
    'is finished, or not begun, when the power goes at effect %i of it on the disk',
    (effect) =>
      play({ servers: 3, seeds: [1, 2] }, async (stage) => {
        const zk3 = await stage.start();
        await stage.write(zk3, 3);
        await loseLeader(stage, 3);
        const truncated = stage.packet({ to: zk3, stage: 'received', type: PacketType.trunc });
        stage.heal();
        await truncated;
        for (let i = 0; i < effect; i++) await stage.effect(zk3);
        stage.cutPower(zk3);
        await stage.start(zk3);
        await expectForgotten(stage, zk3, '/alone');
      }),
  );

  test.each([1, 2])('of several log files leaves no hole when the server dies once %i of them are gone', (gone) =>
    play({ servers: 3, seeds: [1, 2], core: { logBytesMax: 1000, preallocateBytes: 4096 } }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      const client = await stage.at(zk3);
      for (const server of [stage.zk(1), stage.zk(2)]) void stage.cut(zk3, server, { type: PacketType.proposal });
      // One after the other, as what is synced together is in one file.
      for (let i = 0; i < 4; i++) {
        client.create(`/alone${i}`, 'x'.repeat(3000)).catch(() => {});
        do await stage.disk(zk3, 'sync', 'log.');
        while (!stage.hasLogged(zk3, `/alone${i}`));
      }
      stage.isolate(zk3);
      const next = await stage.leader(stage.zk(1), stage.zk(2));
      await stage.write(next, 3);
      const isMoved = stage.disk(zk3, 'rename', 'replaced-');
      stage.heal();
      await isMoved;
      for (let i = 1; i < gone; i++) await stage.disk(zk3, 'rename', 'replaced-');
      stage.kill(zk3);
      await stage.start(zk3);
      for (let i = 0; i < 4; i++) await expectForgotten(stage, zk3, `/alone${i}`);
    }),
  );
});
