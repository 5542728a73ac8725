/**
 * The safety properties of a `Configuration`, checked against the committed history. In every seed, under any faults of
 * servers, links and replies, while writers cancel:
 *
 * 1. each update is applied once, upon the version that it was given; one of unknown outcome at most once; one of
 *    outcome 'not-applied' never; one that leaves the value unchanged returns one that was current during its call;
 * 2. a rollback publishes what was in force before, or the requested version, and fails only where that is not kept;
 * 3. each version has a copy in its transaction, and `keep` former ones stay;
 * 4. an observer sees versions that were in force, in order, and in the end the last;
 * 5. a call ends at its timeout.
 */
import { type CallOptions, type Client, isZooKeeperError, json } from '@meerkat/client';
import type { CommittedTree, ZnodeState } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedIn, untilWhole } from '../testing/aftermath.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { Configuration, type ConfigurationVersion } from './configuration.ts';

const WRITERS = 3;
const STORM_MS = 6000;
const KEEP = 4;
const PATH = '/app/config';
const codec = json<Value>();

/** A value that refers to the one that it was derived from. */
interface Value {
  readonly id: string;
  readonly before: string | null;
}

type Version = ConfigurationVersion<Value>;

/** A result, and the zxids between which it is valid. */
interface Observation {
  readonly kind: 'update' | 'look' | 'rollback';
  /** The target version of a rollback. */
  readonly to?: number | undefined;
  readonly from: number;
  readonly until: number;
  /** 'not kept' for a RangeError. */
  readonly result: Version | 'not kept' | null;
}

class Checker {
  readonly ledger = new Ledger<string>();
  readonly observations: Observation[] = [];
  readonly observed: Version[][] = [];
  /** Rollbacks of outcome 'unknown'. */
  doubtfulRollbacks = 0;

  async check(tree: CommittedTree): Promise<void> {
    const states = tree.changesOf(PATH).filter(({ type }) => type !== 'children');
    const history = states.map(({ zxid }) => tree.stateAt(PATH, zxid)!);
    const values = await Promise.all(history.map(({ data }) => codec.decode(data)));
    const ids = new Set<string>();
    const rolled = values.filter(({ id }) => ids.size === ids.add(id).size);
    for (const [i, { id, before }] of values.entries()) {
      expect(history[i]!.version).toBe(i);
      if (!rolled.includes(values[i]!)) expect(before, `what ${id} was made of`).toBe(values[i - 1]?.id ?? null);
    }
    this.ledger.check([...ids]);
    const reported = new Set(
      this.observations.flatMap(({ kind, result }) => (kind === 'rollback' ? versionsOf(result) : [])),
    );
    expect(rolled.length).toBeGreaterThanOrEqual(reported.size);
    expect(rolled.length).toBeLessThanOrEqual(reported.size + this.doubtfulRollbacks);
    for (const observation of this.observations) this.#checkObservation(observation, history, values);
    for (const [i, state] of history.entries()) expectKept(tree, state, i, values);
    for (const versions of this.observed) {
      for (const { value, version } of versions) expect(value, `observed version ${version}`).toEqual(values[version]);
      const numbers = versions.map(({ version }) => version);
      expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
      expect(numbers.at(-1), 'the last that was observed').toBe(values.length - 1);
    }
  }

  #checkObservation(
    { kind, to, from, until, result }: Observation,
    history: readonly ZnodeState[],
    values: readonly Value[],
  ): void {
    const first = history.findLastIndex(({ zxid }) => zxid <= from);
    const last = history.findLastIndex(({ zxid }) => zxid <= until);
    const about = `${kind} to ${to ?? 'the one before'}, when versions ${first} to ${last} were in force`;
    if (result === 'not kept') {
      expect(to === undefined ? first < 1 : to < last - KEEP || to > first, about).toBe(true);
    } else if (result === null) expect(first, about).toBe(-1);
    else {
      expect(result.value, about).toEqual(values[result.version]);
      expect(result.version, about).toBeLessThanOrEqual(last);
      expect(result.version, about).toBeGreaterThanOrEqual(first + (kind === 'look' ? 0 : 1));
      if (kind === 'rollback') expect(result.value, about).toEqual(values[to ?? result.version - 2]);
    }
  }
}

