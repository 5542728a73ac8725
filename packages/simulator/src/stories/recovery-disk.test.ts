/** Rows of the catalogue in which a disk failed and the server continued. */
import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { play } from './stage.ts';

describe('a server whose disk fails', () => {
  test.each(['write', 'sync'] as const)(
    '4882: at a %s of its log applies nothing that the log lacks, ends, and comes back with the rest',
    (operation) =>
      play({ servers: 3, mayFail: [1] }, async (stage) => {
        const zk1 = stage.zk(1);
        const leader = await stage.start();
        await stage.write(leader, 3);
        await stage.whole();
        const before = stage.lastZxid(zk1);
        zk1.failDisk({ operation, code: 'EIO', path: 'log.' });
        const paths = await stage.write(leader, 5);
        await stage.until('server 1 ends', () => !zk1.isRunning);
        expect(zk1.failure).not.toBeNull();
        stage.cutPower(zk1);
        expect(stage.lastZxid(zk1)).toBe(before);
        zk1.healDisk();
        await stage.start(zk1);
        for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
      }),
  );

  test('2247: no longer leads, and the others have what it acknowledged', () =>
    play({ servers: 3, mayFail: [3] }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      const paths = await stage.write(zk3, 3);
      zk3.failDisk({ operation: 'sync', code: 'EIO', path: 'log.' });
      await stage.begin(zk3, '/doubtful');
      const next = await stage.leader(zk1, zk2);
      expect(zk3.isRunning).toBe(false);
      for (const path of paths) expect(await stage.has(next, path)).toBe(true);
      await stage.write(next, 2);
    }));

  test.each([
    { name: 'acceptedEpoch', operation: 'write' },
    { name: 'acceptedEpoch', operation: 'sync' },
    { name: 'acceptedEpoch', operation: 'rename' },
    { name: 'currentEpoch', operation: 'write' },
    { name: 'currentEpoch', operation: 'sync' },
    { name: 'currentEpoch', operation: 'rename' },
  ] as const)('2307, 2354, 4269: at the $operation of $name ends, and starts again in an epoch that it has', (fault) =>
    play({ servers: 3, seeds: [1, 2], mayFail: [1, 3] }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      // Once as a learner, once as the leader.
      for (const failing of [zk1, zk3]) {
        stage.kill(zk1, zk2, zk3);
        const { acceptedEpoch, currentEpoch } = stage.found(failing);
        for (const server of stage.servers) server.start();
        failing.failDisk({ operation: fault.operation, code: 'EIO', path: fault.name });
        await stage.until('it ends', () => !failing.isRunning);
        stage.cutPower(failing);
        const found = stage.found(failing);
        expect(found.acceptedEpoch).toBeGreaterThanOrEqual(acceptedEpoch);
        expect(found.currentEpoch).toBeGreaterThanOrEqual(currentEpoch);
        expect(found.currentEpoch).toBeLessThanOrEqual(found.acceptedEpoch);
        failing.healDisk();
        await stage.start(failing);
        await stage.whole();
      }
    }),
  );

  test.each(['truncation', 'snapshot'] as const)(
    '3701: in the middle of a %s has all of the old history, or all of the new one, when it starts again',
    (what) =>
      play(
        {
          servers: 3,
          mayFail: [3],
          ensemble: what === 'snapshot' ? { commitLogCount: 5, snapshotSizeFactor: -1 } : {},
        },
        async (stage) => {
          const [zk1, zk2, zk3] = stage.three;
          await stage.start();
          await stage.write(zk3, 3);
          await stage.logAlone(zk3, '/alone');
          stage.isolate(zk3);
          const next = await stage.leader(zk1, zk2);
          const paths = await stage.write(next, 20);
          stage.kill(zk3);
          stage.heal();
          const type = what === 'truncation' ? PacketType.trunc : PacketType.snap;
          const asked = stage.packet({ to: zk3, stage: 'received', type });
          zk3.start();
          await asked;
          if (what === 'truncation') zk3.failDisk({ operation: 'truncate', code: 'EIO' });
          else zk3.disk.fill();
          await stage.until('server 3 ends', () => !zk3.isRunning);
          zk3.healDisk();
          await stage.start(zk3);
          await stage.whole();
          expect(stage.hasLogged(zk3, '/alone')).toBe(false);
          for (const path of paths) expect(await stage.has(zk3, path)).toBe(true);
        },
      ),
  );
});

describe('a server that finds less on its disk than it had', () => {
  test('2325, 3056, 582: does not take logs without a snapshot for an empty service', () =>
    play({ servers: 3, mayFail: [1] }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      await stage.whole();
      stage.kill(zk1);
      const { logDirectory } = zk1.options;
      for (const name of zk1.disk.names(logDirectory)) {
        if (name.startsWith('snapshot.')) zk1.disk.poke(`${logDirectory}/${name}`, new Uint8Array(0));
      }
      zk1.start();
      await stage.until('server 1 refuses to start', () => !zk1.isRunning);
      expect(zk1.failure?.message).toMatch(/snapshot/);
      // Its operator decides that the others have everything.
      zk1.wipe();
      await stage.start(zk1);
      await stage.whole();
      expect(await stage.has(zk1, '/n3')).toBe(true);
    }));

  test.each([1, 2, 3, 5, 8, 12])(
    '13766 of etcd: has neither skipped nor doubled a txn when it ends at effect %i under load',
    (effect) =>
      play({ servers: 3, seeds: [1] }, async (stage) => {
        const zk1 = stage.zk(1);
        const leader = await stage.start();
        const client = await stage.at(leader);
        await client.create('/counter');
        let isOver = false;
        const writing = (async () => {
          while (!isOver) await Promise.all([client.set('/counter', 'x'), client.set('/counter', 'y')]);
        })();
        for (const end of [stage.kill, stage.cutPower]) {
          for (let i = 0; i < effect; i++) await stage.effect(zk1);
          end.call(stage, zk1);
          await stage.sleep(20);
          zk1.start();
          await stage.until('server 1 serves again', () => zk1.isServing);
        }
        isOver = true;
        await writing;
        const { stat } = await client.get('/counter');
        await stage.whole();
        expect((await (await stage.at(zk1)).get('/counter')).stat).toEqual(stat);
      }),
  );
});
