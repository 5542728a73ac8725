/**
 * The safety property of counters in decimal digits, together with programs that count as kazoo does: a get, and a set
 * at its version. In every seed:
 *
 * 1. each addition that succeeds counts once, one of unknown outcome at most once, one of outcome 'not-applied' never:
 *    amounts are such that the sum shows which of them it contains;
 * 2. the znode always holds what kazoo reads: the sum before and one amount;
 * 3. without a limit an addition fails only with its session, and its outcome is unknown then;
 * 4. nothing is left of the counters.
 */
import { type CallOptions, type Client, isZooKeeperError, text, ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { expectEmpty, historyOf, untilWhole } from '../testing/aftermath.ts';
import { runFleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { Counter, FloatCounter } from './counters.ts';

const STORM_MS = 8000;
const PATH = '/app/count';

/** A kind of counter, and amounts for it such that no two sets have the same sum. */
interface Kind<T extends bigint | number> {
  readonly initial: T;
  readonly open: (client: Client, lock: Mutex | undefined) => Adding<T>;
  /** Of the addition with that number. */
  readonly amount: (number: number) => T;
  /** As parsed by Python's `int` or `float`. */
  readonly parse: (written: string) => T;
  readonly format: (value: T) => string;
}

interface Adding<T> extends AsyncDisposable {
  add(amount: T, options?: CallOptions): Promise<{ readonly before: T; readonly after: T }>;
  get(options?: { readonly read: 'linearizable' }): Promise<T>;
}

const initial = 10n ** 20n;
const integers: Kind<bigint> = {
  initial,
  open: (client, lock) => new Counter(client, PATH, { initial, lock, attemptsBeforeLock: 2 }),
  // Far beyond 64 bits, up and down.
  amount: (number) => 4n ** BigInt(number) * (number % 2 === 0 ? 1n : -1n),
  parse(written) {
    expect(written).toMatch(/^-?(0|[1-9]\d*)$/);
    return BigInt(written);
  },
  format: String,
};

const floats: Kind<number> = {
  initial: 0.5,
  open: (client, lock) => new FloatCounter(client, PATH, { initial: 0.5, lock, attemptsBeforeLock: 2 }),
  // Sixteenths below 2^32, so that no sum is rounded. A step shows the addition, though a sum does not show all of
  // them.
  amount: (number) => ((number + 1) / 16) * (number % 3 === 0 ? -1 : 1),
  parse(written) {
    expect(written).toMatch(/^-?\d+(\.\d+(e[+-]?\d+)?|e[+-]?\d+)$/);
    return Number(written);
  },
  format: (value) => (Number.isInteger(value) ? value.toFixed(1) : `${value}`),
};

test.each(seeds(2))(
  'each addition to a counter counts once, seed %i',
  (seed) => count(seed, integers),
  testTimeoutMs(1),
);
test.each(seeds(2))('each addition to a sum counts once, seed %i', (seed) => count(seed, floats), testTimeoutMs(1));

async function count<T extends bigint | number>(seed: number, kind: Kind<T>): Promise<void> {
  await runFleet(seed, async (fleet) => {
    const { world } = fleet;
    const ledger = new Ledger<number>();
    let sessionsLost = 0;
    let issued = 0;
    await untilWhole(fleet);
    const sessionTimeoutMs = world.random.pick([1000, 30_000]);
    const clients = await fleet.connectAll(4, { sessionTimeoutMs });
    for (const client of clients) client.onState(({ state }) => (sessionsLost += state === 'lost' ? 1 : 0));
    fleet.unleashBreaks(STORM_MS, world.random.pick([100, 1000]));
    fleet.unleash(STORM_MS, clients.length);
    const [stranger, ...others] = clients as [Client, ...Client[]];
    const endMs = world.nowMs + STORM_MS;
    const counters = others.map((client, i) =>
      kind.open(client, i === 0 ? undefined : new Mutex(client, '/locks/count')),
    );

    const counting = counters.map(async (counter) => {
      while (world.nowMs < endMs) {
        const number = issued++;
        const amount = kind.amount(number);
        const lostBefore = sessionsLost;
        const options = world.random.chance(0.2) ? { timeoutMs: world.random.between(0, 200) } : {};
        const result = await ledger.note(number, counter.add(amount, options));
        if (!(result instanceof ZooKeeperError)) expect(result.after).toBe(plus(result.before, amount));
        else if (options.timeoutMs === undefined) {
          expect(result.outcome, `${result}`).toBe('unknown');
          expect(sessionsLost, `sessions lost, at ${result}`).toBeGreaterThan(lostBefore);
        }
        await world.sleep(world.random.between(0, 60));
      }
    });
    const strange = (async () => {
      while (world.nowMs < endMs) {
        const number = issued++;
        await ledger.note(number, addAsKazoo(stranger, kind, kind.amount(number)));
        await world.sleep(world.random.between(0, 100));
      }
    })();
    await Promise.all([world.sleep(STORM_MS), ...counting, strange]);
    fleet.heal();
    const last = await counters[0]!.get({ read: 'linearizable' });
    await Promise.all(counters.map((counter) => counter[Symbol.asyncDispose]()));

    const history = await historyOf(fleet, PATH);
    if (history !== null) {
      const numbers = new Map(Array.from({ length: issued }, (_, number) => [kind.amount(number), number]));
      const sums = history.map(({ data }) => kind.parse(new TextDecoder().decode(data!)));
      expect(last).toBe(sums.at(-1));
      const steps = sums.map((sum, i) => plus(sum, -(sums[i - 1] ?? kind.initial)));
      ledger.check(steps.map((step) => numbers.get(step) ?? Number.NaN));
    }
    await expectEmpty(fleet, [`${PATH}.witnesses`, '/locks/count']);
  });
}

function plus<T extends bigint | number>(a: T, b: number | bigint): T {
  return (typeof a === 'bigint' ? a + BigInt(b) : Number(a) + Number(b)) as T;
}

/** Adds like kazoo 2.8.0: reads, and sets at that version; it creates the znode with the initial value. */
async function addAsKazoo<T extends bigint | number>(client: Client, kind: Kind<T>, amount: T): Promise<boolean> {
  const found = await client.get(PATH, { codec: text }).catch((error: unknown) => {
    if (isZooKeeperError(error)) return null;
    throw error;
  });
  if (found === null) return false;
  const sum = plus(kind.parse(found.data), amount);
  await client.set(PATH, kind.format(sum), { version: found.stat.version });
  return true;
}
