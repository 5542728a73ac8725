/**
 * A snapshot is taken while the tree changes, and the txns from its zxid on are applied over it. The snapshots of these
 * stories take long enough for a dozen txns. Most of them are sent to a follower that lags too far behind: it first gets
 * the txns from the leader, and after a power cut reads them from its log.
 */
import { acl, READ_ONLY } from '@meerkat/client';
import { CreateMode, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { LinkQuality } from '../link-quality.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { create, remove } from './requests.ts';
import { play, type Stage, type StageShape } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';
import { WireClient } from './wire-client.ts';

/** A follower that lags by more is sent a snapshot; what is committed while it is sent is still in memory. */
const COMMIT_LOG_COUNT = 30;
const SHAPE: StageShape = { servers: 3, ensemble: { commitLogCount: COMMIT_LOG_COUNT, snapshotSizeFactor: -1 } };
const BALLAST = 'b'.repeat(270_000);

type Step = (leader: VirtualServer) => Promise<void>;

/**
 * Sends a follower a snapshot during which everything of `change` is committed, then restarts the follower with it.
 *
 * Before and after what `prepare` creates there are znodes of one slice each, so that some changes come before the
 * snapshot reaches what they change, and others after. The snapshot
 * has what `early` creates as it was before all changes.
 */
async function changeDuringSnapshot(stage: Stage, prepare: Step, change: Step, early?: Step): Promise<void> {
  const leader = await stage.start();
  const follower = stage.servers.find((server) => server !== leader)!;
  const client = await stage.at(leader);
  await stage.whole();
  stage.kill(follower);
  await early?.(leader);
  await client.create('/before', BALLAST);
  await client.create('/count');
  await Promise.all(Array.from({ length: COMMIT_LOG_COUNT }, (_, i) => client.set('/count', String(i))));
  await prepare(leader);
  for (let i = 0; i < 2; i++) await client.create(`/behind-${i}`, BALLAST);
  const { network } = stage.world;
  network.slowDown(leader.host, follower.host, { ...FAR, bytesPerMs: 9000 });
  const sent = stage.packet({ from: leader, to: follower, type: PacketType.snap });
  follower.start();
  await sent;
  // The changes are spread over the duration of the snapshot.
  for (const host of ['first', 'second', `client-of-${leader.host}`]) {
    network.slowDown(host, leader.host, FAR);
    network.slowDown(leader.host, host, FAR);
  }
  await change(leader);
  expect(follower.isServing).toBe(false);
  const again = stage.packet({ from: leader, to: follower, type: PacketType.snap });
  network.heal();
  await stage.whole();
  // One snapshot was enough, so everything was applied over the one above.
  expect(await Promise.race([again, stage.sleep(0)])).toBeUndefined();
  await expectSameTrees(stage);
  stage.cutPower(follower);
  follower.start();
  await expectSameTrees(stage);
}

const FAR: LinkQuality = { delayMinMs: 1, delayMaxMs: 3, splitChance: 0, mergeChance: 0 };

describe('a snapshot that is made while', () => {
  test('1046: sequential znodes come and go keeps the count of their parent, and no name is given twice', () =>
    play(SHAPE, async (stage) => {
      const names: string[] = [];
      const add = async (leader: VirtualServer): Promise<string> => {
        const { path } = await (await stage.at(leader)).create('/queue/n-', '', { sequential: true });
        names.push(path);
        return path;
      };
      await changeDuringSnapshot(
        stage,
        async (leader) => {
          await (await stage.at(leader)).create('/queue');
          await add(leader);
          await add(leader);
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (let i = 0; i < 4; i++) await client.delete(await add(leader));
          await client.delete(names[0]!);
          await add(leader);
        },
      );
      // A server that started with the snapshot assigns the next name.
      const [first, second] = stage.servers.filter(({ role }) => role === 'leading');
      expect(second).toBeUndefined();
      stage.kill(first!);
      const next = await stage.leader();
      await add(next);
      await add(next);
      expect(names).toEqual(names.map((_, i) => `/queue/n-${String(i).padStart(10, '0')}`));
    }));

  test('1573, 1333: a znode and its parent are deleted is replayed without either', () =>
    play(SHAPE, (stage) =>
      changeDuringSnapshot(
        stage,
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/a', '/a/b', '/a/b/c', '/d', '/d/e']) await client.create(path);
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/a/b/c', '/a/b', '/a', '/d/e', '/d']) await client.delete(path);
          await client.create('/d');
          await client.create('/d/f');
          await client.set('/d/f', 'again');
        },
      ),
    ));

  test('a znode that it has is deleted and recreated in the place of one that it does not have yet has it once', () =>
    play(SHAPE, (stage) =>
      changeDuringSnapshot(
        stage,
        async (leader) => {
          await (await stage.at(leader)).create('/late');
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/again', '/late']) await client.delete(path);
          await client.create('/again', 'anew');
        },
        async (leader) => {
          await (await stage.at(leader)).create('/again');
        },
      ),
    ));

  test('3145: a session ends and its ephemerals are recreated has the same pzxids and children everywhere', () =>
    play(SHAPE, (stage) => {
      let first: WireClient;
      return changeDuringSnapshot(
        stage,
        async (leader) => {
          first = new WireClient(stage.world, 'first', leader, { timeoutMs: 60_000 });
          await first.whenAnswered();
          await first.ask(1, create('/members/one', CreateMode.ephemeral));
          await first.ask(2, create('/members/two', CreateMode.ephemeral));
          await first.ask(3, create('/gone/for-good', CreateMode.ephemeral));
        },
        async (leader) => {
          first.sendRaw(4, OpCode.closeSession);
          await first.reply(4);
          const second = new WireClient(stage.world, 'second', leader, { timeoutMs: 60_000 });
          await second.whenAnswered();
          await second.ask(1, create('/members/one', CreateMode.ephemeral));
          await second.ask(2, create('/members/three', CreateMode.ephemeral));
          await second.ask(3, remove('/members/three'));
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/members', '/gone']) await client.create(path);
        },
      );
    }));

  test('3145: a session ends that has too many ephemerals for its txn to name has the same pzxids everywhere', () => {
    // Of five names of 60,000 bytes, each below a parent of its own, the txn names four.
    const parents = Array.from({ length: 5 }, (_, i) => `/parent-${i}`);
    const shape = { ...SHAPE, core: { frameBytesMax: 280_000, extraBytesMax: 1024 } };
    return play(shape, (stage) => {
      let first: WireClient;
      return changeDuringSnapshot(
        stage,
        async (leader) => {
          first = new WireClient(stage.world, 'first', leader, { timeoutMs: 60_000 });
          await first.whenAnswered();
          for (const [i, parent] of parents.entries()) {
            await first.ask(i + 1, create(`${parent}/${'e'.repeat(60_000)}`, CreateMode.ephemeral));
          }
        },
        async (leader) => {
          first.sendRaw(6, OpCode.closeSession);
          await first.reply(6);
          const client = await stage.at(leader);
          await client.create(`${parents[0]}/later`);
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of parents) await client.create(path);
        },
      );
    });
  });

  test('3144, 2926: sessions begin and end has each session of the others, and no other', () =>
    play(SHAPE, (stage) => {
      const clients: WireClient[] = [];
      const open = async (server: VirtualServer): Promise<void> => {
        const client = new WireClient(stage.world, `s${clients.length}`, server, { timeoutMs: 60_000 });
        clients.push(client);
        await client.whenAnswered();
        client.send(1, create(`/of-${clients.length}`, CreateMode.ephemeral));
      };
      return changeDuringSnapshot(
        stage,
        async (leader) => {
          for (let i = 0; i < 4; i++) await open(leader);
        },
        async (leader) => {
          clients[0]!.sendRaw(2, OpCode.closeSession);
          await open(leader);
          clients[1]!.sendRaw(2, OpCode.closeSession);
          clients[4]!.sendRaw(2, OpCode.closeSession);
          await open(leader);
          await clients[4]!.whenClosed();
        },
      );
    }));

  test('3306, 4846: ACLs are used for the first time and for the last has every list that a znode has', () =>
    play(SHAPE, (stage) =>
      changeDuringSnapshot(
        stage,
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/changed', '/back']) await client.create(path);
          await client.create('/gone', '', { acl: [acl.world('r'), acl.ip('10.1.0.1', 'cdrwa')] });
        },
        async (leader) => {
          const client = await stage.at(leader);
          const fresh = [acl.world('ra'), acl.ip('10.1.0.2', 'cdrwa')];
          await client.create('/new', '', { acl: fresh });
          await client.setAcl('/changed', [acl.world('cra'), acl.ip('10.1.0.3', 'cdrwa')]);
          await client.setAcl('/back', fresh);
          await client.delete('/gone');
          await client.setAcl('/back', READ_ONLY);
        },
      ),
    ));

  test('3127, 1090: multis are committed has each of them whole', () =>
    play(SHAPE, (stage) =>
      changeDuringSnapshot(
        stage,
        async (leader) => {
          const client = await stage.at(leader);
          for (const path of ['/left', '/right']) await client.create(path, '0');
        },
        async (leader) => {
          const client = await stage.at(leader);
          for (let i = 1; i <= 4; i++) {
            const parts = client.transaction().set('/left', String(i)).create(`/left/${i}`).set('/right', String(i));
            await parts.create(`/right/${i}`).delete(`/left/${i}`).commit();
          }
        },
      ),
    ));
});
