/**
 * The safety properties of a `PublishedSet`, checked against the committed history. In every seed, under any faults of
 * servers, links and replies, while publishers cancel:
 *
 * 1. readers and observers get all of one set and nothing of another, as it was in force at the returned zxid;
 * 2. a publication that succeeds was put in force once; one of unknown outcome at most once; one of outcome
 *    'not-applied' never;
 * 3. a set published with `onlyAfter` followed that set, and a rollback restored a kept set;
 * 4. a call ends at its timeout, and nothing of unfinished sets is left after the next publication.
 */
import { BadVersionError, type CallOptions, type Client, isZooKeeperError, text } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedIn, untilWhole } from '../testing/aftermath.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { type PublishedEntries, PublishedSet } from './published-set.ts';

const STORM_MS = 6000;
const READY = '/flags/ready';

class Checker {
  readonly ledger = new Ledger<string>();
  readonly seen: PublishedEntries<string>[] = [];
  /** The required predecessor of a set, by the set's id; null: none. */
  readonly orders: Map<string, string | null> = new Map();
  readonly rollbacks: { readonly name: string; readonly from: number; readonly until: number }[] = [];
  doubtfulRollbacks = 0;

  check(tree: CommittedTree): void {
    const moments = tree.changesOf(READY).map(({ zxid }) => zxid);
    const lines = moments.map((zxid) => linesAt(tree, zxid));
    const inForce = lines.map(([name], i) => valuesOf(tree, name!, moments[i]!));
    const isNew = lines.map(([name], i) => !(lines[i - 1] ?? []).includes(name!));
    for (const [i, values] of inForce.entries()) {
      expect(new Set(values.values()).size, `ids in set ${lines[i]![0]}`).toBe(1);
      expect(idOf(values).endsWith(` of ${values.size}`), `${lines[i]![0]} is whole when it is put in force`).toBe(
        true,
      );
      if (!isNew[i]) continue;
      const before = this.orders.get(idOf(values));
      if (before !== undefined) expect(lines[i - 1]?.[0] ?? null, 'the predecessor of the set').toBe(before);
    }
    this.ledger.check(inForce.filter((_, i) => isNew[i]).map(idOf));
    const back = moments.filter((_, i) => !isNew[i]);
    expect(back.length).toBeLessThanOrEqual(this.rollbacks.length + this.doubtfulRollbacks);
    for (const { name, from, until } of this.rollbacks) {
      const during = moments.some((zxid, i) => zxid > from && zxid <= until && lines[i]![0] === name && !isNew[i]);
      expect(during, `${name} was put in force again from ${from} to ${until}`).toBe(true);
    }
    for (const { name, zxid, entries } of this.seen) {
      expect(moments, 'when a set was put in force').toContain(Number(zxid));
      expect(linesAt(tree, Number(zxid))[0]).toBe(name);
      expect([...entries]).toEqual([...valuesOf(tree, name, Number(zxid))]);
    }
    expect(this.seen.length).toBeGreaterThan(0);
  }
}

function linesAt(tree: CommittedTree, zxid: number): string[] {
  return read(tree, READY, zxid).split('\n');
}

function valuesOf(tree: CommittedTree, name: string, zxid: number): Map<string, string> {
  const path = `/flags/${name}`;
  return new Map(tree.childrenAt(path, zxid).map((entry) => [entry, read(tree, `${path}/${entry}`, zxid)]));
}

function read(tree: CommittedTree, path: string, zxid: number): string {
  return new TextDecoder().decode(tree.stateAt(path, zxid)?.data ?? new Uint8Array());
}

function idOf(values: ReadonlyMap<string, string>): string {
  return [...values.values()][0]!;
}