function versionsOf(result: Observation['result']): number[] {
  return result === null || result === 'not kept' ? [] : [result.version];
}

/** Expects the copies that exist once a version is in force. */
function expectKept(tree: CommittedTree, { zxid, data }: ZnodeState, version: number, values: readonly Value[]): void {
  const names = tree.childrenAt(PATH, zxid);
  for (let i = Math.max(0, version - KEEP); i <= version; i++) {
    const copy = names.find((name) => name.startsWith(`v${String(i).padStart(10, '0')}-`));
    const state = copy === undefined ? null : tree.stateAt(`${PATH}/${copy}`, zxid);
    expect(state, `a copy of version ${i} with version ${version}`).not.toBeNull();
    expect(JSON.parse(new TextDecoder().decode(state!.data!))).toEqual(values[i]);
    if (i === version) expect(state!.data).toEqual(data);
  }
}

simulate('an update of a configuration is applied once', 3, async (fleet) => {
  const { world } = fleet;
  const checker = new Checker();
  await untilWhole(fleet);
  const sessionTimeoutMs = world.random.pick([1000, 30_000]);
  const clients = await fleet.connectAll(WRITERS, { sessionTimeoutMs });
  fleet.unleashBreaks(STORM_MS, world.random.pick([100, 1000]));
  fleet.unleash(STORM_MS, WRITERS);
  const ending = new AbortController();
  const observing = clients.map((client) => observe(client, checker, ending.signal));
  const endMs = world.nowMs + STORM_MS;
  const writing = clients.map((client, i) => write(fleet, client, i, checker, endMs));
  await Promise.all([world.sleep(STORM_MS), ...writing]);
  fleet.heal();
  const last = await makeConfiguration(clients[0]!).get({ read: 'linearizable' });
  const isThere = (): boolean => checker.observed.every((versions) => versions.at(-1)?.version === last?.version);
  await world.until(isThere, 30_000);
  ending.abort();
  await Promise.all(observing);
  const tree = await committedIn(fleet);
  if (tree !== null) await checker.check(tree);
});

function makeConfiguration(client: Client): Configuration<Value> {
  return new Configuration(client, PATH, { codec, keep: KEEP });
}

async function observe(client: Client, checker: Checker, signal: AbortSignal): Promise<void> {
  const versions: Version[] = [];
  checker.observed.push(versions);
  for await (const { data, stat } of makeConfiguration(client).observe({ signal })) {
    if (data !== null && data !== undefined && stat !== null) versions.push({ value: data, version: stat.version });
  }
}

async function write(fleet: Fleet, client: Client, writer: number, checker: Checker, endMs: number): Promise<void> {
  const { world } = fleet;
  const { random } = world;
  const configuration = makeConfiguration(client);
  for (let i = 0; world.nowMs < endMs; i++) {
    const id = `${writer}.${i}`;
    const options: CallOptions = random.chance(0.4) ? { timeoutMs: random.between(0, 400) } : {};
    const calledMs = world.nowMs;
    const from = fleet.committedZxid;
    const kind = random.pick(['update', 'update', 'look', 'rollback'] as const);
    const to = kind === 'rollback' && random.chance(0.5) ? random.between(0, 20) : undefined;
    const result = await call(configuration, kind, id, { ...options, to }, checker);
    if (!(result instanceof Error)) checker.observations.push({ kind, to, from, until: fleet.committedZxid, result });
    expect(world.nowMs - calledMs, `${kind} within its time`).toBeLessThanOrEqual((options.timeoutMs ?? 1e9) + 1);
    await world.sleep(random.between(0, 60));
  }
}

async function call(
  configuration: Configuration<Value>,
  kind: Observation['kind'],
  id: string,
  options: CallOptions & { readonly to: number | undefined },
  checker: Checker,
): Promise<Observation['result'] | Error> {
  if (kind === 'update') {
    const update = configuration.update((value) => ({ id, before: value?.id ?? null }), options);
    return checker.ledger.note(id, update);
  }
  try {
    return await (kind === 'look' ? configuration.update(() => undefined, options) : configuration.rollback(options));
  } catch (error) {
    if (error instanceof RangeError) return 'not kept';
    if (!isZooKeeperError(error)) throw error;
    if (kind === 'rollback' && error.outcome === 'unknown') checker.doubtfulRollbacks++;
    return error;
  }
}
