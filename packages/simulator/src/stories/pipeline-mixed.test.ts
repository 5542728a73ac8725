import { CreateMode, ErrorCode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ApachePeer, type ApacheRequest } from '../apache/apache-peer.ts';
import { readLogs } from '../disk-reader.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { type MixedServer, type MixedStage, playMixed } from './mixed-stage.ts';

const DATA = new TextEncoder().encode('data');

function answered(stage: MixedStage, ...requests: ApacheRequest[]): Promise<void> {
  return stage.until('the requests are answered', () => requests.every(({ outcome }) => outcome !== null));
}

function lastLogged(server: MixedServer): number {
  if (server instanceof ApachePeer) return server.disk.log.at(-1)?.zxid ?? 0;
  return readLogs(server.disk, server.options.logDirectory).at(-1)?.zxid ?? 0;
}

/** The server with the highest id leads: each of these has both kinds of leaders over time. */
const MIXES = [
  { apache: [1], what: 'two of ours and one of Apache' },
  { apache: [3], what: 'two of ours and one of Apache, which leads' },
  { apache: [1, 2], what: 'one of ours, which leads, and two of Apache' },
  { apache: [2, 3], what: 'one of ours and two of Apache' },
];

describe.each(MIXES)('an ensemble of $what', ({ apache }) => {
  test('replicates, loses its leader, catches up, and causes no complaints of 3.8.0', () =>
    playMixed({ servers: 3, apache }, async (stage) => {
      const [own] = stage.ours as [VirtualServer];
      const first = await stage.start();
      expect(first.serverId).toBe(3);
      await stage.write(own, 5);
      // Each server is down once while the others continue.
      for (const server of stage.servers) {
        stage.kill(server);
        await stage.until('others serve', () => stage.leaders.length === 1 && stage.leaders[0] !== server);
        const other = stage.ours.find((candidate) => candidate.isRunning);
        if (other !== undefined) {
          await stage.until('it serves', () => other.isServing);
          await stage.write(other, 3);
        } else {
          const [peer] = stage.peers.filter(({ isRunning }) => isRunning) as [ApachePeer];
          await stage.until('it serves', () => peer.isServing);
          const session = peer.createSession();
          await answered(stage, session);
          await answered(stage, peer.create(session.sessionId, '/while-alone', DATA));
        }
        server.start();
        await stage.whole();
      }
      // All lose power at once.
      await stage.write(own, 3);
      stage.cutPower(...stage.servers);
      await stage.start();
      await stage.write(own, 2);
    }));

  test('has sessions of the clients of both, which end and move', () =>
    playMixed({ servers: 3, apache }, async (stage) => {
      const [own] = stage.ours as [VirtualServer];
      const [peer] = stage.peers as [ApachePeer];
      await stage.start();
      const session = peer.createSession(2000);
      await answered(stage, session);
      const mine = peer.create(session.sessionId, '/of-apache', DATA, CreateMode.ephemeral);
      const sync = peer.sync(session.sessionId);
      await answered(stage, mine, sync);
      expect(mine.outcome).toMatchObject({ txn: { type: OpCode.create, isEphemeral: true } });
      const client = await stage.world.connect('short', { servers: own.host, sessionTimeoutMs: 1000 });
      await client.create('/of-ours', '', { mode: 'ephemeral' });
      const watcher = await stage.at(own);
      // Sessions stay alive, whichever kind of server leads and whichever kind their clients are at.
      await stage.world.sleep(2500);
      expect(client.state).toBe('connected');
      const ofApache = await watcher.exists('/of-apache', { watch: true });
      expect(ofApache.stat?.ephemeralOwner).toBe(session.sessionId);
      const ofOurs = await watcher.exists('/of-ours', { watch: true });
      // One client moves to the other server, one falls silent, one closes its session.
      peer.revalidate(client.session!.id, 1000);
      if (peer.leader === null) {
        await stage.until('it is revalidated', () => peer.revalidations.length === 1);
        expect(peer.revalidations).toEqual([{ sessionId: client.session!.id, isValid: true }]);
      }
      peer.forgetSession(session.sessionId);
      peer.forgetSession(client.session!.id);
      await ofApache.changed;
      await client.close();
      await ofOurs.changed;
      expect(await watcher.exists('/of-apache')).toBeNull();
      // What 3.8.0 wrongly forwards (ZOOKEEPER-2623) never gets into our logs.
      if (peer.leader === null && stage.ours.some(({ role }) => role === 'leading')) {
        const next = peer.createSession();
        await answered(stage, next);
        const check = peer.request(OpCode.check, new Uint8Array(8), { sessionId: next.sessionId });
        const behind = peer.create(next.sessionId, '/behind', DATA);
        await answered(stage, check, behind);
        expect(check.outcome).toMatchObject({ txn: { type: OpCode.error, error: ErrorCode.unimplemented } });
        expect(behind.outcome).toMatchObject({ txn: { type: OpCode.create } });
        peer.forgetSession(next.sessionId);
      }
    }));

  test('truncates what only one server has, whichever kind it is', () =>
    playMixed({ servers: 3, apache }, async (stage) => {
      const [own] = stage.ours as [VirtualServer];
      const old = await stage.start();
      await stage.write(own, 3);
      for (const server of stage.ours) await stage.at(server);
      await stage.whole();
      const others = stage.servers.filter((server) => server !== old);
      // The leader logs what no other server receives, and loses power with it.
      stage.world.network.partition(
        [old.host],
        others.map(({ host }) => host),
      );
      if (old instanceof ApachePeer) {
        old.propose({
          type: OpCode.create,
          path: '/lost',
          data: DATA,
          acl: [],
          isEphemeral: false,
          parentCversion: 99,
        });
      } else {
        const client = await stage.at(old);
        client.create('/lost').catch(() => {});
      }
      await stage.world.sleep(50);
      expect(lastLogged(old)).toBeGreaterThan(Math.max(...others.map(lastLogged)));
      // What is in flight is lost with the connections.
      for (const end of stage.world.network.openEnds) if (end.host === old.host) end.breakStream();
      stage.kill(old);
      stage.world.network.heal();
      await stage.until('others serve', () => stage.leaders.length === 1 && stage.leaders[0] !== old);
      const other = stage.ours.find((server) => server !== old);
      if (other !== undefined) {
        await stage.until('it serves', () => other.isServing);
        await stage.write(other, 3);
      }
      await stage.start(old);
      const client = await stage.at(own);
      expect(await client.exists('/lost')).toBeNull();
    }));

  test('brings a server up to date by a snapshot when it lacks more than the others hold in memory', () =>
    playMixed(
      {
        servers: 3,
        apache,
        peer: { commitLogCount: 4 },
        ensemble: { commitLogCount: 4, snapshotSizeFactor: -1 },
      },
      async (stage) => {
        const leader = await stage.start();
        const [own] = stage.ours as [VirtualServer];
        const away = stage.servers.filter((server) => server !== leader && server !== own);
        await stage.write(own, 3);
        stage.kill(...away.slice(0, 1));
        await stage.write(own, 12);
        await stage.start(...away.slice(0, 1));
        // It starts from the snapshot the next time.
        stage.cutPower(...stage.servers);
        await stage.start();
        await stage.write(own, 3);
      },
    ));
});

