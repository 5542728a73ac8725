/** Rows of the catalogue in which a server acknowledged something before its disk had it. */
import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { isNewLeaderAck, play } from './stage.ts';

describe('a server that acknowledges', () => {
  test("3911: has the leader's history on its disk although UPTODATE never comes, and the old leader does not return", () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      await stage.logAlone(zk3, '/alone');
      stage.kill(zk1, zk2, zk3);
      stage.heal();
      // Server 3 brings its history to server 1, whose acknowledgement makes it the committed one.
      const acknowledged = stage.packet({ from: zk1, to: zk3, stage: 'received', is: isNewLeaderAck });
      zk1.start();
      zk3.start();
      await acknowledged;
      stage.cutPower(zk1);
      await stage.leader(zk3);
      expect(await stage.has(zk3, '/alone')).toBe(true);
      stage.cutPower(zk3);
      await stage.start(zk1, zk2);
      expect(await stage.has(zk1, '/alone')).toBe(true);
    }));

  test('4646, 4785: has synced its log and written currentEpoch at the moment at which ACK of NEWLEADER leaves', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk1);
      await stage.write(zk3, 20);
      const end = stage.lastZxid(zk3);
      stage.kill(zk2);
      // Writes take long to become durable.
      zk1.setDiskQuality({ effectMinMs: 0.05, effectMaxMs: 0.5, syncMinMs: 30, syncMaxMs: 60 });
      const sent = stage.packet({ from: zk1, is: isNewLeaderAck });
      zk1.start();
      await sent;
      stage.cutPower(zk1);
      expect(stage.lastZxid(zk1)).toBe(end);
      expect(stage.found(zk1).currentEpoch).toBeGreaterThan(1);
    }));

  test('4643: adopts an epoch after its history, so that it never outranks a server that has more', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1);
      const paths = await stage.write(zk3, 8);
      stage.kill(zk2, zk3);
      zk1.setDiskQuality({ effectMinMs: 0.05, effectMaxMs: 0.5, syncMinMs: 30, syncMaxMs: 60 });
      zk1.start();
      zk3.start();
      // The directory is synced after the rename: currentEpoch is durable, and the power goes before anything else.
      await stage.disk(zk1, 'rename', 'currentEpoch');
      await stage.disk(zk1, 'syncDirectory');
      stage.cutPower(zk1, zk3);
      expect(stage.found(zk1).currentEpoch).toBeGreaterThan(1);
      // Server 2 has everything, of an older epoch. If server 1 did not, it would win, and truncate server 2's log.
      await stage.start(zk1, zk2);
      for (const path of paths) expect(await stage.has(zk2, path)).toBe(true);
    }));

  test('3104, 1136: has the snapshot, and what was proposed before NEWLEADER, when it acknowledges NEWLEADER', () =>
    play({ servers: 3, ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, zk3] = [stage.zk(1), stage.zk(3)];
      await stage.start();
      stage.kill(zk1);
      await stage.write(zk3, 40);
      const client = await stage.at(zk3);
      const announced = stage.packet({ from: zk3, to: zk1, type: PacketType.newLeader });
      const acknowledged = stage.packet({ from: zk1, is: isNewLeaderAck });
      zk1.start();
      await stage.packet({ from: zk1, to: zk3, type: PacketType.ackEpoch });
      const behind = Array.from({ length: 50 }, (_, i) => client.create(`/behind${i}`));
      const history = stage.sentBefore(await announced);
      await acknowledged;
      stage.cutPower(zk1);
      expect(stage.lastZxid(zk1)).toBeGreaterThanOrEqual(history);
      await Promise.all(behind);
    }));
});
