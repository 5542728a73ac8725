import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { dumpTree, type TreeDump } from '../data-directory/tree-dump.ts';
import { describeWith } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { Ensemble, type Member } from './ensemble.ts';
import { ForeignClient } from './foreign-client.ts';
import { expectWritten, startKazooWriter, startWriter, type Writer, waitForProgress } from './load.ts';
import { connectTo, writeUntilDone } from './workload.ts';

/** Timeout of sessions that must survive a restart of one server. */
const TIMEOUT_MS = 15_000;
/** Timeout of sessions that must survive a full outage, which is long when Apache's servers start on a busy machine. */
const LONG_TIMEOUT_MS = 60_000;

describeWith(['kazoo'], 'an ensemble of three that is restarted under load', () => {
  let ensemble: Ensemble;

  beforeAll(async () => {
    ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, { kind: 'meerkat' }]);
  });
  afterAll(() => ensemble?.dispose());
  beforeEach(() => {
    onTestFailed(() => console.log(ensemble.logs));
  });

  test.each(['last', 'first'] as const)(
    'server by server, the leader %s, loses no session and no acknowledged write',
    async (order) => {
      const writers = await startWriters(ensemble, `/rolling-${order}`, TIMEOUT_MS);
      await using _ = disposalOf(writers);
      for (const member of await inOrder(ensemble, order)) {
        await waitForProgress(writers);
        await member.server.stop();
        await waitForProgress(writers);
        await member.server.restart();
      }
      await waitForProgress(writers);
      await expectEverything(ensemble, writers);
    },
  );

  test('as a whole, with another configuration, loses no session and no acknowledged write', async () => {
    const writers = await startWriters(ensemble, '/whole', LONG_TIMEOUT_MS);
    await using _ = disposalOf(writers);
    await waitForProgress(writers);
    await restartAll(ensemble, { snapCount: 50, initLimit: 30, commitLogCount: 1000 });
    await waitForProgress(writers);
    await expectEverything(ensemble, writers);
  });
});

describeWith(['apache', 'kazoo', 'libzookeeperSt'], "an ensemble that migrates from Apache's server to ours", () => {
  test('and back loses no session, no watch, no ephemeral and no acknowledged write', async () => {
    const ensemble = await Ensemble.start([{ kind: 'apache' }, { kind: 'apache' }, { kind: 'apache' }]);
    onTestFailed(() => console.log(ensemble.logs));
    try {
      const writers = await startWriters(ensemble, '/upgraded', LONG_TIMEOUT_MS);
      await using _ = disposalOf(writers);
      const watcher = await startWatcher(ensemble);
      try {
        for (const [i, to] of (['meerkat', 'apache'] as const).entries()) {
          await watcher.watch('/watched', `under-${i}`);
          await waitForProgress(writers);
          await restartAll(ensemble, {}, to);
          await waitForProgress(writers);
          await using control = await connectTo(ensemble.members[i]!);
          await writeUntilDone(control, '/watched', `under-${i + 1}`);
          await watcher.hearsOfChange('/watched');
        }
      } finally {
        await watcher.kill();
      }
      await expectEverything(ensemble, writers);
    } finally {
      await ensemble.dispose();
    }
  });
});

function startWriters(ensemble: Ensemble, root: string, timeoutMs: number): Promise<readonly Writer[]> {
  const { connectString } = ensemble;
  return Promise.all([
    startWriter(connectString, `${root}-ours-1`, timeoutMs),
    startWriter(connectString, `${root}-ours-2`, timeoutMs),
    startKazooWriter(connectString, `${root}-kazoo-1`, timeoutMs),
    startKazooWriter(connectString, `${root}-kazoo-2`, timeoutMs),
  ]);
}

/** A client whose library sets its watches again automatically. */
async function startWatcher(ensemble: Ensemble): Promise<ForeignClient> {
  const servers = ensemble.members.map(({ server }) => `127.0.0.1:${server.port}`);
  await using control = await connectTo(ensemble.members[0]!);
  await control.create('/watched', 'under-0');
  return ForeignClient.start('libzookeeperSt', servers, '/watcher', { timeoutMs: LONG_TIMEOUT_MS });
}

async function inOrder(ensemble: Ensemble, order: 'first' | 'last'): Promise<readonly Member[]> {
  const leader = await ensemble.leader();
  const others = ensemble.members.filter((member) => member !== leader);
  return order === 'first' ? [leader, ...others] : [...others, leader];
}

/** Stops all servers, and restarts them after the last one is down, with these settings and this program. */
async function restartAll(
  { members }: Ensemble,
  changes: Readonly<Record<string, number>>,
  kind?: ServerKind,
): Promise<void> {
  await Promise.all(members.map(({ server }) => server.stop()));
  for (const { server } of members) server.reconfigure(changes);
  await Promise.all(members.map(({ server }) => server.restart(kind)));
}

/** Stops the writers and expects all acknowledged writes on every server, with equal trees. */
async function expectEverything(ensemble: Ensemble, writers: readonly Writer[]): Promise<void> {
  const written = await Promise.all(writers.map((writer) => writer.finish()));
  const trees = await Promise.all(ensemble.members.map(treeOf));
  for (const tree of trees) {
    for (const each of written) expectWritten(tree, each);
    expect(tree).toEqual(trees[0]);
  }
}

async function treeOf(member: Member): Promise<TreeDump> {
  await using client = await connectTo(member);
  await client.sync();
  const tree = await dumpTree(member.server.port);
  // Each Apache server creates this znode locally, with the time of its start.
  return Object.fromEntries(Object.entries(tree).filter(([path]) => path !== '/zookeeper/config'));
}

function disposalOf(writers: readonly Writer[]): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(writers.map((writer) => writer[Symbol.asyncDispose]()));
    },
  };
}