describe.each(MIXES.filter(({ apache }) => !apache.includes(3)))('an ensemble of $what', ({ apache }) => {
  test('starts another epoch when one has used up its zxids, without packets unknown to 3.8.0', () =>
    playMixed({ servers: 3, apache, ensemble: { epochTxnsMax: 12 } }, async (stage) => {
      const first = await stage.start();
      const own = stage.zk(3) as VirtualServer;
      expect(first).toBe(own);
      const client = await stage.at(own);
      for (let i = 0; i < 40; i++) await client.create(`/x${i}`).catch(() => {});
      await stage.whole();
      await stage.write(own, 1);
      expect(stage.leaders[0]!.epoch).toBeGreaterThan(2);
      expect(client.state).toBe('connected');
    }));
});

describe('a leader of ours with a follower and an observer of Apache', () => {
  test('answers their syncs before it sends them the commits of later txns', () =>
    playMixed({ servers: 3, observers: 1, apache: [1, 4] }, async (stage) => {
      const leader = await stage.start();
      expect(leader).toBe(stage.zk(3));
      const { peers } = stage;
      const [follower, observer] = peers as [ApachePeer, ApachePeer];
      // The followers are a quorum and commit; the leader's own disk does not have yet what it must apply for a sync.
      (leader as VirtualServer).setDiskQuality({ effectMinMs: 0.1, effectMaxMs: 2, syncMinMs: 10, syncMaxMs: 40 });
      const sessions = [follower, observer].map((peer) => ({
        peer,
        first: peer.createSession(),
        second: peer.createSession(),
      }));
      await answered(stage, ...sessions.flatMap(({ first, second }) => [first, second]));
      for (let round = 0; round < 20; round++) {
        for (const { peer, first, second } of sessions) {
          const path = `/of-${peer.serverId}-${round}`;
          peer.create(first.sessionId, `${path}-a`, DATA);
          peer.sync(first.sessionId);
          peer.create(second.sessionId, `${path}-b`, DATA);
          peer.sync(second.sessionId);
        }
        await stage.write(stage.zk(2) as VirtualServer);
        await stage.world.sleep(stage.world.random.fraction() * 30);
      }
      await answered(stage, ...peers.flatMap(({ requests }) => requests));
      for (const { requests } of peers) expect(requests.filter(({ outcome }) => outcome === 'lost')).toEqual([]);
      for (const { first, second, peer } of sessions) {
        peer.forgetSession(first.sessionId);
        peer.forgetSession(second.sessionId);
      }
    }));

  test('confirms a session to them only after they have received its creation', () =>
    playMixed({ servers: 3, observers: 1, apache: [1, 4] }, async (stage) => {
      const leader = (await stage.start()) as VirtualServer;
      leader.setDiskQuality({ effectMinMs: 0.1, effectMaxMs: 2, syncMinMs: 20, syncMaxMs: 60 });
      const [follower, observer] = stage.peers as [ApachePeer, ApachePeer];
      for (let round = 0; round < 10; round++) {
        for (const peer of [follower, observer]) {
          // The sync waits for the disk of the leader, and the session begins meanwhile.
          await stage.write(stage.zk(2) as VirtualServer);
          peer.sync(1n);
          const client = await stage.world.connect(`c${round}-${peer.serverId}`, { servers: stage.zk(2).host });
          const before = peer.revalidations.length;
          const { id } = client.session!;
          peer.revalidate(id, 10_000);
          await stage.until('it is revalidated', () => peer.revalidations.length > before);
          expect(peer.revalidations.at(-1)).toEqual({ sessionId: id, isValid: true });
          expect(peer.database.sessions.has(id)).toBe(true);
          peer.forgetSession(id);
          await client.close();
        }
      }
    }));
});

