/**
 * A snapshot is written while the tree changes, and the log from its zxid on is replayed over it. The snapshots of these
 * stories take long enough for a few dozen txns, and whoever has taken one loses its power and starts with it.
 */
import { acl, READ_ONLY } from '@meerkat/client';
import { CreateMode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { VirtualServer } from '../virtual-server.ts';
import { create, remove } from './requests.ts';
import { play, type Stage, type StageShape } from './stage.ts';
import { expectSameTrees } from './tree-of.ts';
import { WireClient } from './wire-client.ts';

const SHAPE: StageShape = { servers: 3, core: { snapCount: 24 }, seeds: [1, 2] };
const BALLAST = 'b'.repeat(270_000);

/**
 * Lets a follower take a snapshot during which everything of `change` is committed, then start with it.
 *
 * Before what `prepare` makes and behind it there are znodes of one slice each, so that the snapshot is written when some
 * of the changes have been made and others have not.
 */
async function changeDuringSnapshot(
  stage: Stage,
  prepare: (leader: VirtualServer) => Promise<void>,
  change: (leader: VirtualServer) => Promise<void>,
): Promise<void> {
  const leader = await stage.start();
  const follower = stage.servers.find((server) => server !== leader)!;
  const client = await stage.at(leader);
  await client.create('/count');
  for (let i = 0; i < 2; i++) await client.create(`/before-${i}`, BALLAST);
  await prepare(leader);
  for (let i = 0; i < 5; i++) await client.create(`/behind-${i}`, BALLAST);
  await stage.whole();
  let state: 'none' | 'started' | 'written' = 'none';
  let zxid = 0;
  let zxidWritten = 0;
  stage.world.watch({
    onTrace: (server, event) => {
      if (server !== follower) return;
      if (event.kind === 'snapshot-started' && state === 'none') {
        state = 'started';
        zxid = server.core?.view.lastZxid ?? 0;
        // Each slice takes as long as several txns of the others.
        server.setDiskQuality({ effectMinMs: 4, effectMaxMs: 8, syncMinMs: 0.1, syncMaxMs: 0.3 });
      }
      if (event.kind === 'snapshot-written' && state === 'started') {
        state = 'written';
        zxidWritten = server.core?.view.lastZxid ?? 0;
      }
    },
  });
  for (let i = 0; state === 'none'; i++) await client.set('/count', String(i));
  // The changes are spread over the time that the snapshot takes.
  const far = { delayMinMs: 2, delayMaxMs: 5, splitChance: 0, mergeChance: 0 };
  for (const host of ['first', 'second', `client-of-${leader.host}`]) {
    stage.world.network.slowDown(host, leader.host, far);
    stage.world.network.slowDown(leader.host, host, far);
  }
  await change(leader);
  const changed = leader.core!.view.lastZxid;
  await stage.until('the snapshot is written', () => state === 'written');
  expect(zxidWritten).toBeGreaterThanOrEqual(changed);
  follower.setDiskQuality(null);
  await stage.whole();
  await expectSameTrees(stage);
  stage.cutPower(follower);
  expect(stage.found(follower).base).toBe(zxid);
  follower.start();
  await expectSameTrees(stage);
}

describe('a snapshot that is taken while', () => {
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
      // Whoever started with the snapshot gives out the next name.
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

  test('3145: a session ends and its ephemerals are made anew has the same pzxids and children everywhere', () =>
    play(SHAPE, (stage) => {
      let first: WireClient;
      return changeDuringSnapshot(
        stage,
        async (leader) => {
          await (await stage.at(leader)).create('/members');
          first = new WireClient(stage.world, 'first', leader, { timeoutMs: 60_000 });
          await first.whenAnswered();
          await first.ask(1, create('/members/one', CreateMode.ephemeral));
          await first.ask(2, create('/members/two', CreateMode.ephemeral));
        },
        async (leader) => {
          first.sendRaw(3, OpCode.closeSession);
          await first.reply(3);
          const second = new WireClient(stage.world, 'second', leader, { timeoutMs: 60_000 });
          await second.whenAnswered();
          await second.ask(1, create('/members/one', CreateMode.ephemeral));
          await second.ask(2, create('/members/three', CreateMode.ephemeral));
          await second.ask(3, remove('/members/three'));
        },
      );
    }));

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
