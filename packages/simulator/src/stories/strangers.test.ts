/** What one packet, one file or one server that lost its disk must not do to an ensemble. */
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { QUORUM_PORT } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { playMixed } from './mixed-stage.ts';
import { play, type Stage } from './stage.ts';

describe('a stranger that sends FOLLOWERINFO', () => {
  test('under the id of a connected follower does not replace it', () =>
    play({ servers: 3 }, async (stage) => {
      const leader = await stage.start();
      const [follower, other] = stage.servers.filter((server) => server !== leader);
      // Without the follower there is no quorum.
      stage.kill(other!);
      const { epoch } = leader;
      for (let i = 0; i < 20; i++) {
        const knock = pretendToFollow(stage, leader, { serverId: follower!.serverId, acceptedEpoch: epoch });
        await stage.write(leader);
        await stage.until('the stranger is sent away', () => knock.isClosed, 500);
      }
      expect(follower!.isServing).toBe(true);
      expect((await stage.leader()).epoch).toBe(epoch);
    }));

  test('under unknown ids has a limited number of connections, and keeps no member out', () =>
    play({ servers: 3, observers: 1 }, async (stage) => {
      const leader = await stage.start();
      const [follower] = stage.servers.filter((server) => server !== leader);
      stage.kill(follower!);
      const { epoch } = leader;
      const knocks: Knock[] = [];
      for (let i = 0; i < 200; i++) {
        const type = i % 2 === 0 ? OBSERVER_INFO : FOLLOWER_INFO;
        knocks.push(pretendToFollow(stage, leader, { serverId: 1000 + i, acceptedEpoch: epoch, type }));
        await stage.sleep(5);
      }
      const open = () => knocks.filter(({ isClosed }) => !isClosed).length;
      expect(open()).toBeGreaterThan(50);
      // Plus those that are being opened.
      expect(open()).toBeLessThanOrEqual(64 + 4);
      follower!.start();
      await stage.whole();
      await stage.write(follower!, 3);
      expect((await stage.leader()).epoch).toBe(epoch);
    }));

  test('under unknown ids has a limited number of connections to a follower with observers, too', () =>
    play({ servers: 3, observers: 1, ensemble: { observerMasterPort: OBSERVER_PORT } }, async (stage) => {
      const leader = await stage.start();
      const follower = stage.three.find((server) => server !== leader)!;
      await stage.until('it takes observers', () => stage.world.network.isListening(follower.host, OBSERVER_PORT));
      const knocks: Knock[] = [];
      for (let i = 0; i < 200; i++) {
        const who = { serverId: 1000 + i, acceptedEpoch: leader.epoch, type: OBSERVER_INFO, port: OBSERVER_PORT };
        knocks.push(pretendToFollow(stage, follower, who));
        await stage.sleep(5);
      }
      const open = knocks.filter(({ isClosed }) => !isClosed).length;
      expect(open).toBeGreaterThan(50);
      expect(open).toBeLessThanOrEqual(64 + 4);
      await stage.whole();
    }));

  test.each([LAST_EPOCH - 1, LAST_EPOCH])(
    'with epoch %i for one that is away ends no epochs, neither at a leader nor at one that is just elected',
    (acceptedEpoch) =>
      play({ servers: 3 }, async (stage) => {
        const [zk1, zk2, zk3] = stage.three;
        await stage.start();
        const pretend = (leader: VirtualServer): Knock =>
          pretendToFollow(stage, leader, { serverId: zk1.serverId, acceptedEpoch });
        stage.kill(zk1);
        const first = await stage.leader();
        await stage.sleep(2000);
        const knock = pretend(first);
        await stage.until('the stranger is sent away', () => knock.isClosed, 500);
        await stage.write(first);
        for (let round = 0; round < 3; round++) {
          stage.kill(zk2, zk3);
          await stage.launch(zk2, zk3);
          // Among the first to connect to the next leader.
          await stage.until('learners can connect', () => stage.world.network.isListening('zk3', QUORUM_PORT));
          for (let i = 0; i < 20; i++) {
            for (const server of [zk2, zk3]) pretend(server);
            await stage.sleep(5);
          }
          await stage.whole(zk2, zk3);
        }
        zk1.start();
        await stage.whole();
        for (const server of stage.servers) expect(stage.found(server).acceptedEpoch).toBeLessThan(1000);
      }),
  );
});

