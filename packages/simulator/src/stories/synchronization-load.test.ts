/** Rows of the catalogue about learners that join, leave or are slow while clients work. */
import { PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { OBSERVER_MASTER_PORT } from '../virtual-ensemble.ts';
import { isNewLeaderAck, play } from './stage.ts';

describe('a learner that joins', () => {
  test('4394, 3023: between a proposal and its commit is sent the commit behind UPTODATE, and applies it', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      await stage.whole();
      stage.kill(zk1);
      const client = await stage.at(zk3);
      // Everything that server 1 sends is slow.
      const slow = { delayMinMs: 20, delayMaxMs: 20, splitChance: 0, mergeChance: 0 };
      stage.world.network.slowDown('zk1', 'zk3', slow);
      const order: string[] = [];
      for (const name of ['newLeader', 'upToDate', 'commit'] as const) {
        void stage.packet({ from: zk3, to: zk1, type: PacketType[name] }).then(() => order.push(name));
      }
      zk1.start();
      await stage.packet({ from: zk1, to: zk3, type: PacketType.ackEpoch });
      // What server 3 proposes is outstanding until server 2 resumes, which acknowledges it before server 1 does.
      zk2.pause();
      const writes = [0, 1, 2].map((i) => client.create(`/open${i}`));
      await stage.packet({ from: zk3, to: zk1, type: PacketType.newLeader });
      zk2.resume();
      await Promise.all(writes);
      expect(order).toEqual(['newLeader']);
      await stage.whole();
      expect(order).toEqual(['newLeader', 'upToDate', 'commit']);
      for (let i = 0; i < 3; i++) expect(await stage.has(zk1, `/open${i}`)).toBe(true);
    }));

  test.each([
    { what: 'a snapshot', ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } },
    { what: 'a thousand txns from the log', ensemble: { commitLogCount: 5 } },
    { what: 'a thousand txns from memory', ensemble: { commitLogCount: 5000 } },
  ])('is sent $what, NEWLEADER and UPTODATE over one and the same connection', ({ ensemble }) =>
    play({ servers: 3, seeds: [1], ensemble }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      await stage.whole();
      stage.kill(zk1);
      const client = await stage.at(zk3);
      await Promise.all(Array.from({ length: 1000 }, (_, i) => client.create(`/behind${i}`)));
      const asked = stage.packet({ from: zk1, to: zk3, type: PacketType.followerInfo });
      const upToDate = stage.packet({ from: zk3, to: zk1, type: PacketType.upToDate });
      zk1.start();
      expect((await upToDate).connection).toBe((await asked).connection);
      await stage.whole();
    }),
  );

  test('1551, 1784: as an observer, while clients write, misses nothing between its snapshot and UPTODATE', () =>
    play({ servers: 3, observers: 1, ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const observer = stage.zk(4);
      await stage.start(zk1, zk2, zk3);
      await stage.write(zk3, 20);
      const client = await stage.at(zk3);
      observer.start();
      const asked = await stage.packet({ from: observer, to: zk3, type: PacketType.ackEpoch });
      expect(asked.from).toBe(4);
      await Promise.all(Array.from({ length: 100 }, (_, i) => client.create(`/during${i}`)));
      await stage.whole();
      for (let i = 0; i < 100; i++) expect(await stage.has(observer, `/during${i}`)).toBe(true);
    }));

  test.each([
    { what: 'its leader', observers: 0, ensemble: {} },
    { what: 'the follower of an observer', observers: 1, ensemble: { observerMasterPort: OBSERVER_MASTER_PORT } },
  ])('is sent a snapshot of all that is committed, also what $what has not applied yet', ({ observers, ensemble }) =>
    play(
      {
        servers: 3,
        seeds: [1],
        observers,
        isSlow: true,
        ensemble: { ...ensemble, commitLogCount: 5, snapshotSizeFactor: -1 },
      },
      async (stage) => {
        const [zk1, , zk3] = stage.three;
        const learner = observers > 0 ? stage.zk(4) : zk1;
        await stage.start();
        // Each write is notified to all of them, which takes a server several turns.
        for (let i = 0; i < 30; i++) {
          const { host, port } = stage.three[i % 3]!;
          const watcher = await stage.connect(`watcher${i}`, { servers: `${host}:${port}` });
          await watcher.watch('/', { recursive: true }).ready;
        }
        const client = await stage.at(zk3);
        await stage.whole();
        stage.kill(learner);
        await client.create('/committed');
        const writes: Promise<unknown>[] = [];
        let behind: number | null = null;
        void stage.packet({ from: learner, stage: 'received', type: PacketType.ackEpoch }).then(({ to }) => {
          const source = stage.zk(to);
          behind = source.committedZxid - (source.core?.view.lastZxid ?? 0);
        });
        learner.start();
        while (behind === null) {
          for (let i = 0; i < 20; i++) writes.push(client.create(`/during${writes.length}`));
          await stage.sleep(1);
        }
        expect(behind).toBeGreaterThan(0);
        await Promise.all(writes);
        await stage.whole();
        for (let i = 0; i < writes.length; i++) expect(await stage.has(learner, `/during${i}`)).toBe(true);
      },
    ),
  );

  test('1367: learns of sessions that began and ended meanwhile, and their ephemeral znodes are gone there too', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      const first = await stage.connect('first', { servers: 'zk3:2181' });
      await first.create('/first', '', { mode: 'ephemeral' });
      await stage.whole();
      stage.kill(zk1);
      const second = await stage.connect('second', { servers: 'zk3:2181' });
      await second.create('/second', '', { mode: 'ephemeral' });
      await first.close();
      zk1.start();
      // One session ends, and one begins, in the middle of its synchronization.
      await stage.packet({ from: zk3, to: zk1, type: PacketType.newLeader });
      const third = await stage.connect('third', { servers: 'zk3:2181' });
      await third.create('/third', '', { mode: 'ephemeral' });
      await second.close();
      await stage.whole();
      expect(await stage.has(zk1, '/first')).toBe(false);
      expect(await stage.has(zk1, '/second')).toBe(false);
      expect(await stage.has(zk1, '/third')).toBe(true);
      // And when server 1 leads, it knows whose znodes those are.
      stage.kill(zk3);
      await third.close();
      await stage.write(await stage.leader(zk1, stage.zk(2)), 1);
    }));

  test('6092 of Camunda: is sent a snapshot that ends before its own log, whose end was never committed', () =>
    play({ servers: 3 }, async (stage) => {
      await stage.write(await stage.start(), 3);
      // Sessions are txns too: only one may be created later.
      for (const server of stage.servers) await stage.at(server);
      await stage.whole();
      const committed = stage.lastZxid(stage.zk(1));
      stage.kill(...stage.servers);
      const old = await stage.start();
      await stage.logAlone(old, '/alone');
      stage.isolate(old);
      await stage.leader(...stage.servers.filter((server) => server !== old));
      expect(stage.lastZxid(old)).toBeGreaterThan(committed);
      const snap = stage.packet({ to: old, type: PacketType.snap });
      stage.heal();
      expect(await snap).toMatchObject({ packet: { zxid: committed } });
      await stage.whole();
      expect(stage.lastZxid(old)).toBe(committed);
      stage.cutPower(old);
      await stage.start(old);
      expect(await stage.has(old, '/alone')).toBe(false);
      expect(await stage.has(old, '/n3')).toBe(true);
    }));

  test('1697, 1521: takes longer than syncLimit for its snapshot, and the ensemble does not lose its quorum over it', () =>
    play({ servers: 3, seeds: [1], ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      stage.kill(zk1);
      const client = await stage.at(zk3);
      for (let i = 0; i < 30; i++) await client.create(`/big${i}`, 'x'.repeat(60_000));
      // 1.8 MB at 300 bytes a millisecond: six seconds, twelve times syncLimit and three times initLimit.
      const slow = { delayMinMs: 0.1, delayMaxMs: 1, splitChance: 0, mergeChance: 0, bytesPerMs: 300 };
      stage.world.network.slowDown('zk3', 'zk1', slow);
      const { epoch } = zk3;
      const startedMs = stage.world.nowMs;
      zk1.start();
      await stage.packet({ from: zk1, is: isNewLeaderAck });
      expect(stage.world.nowMs - startedMs).toBeGreaterThan(5000);
      expect(stage.world.nowMs - startedMs).toBeLessThan(8000);
      expect(zk3.epoch).toBe(epoch);
      await stage.whole();
      expect(await stage.has(zk1, '/big29')).toBe(true);
    }));

  test('3240, 3774, 3574: is accepted again at once although its old connection looks alive to the leader', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.cutPower(zk1);
      zk1.start();
      const startedMs = stage.world.nowMs;
      await stage.whole();
      expect(stage.world.nowMs - startedMs).toBeLessThan(2000);
    }));
});

