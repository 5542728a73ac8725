/**
 * Four processes apply the same migrations, each of which is visible when it is applied twice or out of order, while
 * servers and links fail, processes die, and callers lose patience. In every seed, by what was committed:
 *
 * 1. each migration is applied exactly once, in order, in one txn with its note, and none of them in part;
 * 2. a call that is reported has found all of its set applied, and says how many of them it has applied itself; one that
 *    says that it has not done anything has not;
 * 3. a set is refused only when more has been applied; `appliedCount` tells how many had been at some moment of the call.
 */
import { type Children, type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { neverAborted, untilDone } from '../groups/persistence.ts';
import { type GroupWorld, inWorld } from '../groups/testing/world.ts';
import { patienceMs, seeds } from '../testing/seeds.ts';
import type { Migration } from './migration-digest.ts';
import { MigrationMismatchError, type MigrationReport, Migrations } from './migrations.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
const COUNT = 8;
const META = '/migrations/meta/m';
const SEEDS = seeds(4);

test('each migration is applied once', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

/** Two znodes each, of which the number says in which order they came to be. */
const MIGRATIONS: readonly Migration[] = Array.from({ length: COUNT }, (_, i) => [
  { kind: 'create', path: `/log/${i}-`, sequential: true },
  { kind: 'create', path: `/log/${i}b-`, sequential: true },
]);

/** A call of `apply` by a client of its own, from one zxid to another. */
interface Call {
  readonly sessions: Set<bigint>;
  readonly size: number;
  readonly from: number;
  readonly until: number;
  readonly result: MigrationReport | 'refused' | 'not-applied' | 'unknown';
}

function judge(tree: CommittedTree, calls: readonly Call[]): void {
  const notes = tree.changes.filter(({ type, path }) => type === 'created' && path.startsWith(`${META}/`));
  expect(notes).toHaveLength(COUNT);
  for (const { zxid } of notes) {
    const made = tree.changesOf('/log').filter((change) => change.zxid === zxid);
    expect(made, 'znodes in the txn of a note').toHaveLength(2);
  }
  const countAt = (zxid: number): number => tree.childrenAt(META, zxid).length;
  for (const { sessions, size, from, until, result } of calls) {
    const own = notes.filter(({ zxid }) => sessions.has(tree.entryAt(zxid)!.header.sessionId));
    const about = `a call for ${size}, from ${from} to ${until}, that has applied ${own.length}: ${JSON.stringify(result)}`;
    if (result === 'not-applied') expect(own, about).toEqual([]);
    if (result === 'refused') expect(countAt(until), about).toBeGreaterThan(size);
    if (typeof result === 'string') continue;
    expect(result.total, about).toBe(size);
    expect(countAt(until), about).toBeGreaterThanOrEqual(size);
    expect(result.applied, about).toBe(own.length);
  }
}

async function applyOnce(world: GroupWorld, client: Client, size: number, signal: AbortSignal): Promise<Call> {
  const { random } = world.world;
  const sessions = new Set<bigint>();
  const note = (): void => {
    if (client.session !== null) sessions.add(client.session.id);
  };
  note();
  client.onState(note);
  const from = world.mark.zxid;
  const timeoutMs = random.chance(0.3) ? random.between(0, 3000) : undefined;
  const applying = new Migrations(client).apply('m', MIGRATIONS.slice(0, size), { signal, timeoutMs });
  const result = await applying.catch((error: unknown) => {
    if (error instanceof MigrationMismatchError) return 'refused' as const;
    if (!isZooKeeperError(error)) throw error;
    expect(error.code, 'what ends a call').toMatch(/^(ABORTED|TIMEOUT|CLOSED)$/);
    return error.outcome;
  });
  return { sessions, size, from, until: world.mark.zxid, result };
}

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const observer = await world.connect('observer');
  await observer.create('/log');
  let isOver = false;
  const calls: Call[] = [];
  const counts: { readonly applied: number; readonly from: number; readonly until: number }[] = [];
  const living = HOSTS.map(async (host) => {
    await world.world.sleep(random.between(0, 2000));
    for (;;) {
      const client = await world.connect(host);
      let isDead = false;
      const life = new AbortController();
      if (!isOver && random.chance(0.8)) {
        const lifeMs = random.between(5, 3000);
        void world.world.sleep(lifeMs).then(() => {
          isDead = true;
          life.abort();
          return world.kill(client);
        });
      }
      // A part at a time, as releases of a program do.
      const from = world.mark.zxid;
      const applied = await new Migrations(client).appliedCount('m').catch(() => null);
      if (applied !== null) counts.push({ applied, from, until: world.mark.zxid });
      const known = isOver ? COUNT : Math.max(random.between(1, COUNT), random.chance(0.8) ? (applied ?? 0) : 0);
      calls.push(await applyOnce(world, client, known, life.signal));
      if (!isDead) await client.close();
      if (isOver) return;
      await world.world.sleep(random.between(0, 1500));
    }
  });
  await world.storm(HOSTS, 15_000);
  await world.heal();
  isOver = true;
  await Promise.all(living);
  const last = await world.connect('last');
  expect(await new Migrations(last).apply('m', MIGRATIONS)).toMatchObject({ total: COUNT });
  const read = (): Promise<Children> => observer.children('/log', { read: 'linearizable' });
  const { children } = await untilDone(observer, neverAborted(), read);
  const expected = MIGRATIONS.flatMap((_, i) => [`${i}-`, `${i}b-`]).map(
    (name, i) => `${name}${String(i).padStart(10, '0')}`,
  );
  expect(children.toSorted()).toEqual(expected.toSorted());
  expect(await new Migrations(last).appliedCount('m')).toBe(COUNT);
  await Promise.all([observer, last].map((client) => client.close()));
  const tree = await world.committed();
  if (tree === null) return;
  judge(tree, calls);
  for (const { applied, from, until } of counts) {
    expect(applied).toBeGreaterThanOrEqual(tree.childrenAt(META, from).length);
    expect(applied).toBeLessThanOrEqual(tree.childrenAt(META, until).length);
  }
}