describe('servers of ours under an Apache leader that skips zxids', () => {
  test('keep their clients, are synchronized over the gap, and lead with it', () =>
    playMixed({ servers: 3, observers: 1, apache: [3] }, async (stage) => {
      const leader = await stage.start();
      expect(leader).toBe(stage.zk(3));
      const apache = leader as ApachePeer;
      const [first, second, observer] = stage.ours as [VirtualServer, VirtualServer, VirtualServer];
      const lost: string[] = [];
      for (const server of stage.ours) {
        const client = await stage.at(server);
        client.onState(({ state }) => lost.push(`${server.host} ${state}`));
      }
      // A gap at the first zxid of a series of writes, and one in the middle.
      for (const server of [first, observer, second]) {
        apache.leader?.skipZxid();
        await stage.write(server, 2);
      }
      expect(lost).toEqual([]);
      // Synchronization of servers that come back to the same leader.
      stage.kill(second, observer);
      apache.leader?.skipZxid();
      await stage.write(first, 2);
      await stage.start();
      expect(lost.filter((what) => what.startsWith(first.host))).toEqual([]);
      // Synchronization from a leader of ours to one of our servers and to Apache's.
      stage.kill(second);
      apache.leader?.skipZxid();
      await stage.write(first, 2);
      stage.kill(apache);
      second.start();
      await stage.until('ours serve', () => stage.leaders.length === 1 && stage.leaders[0] !== apache);
      await stage.write(second, 2);
      stage.cutPower(...stage.servers);
      await stage.start();
      await stage.write(first);
    }));

  test('follow it over a gap in an older epoch also where there is no quorum without them', () =>
    playMixed({ servers: 2, apache: [2] }, async (stage) => {
      const apache = (await stage.start()) as ApachePeer;
      const [own] = stage.ours as [VirtualServer];
      await stage.write(own, 3);
      stage.kill(own);
      // No other server receives it, but the next epoch begins with it.
      for (const path of ['/before', '/behind']) {
        apache.propose({ type: OpCode.create, path, data: DATA, acl: [], isEphemeral: false, parentCversion: 99 });
        apache.leader?.skipZxid();
      }
      await stage.until('it looks', () => apache.leader === null);
      await stage.start(own);
      const client = await stage.at(own);
      expect(await client.exists('/behind')).not.toBeNull();
    }));
});
