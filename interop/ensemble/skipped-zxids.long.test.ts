import type { Client } from '@meerkat/client';
import { expect, onTestFailed, test } from 'vitest';
import { dumpTree, type TreeDump } from '../data-directory/tree-dump.ts';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { Ensemble, hasLogged, type Member } from './ensemble.ts';
import { connectTo } from './workload.ts';

/** A multi of one create with a null path: Apache's leader assigns a zxid and proposes nothing. */
const NULL_PATH = record()
  .int(Op.create)
  .bool(false)
  .int(-1)
  .ustring(null)
  .buffer('x')
  .acls(OPEN_ACL)
  .int(0)
  .int(-1)
  .bool(true)
  .int(-1)
  .build();

describeWith(['apache'], 'servers of ours under an Apache leader that skips zxids', () => {
  test('keep serving, are synchronized across the gap, lead with it, and restart', async () => {
    const ensemble = await Ensemble.start([
      { kind: 'meerkat' },
      { kind: 'apache' },
      { kind: 'apache' },
      { kind: 'meerkat', isObserver: true },
    ]);
    onTestFailed(() => console.log(ensemble.logs));
    try {
      // Of any two voters one is Apache's with the higher id, so Apache's leads.
      const leader = await ensemble.leader();
      const [ours, observer] = ensemble.members.filter(({ server }) => server.kind === 'meerkat') as [Member, Member];
      const away = ensemble.members.find((member) => member.server.kind === 'apache' && member !== leader)!;
      await using client = await connectTo(ours);
      const states: string[] = [];
      client.onState(({ state }) => states.push(state));
      await client.create('/before');
      await using ofObserver = await connectTo(observer);
      ofObserver.onState(({ state }) => states.push(state));
      await client.create('/seen-by-both');

      // Live, with commits.
      await away.server.kill();
      await skipZxid(leader, ours, client);
      await ofObserver.create('/through-the-observer');
      expect(states).toEqual([]);
      expect(skippedAt(observer)).toHaveLength(1);

      // During synchronization of a returning server.
      await ofObserver.close();
      await observer.server.kill();
      await skipZxid(leader, ours, client);
      await observer.server.restart();
      await using back = await connectTo(observer);
      await back.create('/back');
      expect(skippedAt(observer)).toHaveLength(2);
      expect(states).not.toContain('suspended');

      // From our leader, which has an error txn where Apache's had nothing.
      await leader.server.kill();
      await away.server.restart();
      expect(await ensemble.leader()).toBe(ours);
      await using next = await connectTo(away);
      await next.create('/in-the-next-epoch');
      await leader.server.restart();
      await expectSameTrees(ensemble, '/in-the-next-epoch');

      await Promise.all(ensemble.members.map(({ server }) => server.stop()));
      await Promise.all(ensemble.members.map(({ server }) => server.restart()));
      await using last = await connectTo(leader);
      await last.create('/after-the-restart');
      await expectSameTrees(ensemble, '/after-the-restart');
    } finally {
      await ensemble.dispose();
    }
  });

  test('form a quorum with it in the next epoch although they lack the txns after the gap', async () => {
    const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'apache' }]);
    onTestFailed(() => console.log(ensemble.logs));
    const [ours, apache] = ensemble.members as [Member, Member];
    try {
      expect(await ensemble.leader()).toBe(apache);
      const raw = await RawClient.connect(apache.server.port);
      await raw.demand(Op.create, record().ustring('/both').buffer('x').acls(OPEN_ACL).int(0).build());
      // Txns logged only by Apache's server become history in the next epoch. Without a connection to a follower it
      // would serve for only a quarter of a second.
      await ours.server.pause();
      for (const path of ['/before-the-gap', null, '/behind-the-gap']) {
        const create = record().ustring(path).buffer('x').acls(OPEN_ACL).int(0).build();
        const multi = record().int(Op.create).bool(false).int(-1).raw(create).int(-1).bool(true).int(-1).build();
        raw.request(Op.multi, multi).catch(() => undefined);
      }
      while (!hasLogged(apache, '/behind-the-gap')) await new Promise((resolve) => setTimeout(resolve, 5));
      await Promise.all(ensemble.members.map(({ server }) => server.kill()));
      await Promise.all(ensemble.members.map(({ server }) => server.restart()));
      await using client = await connectTo(ours);
      for (const path of ['/both', '/before-the-gap', '/behind-the-gap'])
        expect(await client.exists(path)).not.toBeNull();
      await client.create('/next');
      await expectSameTrees(ensemble, '/next');
    } finally {
      await ensemble.dispose();
    }
  });

  test('refuse such a request of their own clients', async () => {
    const ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'apache' }, { kind: 'apache' }]);
    onTestFailed(() => console.log(ensemble.logs));
    try {
      const [ours, other] = ensemble.members as [Member, Member];
      const raw = await RawClient.connect(ours.server.port);
      expect((await raw.request(Op.multi, NULL_PATH)).error).toBe(-5);
      await raw.close();
      await using client = await connectTo(other);
      await client.create('/behind');
      expect(skippedAt(ours)).toEqual([]);
    } finally {
      await ensemble.dispose();
    }
  });
});

/** Makes a leader skip a zxid, and writes through another server until that one has noticed. */
async function skipZxid(leader: Member, noticed: Member, client: Client): Promise<void> {
  const before = skippedAt(noticed).length;
  const raw = await RawClient.connect(leader.server.port);
  // Apache's server never answers it.
  raw.request(Op.multi, NULL_PATH).catch(() => undefined);
  const deadline = Date.now() + 20_000;
  while (skippedAt(noticed).length === before) {
    if (Date.now() > deadline) throw new Error('the leader skips nothing');
    await client.create('/behind-a-gap-', '', { sequential: true });
  }
  raw.destroy();
}

function skippedAt({ server }: Member): readonly string[] {
  return server.output.split('\n').filter((line) => line.includes('has skipped'));
}

async function expectSameTrees(ensemble: Ensemble, newest: string): Promise<void> {
  const trees = await Promise.all(
    ensemble.members.map(async (member) => {
      await using client = await connectTo(member);
      await client.sync();
      return withoutConfig(await dumpTree(member.server.port));
    }),
  );
  expect(Object.keys(trees[0]!)).toContain(newest);
  for (const tree of trees) expect(tree).toEqual(trees[0]);
}

/** Each server creates this znode locally, with the time of its start. */
function withoutConfig(tree: TreeDump): TreeDump {
  return Object.fromEntries(Object.entries(tree).filter(([path]) => path !== '/zookeeper/config'));
}
