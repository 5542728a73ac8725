/**
 * The safety properties of shared values and counts. In every seed, under any faults of servers, links and sessions:
 *
 * 1. a `trySet` that succeeds has written upon the version that it was given, one that returns false has written
 *    nothing, one of unknown outcome at most once: of those with the same version one succeeds;
 * 2. a `set` that succeeds has written its value, one of outcome 'not-applied' has not; the first version is the seed;
 * 3. values that are read and observed were committed at that version; versions never decrease, and an observation ends
 *    at the last one;
 * 4. without a limit all of them survive lost connections and sessions, and only a `trySet` may have an unknown
 *    outcome; with one they end in time.
 */
import { type Client, type Codec, text, ZooKeeperError } from '@meerkat/client';
import type { ZnodeState } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { historyOf, untilWhole } from '../testing/aftermath.ts';
import { type Fleet, runFleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { int32 } from './numbers.ts';
import { SharedCount, SharedValue, type VersionedValue } from './shared-value.ts';

const STORM_MS = 8000;
const PATH = '/app/shared';

/** What is shared, with unique values. */
interface Kind<T> {
  readonly seed: T;
  readonly codec: Codec<T>;
  readonly open: (client: Client) => SharedValue<T>;
  readonly value: (number: number) => T;
}

const words: Kind<string> = {
  seed: 'seed',
  codec: text,
  open: (client) => new SharedValue(client, PATH, { seed: 'seed', codec: text }),
  value: (number) => `value ${number}`,
};

const numbers: Kind<number> = {
  seed: -7,
  codec: int32,
  open: (client) => new SharedCount(client, PATH, -7),
  value: (number) => (number % 2 === 0 ? number : -1000 - number),
};

/** The results that the clients got. */
class Notes<T> {
  readonly tries = new Ledger<T>();
  readonly sets = new Ledger<T>();
  /** The version that each `trySet` was to write upon. */
  readonly expected = new Map<T, number>();
  readonly seen: VersionedValue<T>[] = [];
}

test.each(seeds(2))('no update of a shared value is lost, seed %i', (seed) => share(seed, words), testTimeoutMs(1));
test.each(seeds(2))('no update of a shared count is lost, seed %i', (seed) => share(seed, numbers), testTimeoutMs(1));

async function share<T>(seed: number, kind: Kind<T>): Promise<void> {
  await runFleet(seed, async (fleet) => {
    const { world } = fleet;
    const notes = new Notes<T>();
    let issued = 0;
    await untilWhole(fleet);
    const sessionTimeoutMs = world.random.pick([1000, 30_000]);
    const clients = await fleet.connectAll(4, { sessionTimeoutMs });
    fleet.unleashBreaks(STORM_MS, world.random.pick([100, 1000]));
    fleet.unleash(STORM_MS, clients.length);
    const endMs = world.nowMs + STORM_MS;
    // In half of the seeds, a value is set only after a read.
    const blind = world.random.pick([0, 0.2]);
    const working = clients.map(async (client) => {
      const shared = kind.open(client);
      while (world.nowMs < endMs) {
        await work(fleet, shared, kind.value(issued++), blind, notes);
        await world.sleep(world.random.between(0, 60));
      }
    });
    const observed = clients.slice(0, 2).map((client) => observe(kind.open(client)));
    await Promise.all([world.sleep(STORM_MS), ...working]);
    fleet.heal();
    const shared = kind.open(clients[0]!);
    const last = await shared.get({ read: 'linearizable' });
    notes.seen.push(last);
    for (const { seen, close } of observed) {
      expect(await world.until(() => seen.at(-1)?.version === last.version, 60_000), 'the last version is seen').toBe(
        true,
      );
      expectForward(seen);
      notes.seen.push(...seen);
      await close();
    }
    const history = await historyOf(fleet, PATH);
    if (history !== null) await check(history, kind, notes);
  });
}

/** One update, after a read or blindly. */
async function work<T>(fleet: Fleet, shared: SharedValue<T>, value: T, blind: number, notes: Notes<T>): Promise<void> {
  const { world } = fleet;
  const { random } = world;
  const options = random.chance(0.3) ? { timeoutMs: random.between(0, 200) } : {};
  const isPatient = options.timeoutMs === undefined;
  const isBlind = random.chance(blind);
  const current = await shared
    .get({ ...options, read: random.pick(['local', 'linearizable']) })
    .catch((error: unknown) => {
      if (!isPatient && error instanceof ZooKeeperError) return null;
      throw error;
    });
  if (current === null) return;
  notes.seen.push(current);
  const calledMs = world.nowMs;
  if (isBlind) {
    const result = await notes.sets.note(value, shared.set(value, options));
    if (result instanceof ZooKeeperError && isPatient) throw result;
  } else {
    notes.expected.set(value, current.version);
    const result = await notes.tries.note(value, shared.trySet(current, value, options));
    if (result instanceof ZooKeeperError && isPatient) {
      expect(result, `${result}`).toMatchObject({ code: 'BADVERSION', outcome: 'unknown' });
    }
  }
  if (options.timeoutMs !== undefined) expect(world.nowMs - calledMs).toBeLessThanOrEqual(options.timeoutMs + 1);
}

/** Everything that an observation reports. */
function observe<T>(shared: SharedValue<T>): {
  readonly seen: VersionedValue<T>[];
  readonly close: () => Promise<void>;
} {
  const observation = shared.observe();
  const seen: VersionedValue<T>[] = [];
  const observing = (async () => {
    for await (const { exists, data, stat, error } of observation) {
      if (error !== null) throw error;
      if (exists) seen.push({ value: data, version: stat.version, zxid: stat.mzxid });
      else expect(seen, 'what was seen of a znode that no client deletes').toEqual([]);
    }
  })();
  const close = async (): Promise<void> => {
    await observation.close();
    await observing;
  };
  return { seen, close };
}

function expectForward<T>(seen: readonly VersionedValue<T>[]): void {
  for (const [i, { version, zxid }] of seen.entries()) {
    if (i === 0) continue;
    expect(version).toBeGreaterThan(seen[i - 1]!.version);
    expect(zxid).toBeGreaterThan(seen[i - 1]!.zxid);
  }
}

async function check<T>(history: readonly ZnodeState[], kind: Kind<T>, notes: Notes<T>): Promise<void> {
  const { tries, sets, expected } = notes;
  const values = await Promise.all(history.map((state) => kind.codec.decode(state.data)));
  expect(history.map((state) => state.version)).toEqual(values.map((_, version) => version));
  expect(values[0]).toBe(kind.seed);
  tries.check(values.filter((value) => expected.has(value)));
  for (const value of tries.done) expect(values[expected.get(value)! + 1]).toBe(value);
  for (const value of sets.done) expect(values).toContain(value);
  for (const value of sets.undone) expect(values).not.toContain(value);
  for (const { value, version, zxid } of notes.seen) {
    expect(value).toBe(values[version]);
    expect(zxid).toBe(BigInt(history[version]!.zxid));
  }
}