describe('a learner that applies slowly', () => {
  test('shows txns as they were written, although it has read others since', () =>
    play({ servers: 3, isSlow: true }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      // Each write is notified to all of them, which takes server 1 several turns.
      for (let i = 0; i < 10; i++) {
        const watcher = await stage.connect(`watcher${i}`, { servers: 'zk1:2181' });
        await watcher.watch('/', { recursive: true }).ready;
      }
      const client = await stage.at(zk3);
      const textOf = (i: number): string => `${i} `.repeat(500);
      // The next ones arrive while it has those before to apply.
      for (let at = 0; at < 300; at += 10) {
        await Promise.all(Array.from({ length: 10 }, (_, i) => client.create(`/fast${at + i}`, textOf(at + i))));
      }
      await stage.whole();
      const reader = await stage.at(zk1);
      for (let i = 0; i < 300; i++) {
        const { data } = await reader.get(`/fast${i}`);
        expect(new TextDecoder().decode(data)).toBe(textOf(i));
      }
    }));
});

describe('an ensemble', () => {
  test('2201: continues while one follower reads nothing of what it is sent', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      const client = await stage.at(zk3);
      zk1.pause();
      const beganMs = stage.world.nowMs;
      for (let i = 0; i < 40; i++) await client.create(`/big${i}`, 'x'.repeat(50_000));
      // No write waited for the paused follower.
      expect(stage.world.nowMs - beganMs).toBeLessThan(1000);
      zk1.resume();
      await stage.whole();
      expect(await stage.has(zk1, '/big39')).toBe(true);
    }));

  test('2380, 2687: elects again when its leader loses its quorum at the instant at which its own log is flushed', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      await stage.begin(zk3, '/doubtful');
      await stage.disk(zk3, 'sync', 'log.');
      stage.kill(zk1, zk2);
      await stage.until('server 3 leads no more', () => zk3.role === 'looking');
      await stage.start(zk1, zk2);
      await stage.write(await stage.leader(), 2);
    }));

  test('5010: has the same ephemeral znodes everywhere when its leader dies just behind one of a follower', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      const client = await stage.connect('app', { servers: 'zk1:2181' });
      await client.create('/before', '', { mode: 'ephemeral' });
      const proposed = stage.packet({ from: zk3, to: zk1, stage: 'received', type: PacketType.proposal });
      const created = client.create('/during', '', { mode: 'ephemeral' }).catch(() => {});
      await proposed;
      stage.cutPower(zk3);
      await stage.leader(zk1, zk2);
      await created;
      const isThere = (await client.exists('/during', { read: 'linearizable' })) !== null;
      await stage.start(zk3);
      await stage.whole();
      for (const server of stage.servers) {
        expect(await stage.has(server, '/before')).toBe(true);
        expect(await stage.has(server, '/during')).toBe(isThere);
      }
      await client.close();
      await stage.whole();
      for (const server of stage.servers) expect(await stage.has(server, '/during')).toBe(false);
    }));

  test('Jepsen on Redis-Raft, 2020: loses nothing and has no split brain when its leader is paused in a snapshot and resumes', () =>
    play({ servers: 3, ensemble: { commitLogCount: 5, snapshotSizeFactor: -1 } }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk1);
      const before = await stage.write(zk3, 30);
      const asked = stage.packet({ to: zk1, stage: 'received', type: PacketType.snap });
      zk1.start();
      await asked;
      const reader = await stage.connect('reader', { servers: 'zk3:2181' });
      zk3.pause();
      const next = await stage.leader(zk1, zk2);
      expect(next).toBe(zk2);
      const after = await stage.write(next, 10);
      // A request to the old leader is now not answered from its memory.
      const read = reader.exists(after[9]!, { read: 'linearizable' }).then(
        (stat) => stat !== null,
        () => true,
      );
      zk3.resume();
      expect(await read).toBe(true);
      await stage.whole();
      for (const path of [...before, ...after]) expect(await stage.has(zk1, path)).toBe(true);
      await reader.close();
    }));
});