describe('a file acceptedEpoch that holds far too high a number', () => {
  test('keeps only its server out', () =>
    play({ servers: 3, excused: EDITED }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk3);
      // It has the highest id, and as late a history as the others.
      damage(zk3);
      stage.kill(zk1, zk2);
      await stage.launch();
      await stage.whole(zk1, zk2);
      await stage.write(await stage.leader(zk1, zk2), 3);
      await stage.sleep(5000);
      expect(zk3.isServing).toBe(false);
      for (const server of [zk1, zk2]) expect(stage.found(server).acceptedEpoch).toBeLessThan(20);
      // The repair described in docs/zab.md.
      stage.kill(zk3);
      const { epoch } = await stage.leader();
      repair(zk3, epoch);
      zk3.start();
      await stage.whole();
    }));

  test('leads no servers of Apache to its number, though they accept any', () =>
    playMixed({ servers: 3, apache: [1, 2] }, async (stage) => {
      const [ours] = stage.ours;
      await stage.start();
      await stage.write(ours!, 3);
      await stage.whole();
      stage.kill(...stage.servers);
      damage(ours!);
      for (const server of stage.servers) server.start();
      await stage.until('the others serve', () => stage.peers.every(({ isServing }) => isServing));
      for (const { disk } of stage.peers) expect(disk.acceptedEpoch).toBeLessThan(100);
      stage.kill(ours!);
      repair(ours!, stage.peers[0]!.epoch);
    }));

  test('delays elections for as long as it is needed for a quorum, and no longer', () =>
    play({ servers: 3, excused: EDITED }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      damage(zk3);
      await stage.launch(zk2, zk3);
      await stage.sleep(10_000);
      expect(stage.ensemble.leader).toBeNull();
      zk1.start();
      await stage.whole(zk1, zk2);
      for (const server of [zk1, zk2]) expect(stage.found(server).acceptedEpoch).toBeLessThan(100);
      stage.kill(zk3);
      repair(zk3, (await stage.leader()).epoch);
      zk3.start();
      await stage.whole();
    }));

  test('no longer keeps its server from leading once another server has confirmed the number', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      await stage.write(zk3, 3);
      stage.kill(zk1, zk2, zk3);
      repair(zk2, 299_990);
      repair(zk3, 300_000);
      await stage.launch(zk1, zk3);
      await stage.sleep(10_000);
      expect(stage.ensemble.leader).toBeNull();
      zk2.start();
      await stage.whole();
      const first = await stage.leader();
      expect(first).not.toBe(zk3);
      expect(first.epoch).toBe(300_001);
      // What is written now is missing at the server that server 3 needs for a quorum.
      const other = first === zk1 ? zk2 : zk1;
      stage.kill(other);
      await stage.write(first, 1);
      await stage.whole(first, zk3);
      stage.kill(first);
      other.start();
      await stage.whole(other, zk3);
      expect(await stage.leader()).toBe(zk3);
    }));

  test('is accepted where elections can have led so far, and no other server from then is left', () =>
    play({ servers: 3 }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      await stage.start();
      stage.kill(zk1, zk2, zk3);
      repair(zk3, 50_000);
      await stage.launch(zk2, zk3);
      await stage.whole(zk2, zk3);
      expect((await stage.leader()).epoch).toBe(50_001);
      zk1.start();
      await stage.whole();
    }));
});

describe('where epochs have ended', () => {
  test('no server leads, and the documented repair loses nothing', () =>
    play({ servers: 3, excused: EDITED }, async (stage) => {
      const leader = await stage.start();
      const paths = await stage.write(leader, 5);
      stage.kill(...stage.servers);
      for (const server of stage.servers) repair(server, LAST_EPOCH);
      await stage.launch();
      await stage.sleep(10_000);
      expect(stage.ensemble.leader).toBeNull();
      stage.kill(...stage.servers);
      const latest = Math.max(...stage.servers.map((server) => stage.found(server).currentEpoch));
      for (const server of stage.servers) repair(server, latest);
      const next = await stage.start();
      expect(next.epoch).toBe(latest + 1);
      for (const path of paths) expect(await stage.has(next, path)).toBe(true);
    }));
});

