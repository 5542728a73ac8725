import { fileURLToPath } from 'node:url';
import { connect } from '@meerkat/client';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { dumpTree, type TreeDump } from '../data-directory/tree-dump.ts';
import { fill } from '../data-directory/workload.ts';
import { ConsoleProcess } from '../harness/console-process.ts';
import { describeWith, isCi, isInstalled } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { type Config, Ensemble, hasLogged, type Member, type Place, wipe } from './ensemble.ts';
import { connectTo, exercise, exerciseEphemerals, writeUntilDone } from './workload.ts';

const apache: Place = { kind: 'apache' };
const meerkat: Place = { kind: 'meerkat' };

// The last voter leads first; in an ensemble of three it is the only one of its kind.
// With snapshotSizeFactor -1 a server that lags behind is sent a snapshot instead of txns from disk.
testEnsemble('two servers of Apache and one of ours', [apache, apache, meerkat], { snapshotSizeFactor: -1 });
testEnsemble('one server of Apache and two of ours', [meerkat, meerkat, apache]);
testEnsemble('two servers of Apache and an observer of ours', [apache, apache, { ...meerkat, isObserver: true }]);
testEnsemble('two servers of ours and an observer of Apache', [meerkat, meerkat, { ...apache, isObserver: true }]);

function testEnsemble(title: string, places: readonly Place[], config: Config = {}): void {
  const kinds = places.flatMap(({ kind, isObserver }) => (isObserver === true ? [] : [kind]));
  const voters = kinds.length;
  const sendsSnapshots = 'snapshotSizeFactor' in config;
  describeWith(['apache'], title, () => {
    let ensemble: Ensemble;

    beforeAll(async () => {
      ensemble = await Ensemble.start(places, config);
      // Apache's server starts later, when others may have elected a leader.
      await ensemble.leaderOfKind(kinds.at(-1)!);
    });
    afterAll(() => ensemble?.dispose());
    beforeEach(() => {
      onTestFailed(() => console.log(ensemble.logs));
    });

    test('clients of every member see writes through the others', async () => {
      const clients = await Promise.all(ensemble.members.map(connectTo));
      for (const [i, writer] of clients.entries()) {
        const next = (i + 1) % clients.length;
        const reader = { client: clients[next]!, kind: ensemble.members[next]!.server.kind };
        await exercise(writer, reader, `/through-${i + 1}`);
        await exerciseEphemerals(ensemble.members[i]!, reader, `/ephemeral-${i + 1}`);
      }
      await Promise.all(clients.map((client) => client.close()));
    });

    test('every kind of znode, ACL, quota and failure is written through all members concurrently', async () => {
      const filled = await Promise.all(ensemble.members.map(({ id, server }) => fill(server.port, `/filled-${id}`)));
      expect(filled.flatMap(({ ephemerals }) => ephemerals)).toHaveLength(5 * places.length);
      await expectSameTrees(ensemble);
    });

    test('the death of each leader in turn is survived, and each rejoins', async () => {
      await using client = await connect(ensemble.connectString, {
        sessionTimeoutMs: 20_000,
        backOff: { minMs: 5, maxMs: 50 },
      });
      const session = client.session?.id;
      await client.create('/survivor', 'ephemeral', { mode: 'ephemeral' });
      await client.create('/deaths', '0');
      for (let death = 1; death <= places.length; death++) {
        const leader = await ensemble.leader();
        await leader.server.kill();
        // Two voters are both needed; of three the others continue without it.
        if (voters === 2) await leader.server.restart();
        await writeUntilDone(client, '/deaths', String(death));
        if (voters > 2) await leader.server.restart();
        await using back = await connectTo(leader);
        await back.sync();
        expect(new TextDecoder().decode((await back.get('/deaths')).data)).toBe(String(death));
        await back.create(`/back-${death}`, String(leader.id));
      }
      expect(client.session?.id).toBe(session);
      expect((await client.exists('/survivor'))?.ephemeralOwner).toBe(session);
    });

    if (voters === 3 && (isInstalled('kazoo') || isCi())) {
      test('the Python client works through each member, and keeps its session when the leader dies', async () => {
        const scripts = ['create_modes', 'transactions', 'watches'];
        for (const [i, script] of scripts.entries()) {
          await using client = startKazoo(script, `127.0.0.1:${ensemble.members[i]!.server.port}`);
          await client.waitFor(/done/);
          expect(await client.end()).toBe(0);
        }
        await using client = startKazoo('reconnect', ensemble.connectString);
        await client.waitFor(/ready/);
        const leader = await ensemble.leader();
        await leader.server.kill();
        client.send('go on');
        await client.waitFor(/done/);
        expect(client.output).not.toContain('lost');
        expect(await client.end()).toBe(0);
        await leader.server.restart();
      });
    }

    if (voters === 3) {
      test.each(['apache', 'meerkat'] as const)(
        'a write logged only by a dying leader (%s) is discarded by all',
        async (kind) => {
          const leader = await ensemble.leaderOfKind(kind);
          const others = ensemble.members.filter((member) => member !== leader);
          const text = `logged by one ${kind}`;
          const client = await connectTo(leader);
          // The write is sent to them, but they never read it.
          await Promise.all(others.map(({ server }) => server.pause()));
          const refused = client.create('/alone', text).catch((error: unknown) => error);
          while (!hasLogged(leader, text)) await new Promise((resolve) => setTimeout(resolve, 5));
          await Promise.all(ensemble.members.map(({ server }) => server.kill()));
          await client.close();
          expect(await refused).toBeInstanceOf(Error);

          await Promise.all(others.map(({ server }) => server.restart()));
          // Apache's leader only truncates within an epoch, so nothing may be written in the next one before.
          if (sendsSnapshots) await writeInstead(others[0]!, kind);
          await leader.server.restart();
          if (!sendsSnapshots) await writeInstead(others[0]!, kind);
          await using back = await connectTo(leader);
          await back.sync();
          expect(await back.exists('/alone')).toBeNull();
          expect(await back.exists(`/instead-of-${kind}`)).not.toBeNull();
        },
      );

      test.each(['apache', 'meerkat'] as const)(
        'a leader (%s) synchronizes a server of the other kind that has lost its data',
        async (kind) => {
          const leader = await ensemble.leaderOfKind(kind);
          const learner = ensemble.members.find(({ server }) => server.kind !== kind)!;
          await learner.server.kill();
          wipe(learner);
          // With db.autocreate=false it reports that it has no data, rather than an empty history.
          if (!sendsSnapshots) learner.server.reconfigure({ 'db.autocreate': false });
          await using client = await connectTo(leader);
          // More than leaders keep in memory.
          await Promise.all(
            Array.from({ length: 600 }, (_, i) => client.create(`/snapped-${kind}-`, `${i}`, { sequential: true })),
          );
          await learner.server.restart();
          await using back = await connectTo(learner);
          await back.sync();
          const { children } = await back.children('/');
          expect(children.filter((name) => name.startsWith(`snapped-${kind}-`))).toHaveLength(600);
        },
      );
    }

    test('finally all servers have the same znodes', async () => {
      await expectSameTrees(ensemble);
    });
  });
}

function startKazoo(script: string, servers: string): ConsoleProcess {
  const path = fileURLToPath(new URL(`../kazoo/${script}.py`, import.meta.url));
  return new ConsoleProcess('/usr/bin/python3', [path, servers]);
}

async function writeInstead(member: Member, kind: ServerKind): Promise<void> {
  await using client = await connectTo(member);
  await client.create(`/instead-of-${kind}`, 'x');
}

async function expectSameTrees(ensemble: Ensemble): Promise<void> {
  const [first, ...others] = await Promise.all(
    ensemble.members.map(async (member) => {
      await using client = await connectTo(member);
      await client.sync();
      return { member, tree: withoutConfig(await dumpTree(member.server.port)) };
    }),
  );
  expect(Object.keys(first!.tree).length).toBeGreaterThan(30);
  for (const { tree } of others) expect(tree).toEqual(first!.tree);
}

/** Each server creates this znode locally, with the time of its start. */
function withoutConfig(tree: TreeDump): TreeDump {
  return Object.fromEntries(Object.entries(tree).filter(([path]) => path !== '/zookeeper/config'));
}