simulate('no reader sees half of a published set', 3, async (fleet, seed) => {
  const { world } = fleet;
  const checker = new Checker();
  const flags = (client: Client): PublishedSet<string> =>
    new PublishedSet(client, '/flags', { codec: text, keep: 1 + (seed % 3), transactionZnodesMax: 8 });
  await untilWhole(fleet);
  const sessionTimeoutMs = world.random.pick([1000, 30_000]);
  const clients = await fleet.connectAll(3, { sessionTimeoutMs });
  const [first, second, reader] = clients.map(flags) as [PublishedSet<string>, PublishedSet<string>, never];
  fleet.unleashBreaks(STORM_MS, world.random.pick([100, 1000]));
  fleet.unleash(STORM_MS, 3);
  const endMs = world.nowMs + STORM_MS;
  const ending = new AbortController();
  const observing = observe(reader, checker, ending.signal);
  const publishing = [first, second].map((set, i) => publish(fleet, set, `${i}`, checker, endMs));
  await Promise.all([world.sleep(STORM_MS), readOften(fleet, reader, checker, endMs), ...publishing]);
  fleet.heal();
  const name = await first.publish(makeSet('last', 3));
  const history = await first.history();
  expect(history[0]).toBe(name);
  const { children } = await clients[0]!.children('/flags');
  expect(children.toSorted()).toEqual(['ready', ...history].toSorted());
  const isSeen = (): boolean => checker.seen.at(-1)?.name === name;
  expect(await world.until(isSeen, 30_000), 'the last set is observed').toBe(true);
  ending.abort();
  await observing;
  checker.ledger.done.add('last of 3');
  const tree = await committedIn(fleet);
  if (tree !== null) checker.check(tree);
});

async function publish(
  fleet: Fleet,
  flags: PublishedSet<string>,
  publisher: string,
  checker: Checker,
  endMs: number,
): Promise<void> {
  const { world } = fleet;
  const { random } = world;
  for (let n = 0; world.nowMs < endMs; n++) {
    const options: CallOptions = random.chance(0.4) ? { timeoutMs: random.between(0, 300) } : {};
    const calledMs = world.nowMs;
    const from = fleet.committedZxid;
    if (random.chance(0.2)) {
      const name = await flags.rollback(options).catch((error: unknown) => {
        if (!isZooKeeperError(error)) expect(error).toBeInstanceOf(RangeError);
        else if (error.outcome === 'unknown') checker.doubtfulRollbacks++;
      });
      if (name !== undefined) checker.rollbacks.push({ name, from, until: fleet.committedZxid });
    } else {
      // Some are published in one transaction, some in many.
      const size = random.between(1, 40);
      const id = `${publisher}.${n} of ${size}`;
      const inForce = random.chance(0.3) ? await flags.history(options).catch(() => null) : null;
      const onlyAfter = inForce === null ? undefined : (inForce[0] ?? null);
      if (onlyAfter !== undefined) checker.orders.set(id, onlyAfter);
      const result = await checker.ledger.note(
        id,
        flags.publish(makeSet(`${publisher}.${n}`, size), { ...options, onlyAfter }),
      );
      if (result instanceof BadVersionError) expect(onlyAfter, 'asked for what was in force').toBeDefined();
    }
    expect(world.nowMs - calledMs, 'a call within its time').toBeLessThanOrEqual(2 * (options.timeoutMs ?? 1e9) + 1);
    await world.sleep(random.between(0, 40));
  }
}

async function readOften(fleet: Fleet, flags: PublishedSet<string>, checker: Checker, endMs: number): Promise<void> {
  const { world } = fleet;
  while (world.nowMs < endMs) {
    const set = await flags.read({ timeoutMs: world.random.between(0, 2000) }).catch((error: unknown) => {
      if (!isZooKeeperError(error)) throw error;
    });
    if (set !== undefined && set !== null) checker.seen.push(set);
    await world.sleep(world.random.between(0, 20));
  }
}

async function observe(flags: PublishedSet<string>, checker: Checker, signal: AbortSignal): Promise<void> {
  let zxid = 0n;
  for await (const set of flags.observe({ signal })) {
    expect(set.zxid, 'what is observed follows').toBeGreaterThan(zxid);
    zxid = set.zxid;
    checker.seen.push(set);
  }
}

function makeSet(id: string, size: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: size }, (_, i) => [`entry${i}`, `${id} of ${size}`]));
}
