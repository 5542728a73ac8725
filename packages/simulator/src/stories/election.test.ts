/** Rows of the catalogue about elections. */
import { describe, expect, test } from 'vitest';
import { ELECTION_PORT } from '../virtual-ensemble.ts';
import { isNewLeaderAck, play } from './stage.ts';

describe('an election', () => {
  test('1419: ends, although the servers with the lower ids have the later epochs', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      await stage.write(zk5, 3);
      // Epochs pass with ever fewer members: the lower the id, the later the epoch, all at the same zxid.
      stage.kill(zk4, zk5);
      await stage.leader(zk1, zk2, zk3);
      stage.kill(zk1, zk2, zk3);
      await stage.start(zk1, zk2, zk3);
      stage.kill(zk1, zk2, zk3);
      await stage.start();
    }));

  test('takes in a server that has promised a far later epoch with one change of leaders', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk3);
      const { epoch } = await stage.leader(zk1, zk2);
      const twenty = new TextEncoder().encode('20');
      zk3.disk.poke('/data/version-2/acceptedEpoch', twenty);
      zk3.start();
      await stage.whole();
      expect(epoch).toBeLessThan(5);
      expect((await stage.leader()).epoch).toBe(21);
    }));

  test('1514: is not decided by what others said in an older round', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      // Its election port is unreachable for some rounds; the others follow it, then another one.
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

  test('1514: gives a server that lost its power no second term because of followers that have not noticed', () =>
    play({ servers: 3 }, async (stage) => {
      const zk3 = await stage.start();
      await stage.write(zk3, 3);
      const { epoch } = zk3;
      stage.cutPower(zk3);
      zk3.start();
      // In its first round, which is the same as theirs was, they report that they follow it.
      await stage.until('it has looked and found', () => zk3.role === 'leading' || zk3.role === 'following');
      await stage.whole();
      expect((await stage.leader()).epoch).toBeGreaterThan(epoch);
    }));

  test('131, 569, 480: no server keeps following a leader that is gone, and a newcomer never starts to', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      const gone = await stage.start(zk1, zk2, zk3, zk4);
      // Three of five still follow it when server 5 asks them.
      stage.cutPower(gone);
      const leaders: (number | null)[] = [];
      stage.world.watch({
        onTrace: (server, event) => {
          if (server === zk5 && event.kind === 'role-changed') leaders.push(event.leader);
        },
      });
      zk5.start();
      const others = stage.servers.filter((server) => server !== gone);
      await stage.write(await stage.leader(...others), 2);
      await stage.whole();
      expect(leaders).not.toContain(gone.serverId);
    }));

  test('restarts at once when the elected leader ends before it has a learner', () =>
    play({ servers: 5 }, async (stage) => {
      const first = await stage.start();
      let chosen = 0;
      const looks: { readonly serverId: number; readonly atMs: number }[] = [];
      stage.world.watch({
        onTrace: ({ serverId }, event) => {
          if (event.kind !== 'role-changed') return;
          if (event.role === 'following' && event.leader !== first.serverId) chosen = event.leader ?? 0;
          if (event.role === 'looking' && chosen > 0) looks.push({ serverId, atMs: stage.world.nowMs });
        },
      });
      stage.kill(first);
      await stage.until('one has decided for a leader', () => chosen > 0);
      const endedMs = stage.world.nowMs;
      stage.kill(stage.zk(chosen));
      await stage.until('one looks again', () => looks.length > 0);
      expect(looks[0]!.atMs - endedMs).toBeLessThan(100);
      await stage.leader(...stage.servers.filter(({ serverId }) => serverId !== chosen && serverId !== first.serverId));
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

  test('3109: ends at once for a leader whose voter has received a better vote and switched', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const { network } = stage.world;
      // Server 1 receives server 3's vote late. Server 2 never does, nor does it learn for a while that server 1 did.
      network.partition(['zk1', 'zk2'], ['zk3']);
      for (const server of stage.servers) server.start();
      await stage.sleep(50);
      network.block('zk1', 'zk2');
      network.unblock('zk1', 'zk3');
      network.unblock('zk3', 'zk1');
      await stage.until('server 2 leads', () => zk2.role === 'leading', 1000);
      expect(zk1.role).toBe('looking');
      network.unblock('zk1', 'zk2');
      // Apache's leader waits for all of initLimit, two seconds, for a voter that is gone.
      await stage.until('server 2 no longer leads', () => zk2.role === 'looking', 500);
      network.heal();
      expect(await stage.leader()).toBe(zk3);
    }));

  test('261, openraft: a server whose disk was emptied does not make a quorum with one that is behind', () =>
    play({ servers: 5 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      stage.kill(zk1);
      const paths = await stage.write(zk5, 5);
      await stage.whole(zk2, zk3, zk4, zk5);
      // One copy of four is lost: the three others include one member of every quorum of the rest.
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

  test('261: with db.autocreate=false a server whose disk was emptied counts for no quorum before a leader has sent it everything', () =>
    play({ servers: 3, excused: ['Z9'] }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk1);
      const paths = await stage.write(zk3, 5);
      await stage.whole(zk2, zk3);
      stage.kill(zk2, zk3);
      for (const { options } of stage.three) Object.assign(options, { createsDatabase: false });
      zk2.wipe();
      zk1.start();
      zk2.start();
      await stage.sleep(5000);
      expect(stage.servers.some(({ isServing }) => isServing)).toBe(false);
      // After a restart it is as before.
      stage.kill(zk2);
      zk2.start();
      await stage.sleep(5000);
      expect(stage.servers.some(({ isServing }) => isServing)).toBe(false);
      zk3.start();
      expect(await stage.leader()).toBe(zk3);
      await stage.whole(...stage.three);
      for (const path of paths) expect(await stage.has(zk2, path)).toBe(true);
      // From now on it is a voter like the others.
      stage.kill(zk3);
      expect(await stage.leader(zk1, zk2)).toBe(zk2);
      stage.cutPower(zk1, zk2);
      await stage.start(zk1, zk2);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
    }));

  test('2930, 3756: continues at once when requests to one server are lost in the network', () =>
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

describe('an ensemble', () => {
  test('498, 479: whose group without weight has the latest history elects a server with weight', () =>
    play(
      {
        servers: 5,
        hierarchy: {
          groups: new Map([
            [1, [1, 2, 3]],
            [2, [4, 5]],
          ]),
          weights: new Map([1, 2, 3, 4, 5].map((id) => [id, id < 4 ? 1 : 0])),
        },
      },
      async (stage) => {
        const [zk1, zk2, zk3, zk4, zk5] = stage.five;
        expect(await stage.start()).toBe(zk3);
        await stage.write(zk3, 3);
        // Servers 4 and 5 have txns that server 1 lacks, and higher ids.
        stage.kill(zk1);
        await stage.write(zk3, 3);
        stage.kill(zk2, zk3, zk4, zk5);
        const leader = await stage.start();
        expect([zk2, zk3]).toContain(leader);
      },
    ));

  test('764, 769: never elects an observer, whatever its history and its id', () =>
    play({ servers: 3, observers: 2 }, async (stage) => {
      const [zk1, zk2, zk3, zk4, zk5] = stage.five;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk3);
      // Counting the observers there would be three of five.
      await stage.sleep(3000);
      expect([zk2, zk4, zk5].some(({ isServing }) => isServing)).toBe(false);
      zk1.start();
      expect(await stage.leader()).toBe(zk2);
    }));

  test('NuRaft 134: keeps its leader while a lagging server comes and goes, and the leader pauses for moments', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, , zk3] = stage.three;
      await stage.start();
      const { epoch } = zk3;
      for (let round = 0; round < 5; round++) {
        stage.kill(zk1);
        await stage.write(zk3, 5);
        zk1.start();
        await stage.sleep(20);
        zk3.pause();
        await stage.sleep(200);
        zk3.resume();
        await stage.whole();
      }
      expect(zk3.epoch).toBe(epoch);
    }));

  test('is won at once by a leader whose follower is quicker to decide', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const { network } = stage.world;
      // The link to server 3 is slow, so its notifications come late: no follower may have to connect twice.
      network.slowDown('zk1', 'zk3', { delayMinMs: 30, delayMaxMs: 40, splitChance: 0, mergeChance: 0 });
      const ended: string[] = [];
      stage.world.watch({
        onTrace: (server, event) => {
          if (event.kind === 'role-changed' && event.role === 'looking') ended.push(`${server.host}: ${event.reason}`);
        },
      });
      await stage.start(zk1, zk2, zk3);
      expect(ended.filter((line) => !line.endsWith('it has just started'))).toEqual([]);
    }));

  test('880, 822, 481: agrees although the connections of the election break again and again while it votes', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk3);
      for (let i = 0; i < 20; i++) {
        stage.breakLinks(zk1, zk2);
        await stage.sleep(15);
      }
      const healedMs = stage.world.nowMs;
      await stage.leader(zk1, zk2);
      expect(stage.world.nowMs - healedMs).toBeLessThan(3000);
    }));

  test('1270, 1192, 1191: counts its leader by itself, when that is the last one to be ready', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      // All disk writes of server 3 take ten times as long as those of the others.
      zk3.setDiskQuality({ effectMinMs: 1, effectMaxMs: 2, syncMinMs: 20, syncMaxMs: 40 });
      const acknowledged = stage.packet({ from: zk1, to: zk3, stage: 'received', is: isNewLeaderAck });
      zk1.start();
      zk3.start();
      await acknowledged;
      // One follower is enough for the quorum, but only together with the leader.
      if (stage.found(zk3).currentEpoch === 0) expect(zk3.isServing).toBe(false);
      zk2.start();
      await stage.whole();
      expect(stage.found(zk3).currentEpoch).toBe(zk3.epoch);
    }));
});
