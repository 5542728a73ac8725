/** Sessions with so many ephemerals that a closeSession txn with the full list exceeds the size limit of txns. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { dumpTree, type TreeDump } from '../data-directory/tree-dump.ts';
import { connectCrowd, countChildren, createRequest } from '../harness/crowd.ts';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { Ensemble, type Member, type Place, THREADED, wipe } from './ensemble.ts';
import { connectTo, writeUntilDone } from './workload.ts';

const apache: Place = { kind: 'apache' };
const meerkat: Place = { kind: 'meerkat' };
/** Together more than a txn may have. */
const CROWD = { count: 1300, pathBytes: 2300, timeoutMs: 60_000 };
const LIMITS = { timeout: 300_000 };

describe('three servers of ours, one with an I/O thread', () => {
  const test = testOf([meerkat, THREADED, meerkat]);

  test('continue when a session with 1,300 long ephemerals ends, and restart', LIMITS, async (ensemble) => {
    const leader = await ensemble.leader();
    const follower = ensemble.members.find((member) => member !== leader)!;
    await using client = await connectTo(leader);
    const epoch = await epochOf(leader);
    for (const [i, at] of [leader, follower].entries()) {
      await client.create(`/crowd-${i}`);
      const crowd = await connectCrowd(at.server.port, `/crowd-${i}`, CROWD);
      await crowd.demand(Op.closeSession);
      await client.create(`/after-${i}`);
    }
    // Another such client dies without closing its session.
    await client.create('/crowd-2');
    const dead = await connectCrowd(follower.server.port, '/crowd-2', { ...CROWD, timeoutMs: 10_000 });
    dead.destroy();
    while ((await client.children('/crowd-2')).children.length > 0) await pause();
    expect(await epochOf(leader)).toBe(epoch);
    await client.create('/after-2');

    for (const { server } of ensemble.members) await server.kill();
    await Promise.all(ensemble.members.map(({ server }) => server.restart()));
    await expectAllToHave(ensemble, ['/after-0', '/after-1', '/after-2'], ['/crowd-0', '/crowd-1', '/crowd-2']);
    await expectSameTrees(ensemble);
  });
});

describeWith(['apache'], 'two servers of ours and one of Apache', () => {
  const test = testOf([apache, meerkat, meerkat]);

  test('continue when such a session ends under our leader, with equal trees', LIMITS, async (ensemble) => {
    const leader = await ensemble.leaderOfKind('meerkat');
    const [foreign] = ensemble.members;
    await using client = await connectTo(leader);
    await client.create('/crowd');
    const epoch = await epochOf(leader);
    const crowd = await connectCrowd(foreign!.server.port, '/crowd', CROWD);
    await crowd.demand(Op.closeSession);
    await client.create('/after');
    await expectAllToHave(ensemble, ['/after'], ['/crowd']);
    await expectSameTrees(ensemble);
    expect(await epochOf(leader)).toBe(epoch);
    // It can read the entry in its log.
    await foreign!.server.restart();
    await expectAllToHave(ensemble, ['/after'], ['/crowd']);
  });
});

describeWith(['apache'], 'one server of Apache and two of ours', () => {
  // With equal data the highest id leads.
  const test = testOf([meerkat, meerkat, apache]);

  test('continue when such a session ends under an Apache leader, also without it', LIMITS, async (ensemble) => {
    const leader = await ensemble.leaderOfKind('apache');
    const [first, second] = ensemble.members as [Member, Member];
    await using client = await connectTo(first);
    await client.create('/crowd');
    const epoch = await epochOf(leader);
    const crowd = await connectCrowd(first.server.port, '/crowd', CROWD);
    await crowd.demand(Op.closeSession);
    await client.create('/after');
    await expectAllToHave(ensemble, ['/after'], ['/crowd']);
    expect(await epochOf(leader)).toBe(epoch);

    // Apache's server cannot reopen its own log ("Unreasonable length"). Ours do, and continue without it.
    for (const { server } of ensemble.members) await server.kill();
    await Promise.all([first, second].map(({ server }) => server.restart()));
    await using again = await connectTo(first);
    await writeUntilDone(again, '/after', 'without Apache');
    wipe(leader);
    await leader.server.restart();
    await expectAllToHave(ensemble, ['/after'], ['/crowd']);
    await again.create('/last');
    await expectAllToHave(ensemble, ['/last'], ['/crowd']);
    await expectSameTrees(ensemble);
  });
});

describeWith(['apache'], 'one server of ours and two of Apache', () => {
  const test = testOf([apache, meerkat, apache]);

  test('let an Apache follower rejoin that has missed the end of such a session', LIMITS, async (ensemble) => {
    const leader = await ensemble.leaderOfKind('apache');
    const ours = ensemble.members.find(({ server }) => server.kind === 'meerkat')!;
    const late = ensemble.members.find((member) => member !== leader && member !== ours)!;
    await using client = await connectTo(ours);
    await client.create('/crowd');
    const crowd = await connectCrowd(ours.server.port, '/crowd', CROWD);
    await client.sync();
    await late.server.kill();
    await crowd.demand(Op.closeSession);
    await client.create('/after');
    // Only a snapshot gets it past a txn that it refuses.
    await leader.server.kill();
    await late.server.restart();
    await writeUntilDone(client, '/after', 'with the one that was late');
    for (const { server } of [ours, late]) {
      const reader = await RawClient.connect(server.port);
      await reader.demand(Op.sync, record().ustring('/').build());
      await reader.demand(Op.exists, record().ustring('/after').bool(false).build());
      expect(await countChildren(reader, '/crowd')).toBe(0);
      await reader.close();
    }
    await expect.poll(() => ours.server.output).toContain('is sent a snapshot');
  });
});

type EnsembleTest = (ensemble: Ensemble) => Promise<void>;

/** Tests that share an ensemble. */
function testOf(places: readonly Place[]): (title: string, limits: { timeout: number }, body: EnsembleTest) => void {
  let ensemble: Ensemble;
  beforeAll(async () => {
    ensemble = await Ensemble.start(places);
  });
  afterAll(() => ensemble?.dispose());
  beforeEach(() => {
    onTestFailed(() => console.log(ensemble.logs));
  });
  return (title, limits, body) => test(title, limits, () => body(ensemble));
}

/** Expects that every server serves and has these znodes, with no children below `empty`. */
async function expectAllToHave(ensemble: Ensemble, paths: readonly string[], empty: readonly string[]): Promise<void> {
  for (const { server } of ensemble.members) {
    const client = await RawClient.connect(server.port);
    await client.demand(Op.sync, record().ustring('/').build());
    for (const path of paths) await client.demand(Op.exists, record().ustring(path).bool(false).build());
    for (const path of empty) expect(await countChildren(client, path)).toBe(0);
    await client.demand(Op.create, createRequest('/written-through-', 2));
    await client.close();
  }
}

async function expectSameTrees(ensemble: Ensemble): Promise<void> {
  const trees: TreeDump[] = [];
  for (const { server } of ensemble.members) {
    const client = await RawClient.connect(server.port);
    await client.demand(Op.sync, record().ustring('/').build());
    await client.close();
    const { '/zookeeper/config': _config, ...tree } = await dumpTree(server.port);
    trees.push(tree);
  }
  for (const tree of trees) expect(tree).toEqual(trees[0]);
}

/** Epoch of the last zxid, which changes with the leader. */
async function epochOf(member: Member): Promise<bigint> {
  const client = await RawClient.connect(member.server.port);
  const { zxid } = await client.demand(Op.exists, record().ustring('/').bool(false).build());
  await client.close();
  return zxid >> 32n;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