describe('a server that has what all others have lost', () => {
  test('wins when it is started last, and takes nothing from them', () =>
    play({ servers: 3, excused: LOST }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const paths = await makeEpochs(stage);
      stage.kill(zk1, zk2, zk3);
      zk2.wipe();
      zk3.wipe();
      const young = await stage.start(zk2, zk3);
      const { epoch } = young;
      expect(epoch).toBeLessThan(stage.found(zk1).currentEpoch);
      zk1.start();
      await stage.until('the longer history wins', () => stage.ensemble.leader === zk1);
      await stage.whole();
      for (const path of paths) expect(await stage.has(zk3, path)).toBe(true);
      expect(zk1.epoch).toBeGreaterThan(epoch);
    }));

  test('wins in the end, although it is down when the others step down for it', () =>
    play({ servers: 3, excused: LOST }, async (stage) => {
      const [zk1, zk2, zk3] = stage.three;
      const paths = await makeEpochs(stage);
      stage.kill(zk1, zk2, zk3);
      zk2.wipe();
      zk3.wipe();
      const young = await stage.start(zk2, zk3);
      await stage.sleep(1000);
      zk1.start();
      await stage.until('the leader makes way', () => young.role !== 'leading');
      stage.kill(zk1);
      await stage.whole(zk2, zk3);
      await stage.sleep(1000);
      zk1.start();
      await stage.until('the longer history wins', () => stage.ensemble.leader === zk1);
      for (const path of paths) expect(await stage.has(zk1, path)).toBe(true);
    }));

  test('stays out when it is Apache’s, and keeps its files, until the others restart', () =>
    playMixed({ servers: 3, apache: [1] }, async (stage) => {
      const [peer] = stage.peers;
      const [zk2, zk3] = stage.ours;
      for (let epoch = 0; epoch < 4; epoch++) {
        await stage.start();
        await stage.write(zk2!, 2);
        await stage.whole();
        stage.kill(...stage.servers);
      }
      const { log, currentEpoch } = peer!.disk;
      for (const server of stage.ours) server.wipe();
      const young = await stage.start(zk2!, zk3!);
      await stage.world.sleep(2000);
      peer!.start();
      await stage.world.sleep(5000);
      expect(peer!.isServing).toBe(false);
      expect(peer!.disk).toMatchObject({ log, currentEpoch });
      expect(young.isServing && young.epoch < currentEpoch).toBe(true);
      stage.kill(...stage.ours);
      await stage.start();
      expect(stage.leaders).toEqual([peer]);
    }));
});

const LAST_EPOCH = 2 ** 21 - 1;
/** Checkers remember what was durable before a file was edited, and what a majority had before it lost its disks. */
const EDITED = ['E1'];
const LOST = ['E4', 'Z8', 'Z9'];

/** Acknowledged txns of several epochs, on all servers. */
async function makeEpochs(stage: Stage): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let epoch = 0; epoch < 5; epoch++) {
    paths.push(...(await stage.write(await stage.start(), 3)));
    await stage.whole();
    stage.kill(...stage.servers);
  }
  await stage.start();
  return paths;
}

function damage(server: VirtualServer): void {
  repair(server, 1_000_000);
}

function repair(server: VirtualServer, acceptedEpoch: number): void {
  server.disk.poke('/data/version-2/acceptedEpoch', new TextEncoder().encode(String(acceptedEpoch)));
}

test('silent strangers at the port of a leader are limited in number, and keep no follower from it', () =>
  play({ servers: 3 }, async (stage) => {
    const leader = await stage.start();
    const [follower] = stage.servers.filter((server) => server !== leader);
    const knocks = Array.from({ length: 300 }, () => knock(stage, leader, QUORUM_PORT, new Uint8Array(0)));
    await stage.sleep(100);
    expect(knocks.filter(({ isClosed }) => !isClosed)).toHaveLength(64);
    stage.kill(follower!);
    await stage.start(follower!);
    expect(await stage.leader()).toBe(leader);
    await stage.until('they are sent away in time', () => knocks.every(({ isClosed }) => isClosed), 5000);
  }));

/** A stranger's connection. */
interface Pretence {
  readonly serverId: number;
  readonly acceptedEpoch: number;
  readonly type?: number;
  readonly port?: number;
}

interface Knock {
  isClosed: boolean;
}

const FOLLOWER_INFO = 11;
const OBSERVER_INFO = 16;
const OBSERVER_PORT = 2191;
const PROTOCOL_VERSION = 0x10000;

/** Connects to a leader's quorum port, sends FOLLOWERINFO or OBSERVERINFO, and nothing more. */
function pretendToFollow(
  stage: Stage,
  leader: VirtualServer,
  { serverId, acceptedEpoch, type = FOLLOWER_INFO, port = QUORUM_PORT }: Pretence,
): Knock {
  const info = bytesOf((list) => list.long(serverId).int(PROTOCOL_VERSION).long(0));
  return knock(
    stage,
    leader,
    port,
    bytesOf((list) => list.int(type).int(acceptedEpoch).int(0).buffer(info).int(-1)),
  );
}

function knock(stage: Stage, server: VirtualServer, port: number, bytes: Uint8Array): Knock {
  const knock = { isClosed: false };
  const onGone = (): void => {
    knock.isClosed = true;
  };
  const end = stage.world.network.connect('stranger', server.host, port, {
    onOpen: () => end.write(bytes),
    onFailed: onGone,
    onBytes() {},
    onDrain() {},
    onClosed: onGone,
  });
  return knock;
}
