/**
 * Four processes apply the same sets of migrations, which show whether one is applied twice or out of order, under
 * faults of servers and links, while processes die, callers cancel, and znodes of lock holders are deleted. In every
 * seed, checked against the committed history:
 *
 * 1. each migration is applied exactly once, in order, in one txn with its note, and none of them partially;
 * 2. a call that succeeds has found all of its set applied, and returns how many of them it has applied itself; one of
 *    outcome 'not-applied' has applied none;
 * 3. a set is refused only when more has been applied; `appliedCount` returns how many were at some moment of the call.
 */
import { type Children, type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { Attempt } from '../kernel/attempt.ts';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import type { Migration } from './migration-digest.ts';
import { MigrationMismatchError, type MigrationReport, Migrations } from './migrations.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
/** New ones are started so often that there is something to apply as long as there are faults. */
const SETS = Array.from({ length: 10 }, (_, i) => `set-${i}`);
const SET_MS = 1500;
/** Of each set. */
const COUNT = 8;

simulate('each migration is applied once', 4, liveThrough);

/** Two znodes each, whose number shows in which order they were created. */
function migrationsOf(set: string): readonly Migration[] {
  return Array.from({ length: COUNT }, (_, i) => [
    { kind: 'create', path: `/${set}/${i}-`, sequential: true },
    { kind: 'create', path: `/${set}/${i}b-`, sequential: true },
  ]);
}

const metaOf = (set: string): string => `/migrations/meta/${set}`;

/** A call of `apply` by a client of its own, from one zxid to another. */
interface Call {
  readonly set: string;
  readonly sessions: Set<bigint>;
  readonly size: number;
  readonly from: number;
  readonly until: number;
  readonly result: MigrationReport | 'refused' | 'not-applied' | 'unknown';
}

function check(tree: CommittedTree, set: string, calls: readonly Call[]): void {
  const meta = metaOf(set);
  const notes = tree.changes.filter(({ type, path }) => type === 'created' && path.startsWith(`${meta}/`));
  expect(notes).toHaveLength(COUNT);
  for (const { zxid } of notes) {
    const made = tree.changesOf(`/${set}`).filter((change) => change.zxid === zxid);
    expect(made, 'znodes in the txn of a note').toHaveLength(2);
  }
  const countAt = (zxid: number): number => tree.childrenAt(meta, zxid).length;
  for (const { sessions, size, from, until, result } of calls) {
    const own = notes.filter(({ zxid }) => sessions.has(tree.entryAt(zxid)!.header.sessionId));
    const about = `a call for ${size} of ${set}, from ${from} to ${until}, that has applied ${own.length}: ${JSON.stringify(result)}`;
    if (result === 'not-applied') expect(own, about).toEqual([]);
    if (result === 'refused') expect(countAt(until), about).toBeGreaterThan(size);
    if (typeof result === 'string') continue;
    expect(result.total, about).toBe(size);
    expect(countAt(until), about).toBeGreaterThanOrEqual(size);
    expect(result.applied, about).toBe(own.length);
  }
}

async function applyOnce(fleet: Fleet, client: Client, set: string, size: number, signal: AbortSignal): Promise<Call> {
  const { random } = fleet.world;
  const sessions = new Set<bigint>();
  const note = (): void => {
    if (client.session !== null) sessions.add(client.session.id);
  };
  note();
  client.onState(note);
  const from = fleet.committedZxid;
  const timeoutMs = random.chance(0.3) ? random.between(0, 3000) : undefined;
  const applying = new Migrations(client).apply(set, migrationsOf(set).slice(0, size), { signal, timeoutMs });
  const result = await applying.catch((error: unknown) => {
    if (error instanceof MigrationMismatchError) return 'refused' as const;
    if (!isZooKeeperError(error)) throw error;
    expect(error.code, 'what ends a call').toMatch(/^(ABORTED|TIMEOUT|CLOSED)$/);
    return error.outcome;
  });
  return { set, sessions, size, from, until: fleet.committedZxid, result };
}

/** Deletes a holder's znode, as an operator might who considers it stale. */
async function interfere(fleet: Fleet, observer: Client, set: string): Promise<void> {
  const leases = `/migrations/locks/${set}/leases`;
  try {
    const { children } = await observer.children(leases, { timeoutMs: 500 });
    if (children.length > 0)
      await observer.delete(`${leases}/${fleet.world.random.pick(children)}`, { timeoutMs: 500 });
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
  }
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const observer = await fleet.connectAs('observer');
  for (const set of SETS) await observer.create(`/${set}`);
  let isOver = false;
  let begun = 1;
  const calls: Call[] = [];
  const counts: { readonly set: string; readonly applied: number; readonly from: number; readonly until: number }[] =
    [];
  const beginning = (async () => {
    for (; begun < SETS.length; begun++) {
      for (let i = 0; i < 10; i++) {
        await fleet.world.sleep(SET_MS / 10);
        await interfere(fleet, observer, SETS[begun - 1]!);
      }
    }
  })();
  const living = HOSTS.map(async (host) => {
    await fleet.world.sleep(random.between(0, 500));
    while (!isOver) {
      const client = await fleet.connectAs(host);
      let isDead = false;
      const life = new AbortController();
      if (random.chance(0.6)) {
        const lifeMs = random.between(5, 3000);
        void fleet.world.sleep(lifeMs).then(() => {
          isDead = true;
          life.abort();
          return fleet.kill(client);
        });
      }
      const set = random.chance(0.2) ? random.pick(SETS.slice(0, begun)) : SETS[begun - 1]!;
      // Part by part, as releases of a program do.
      const from = fleet.committedZxid;
      const applied = await new Migrations(client).appliedCount(set).catch(() => null);
      if (applied !== null) counts.push({ set, applied, from, until: fleet.committedZxid });
      const known = Math.max(random.between(1, COUNT), random.chance(0.8) ? (applied ?? 0) : 0);
      calls.push(await applyOnce(fleet, client, set, known, life.signal));
      if (!isDead) await client.close();
      await fleet.world.sleep(random.between(0, 300));
    }
  });
  await Promise.all([fleet.storm(HOSTS, 15_000), beginning]);
  await fleet.recover();
  isOver = true;
  await Promise.all(living);
  const last = await fleet.connectAs('last');
  for (const set of SETS) {
    expect(await new Migrations(last).apply(set, migrationsOf(set))).toMatchObject({ total: COUNT });
    const read = (): Promise<Children> => observer.children(`/${set}`, { read: 'linearizable' });
    const { children } = await new Attempt(
      observer,
      {},
      { operation: 'observe', path: null },
      { awaitsQuorum: true },
    ).through(read);
    const names = migrationsOf(set).flatMap((_, i) => [`${i}-`, `${i}b-`]);
    expect(children.toSorted()).toEqual(names.map((name, i) => `${name}${String(i).padStart(10, '0')}`).toSorted());
    expect(await new Migrations(last).appliedCount(set)).toBe(COUNT);
  }
  await Promise.all([observer, last].map((client) => client.close()));
  const tree = await fleet.committedTree();
  if (tree === null) return;
  for (const set of SETS) {
    check(
      tree,
      set,
      calls.filter((call) => call.set === set),
    );
  }
  for (const { set, applied, from, until } of counts) {
    expect(applied).toBeGreaterThanOrEqual(tree.childrenAt(metaOf(set), from).length);
    expect(applied).toBeLessThanOrEqual(tree.childrenAt(metaOf(set), until).length);
  }
}
