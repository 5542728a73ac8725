/**
 * The safety properties of atomic values, with a codec, changes and locks of all kinds. In every seed:
 *
 * 1. each value was derived from the one before it, in the order in which they were committed;
 * 2. an update that succeeds was applied once, at the version and upon the value that it returns; one of unknown
 *    outcome at most once; one of outcome 'not-applied' never;
 * 3. an update that leaves the value unchanged returns one that was current between its call and its reply; so does a
 *    linearizable read;
 * 4. without a limit an update ends only with a result, or with outcome 'unknown' after session loss; with one, it ends
 *    in time;
 * 5. every acquired lock is released, and nothing is left of the writers.
 */
import { type CallOptions, isZooKeeperError, json, ZooKeeperError } from '@meerkat/client';
import type { ZnodeState } from '@meerkat/simulator';
import { expect } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { expectEmpty, historyOf, untilWhole } from '../testing/aftermath.ts';
import type { Fleet } from '../testing/fleet.ts';
import { Ledger } from '../testing/ledger.ts';
import { simulate } from '../testing/simulate.ts';
import { type AtomicUpdate, AtomicValue, type TurnLock } from './atomic-value.ts';

const WRITERS = 4;
const STORM_MS = 8000;
const INITIAL: Link = { id: 'none', before: '', length: 0 };
const codec = json<Link>();

/** A value that refers to the one that it was derived from. */
interface Link {
  readonly id: string;
  readonly before: string;
  readonly length: number;
}

/** The results that the writers got. */
interface Notes {
  readonly ledger: Ledger<string>;
  readonly updates: Map<string, AtomicUpdate<Link>>;
  /** Values that were found and left unchanged. */
  readonly seen: { readonly value: Link; readonly version: number | null }[];
  /** The length of the newest value that any client knows. */
  newest: number;
  sessionsLost: number;
  locksHeld: number;
}

simulate('each value is derived from the one before, by one update', 4, async (fleet) => {
  const { world } = fleet;
  const notes: Notes = {
    ledger: new Ledger(),
    updates: new Map(),
    seen: [],
    newest: 0,
    sessionsLost: 0,
    locksHeld: 0,
  };
  await untilWhole(fleet);
  // Short sessions are lost with replies, long ones are not.
  const sessionTimeoutMs = world.random.pick([1000, 30_000]);
  const clients = await fleet.connectAll(WRITERS, { sessionTimeoutMs });
  for (const client of clients) client.onState(({ state }) => (notes.sessionsLost += state === 'lost' ? 1 : 0));
  fleet.unleashBreaks(STORM_MS, world.random.pick([100, 1000]));
  fleet.unleash(STORM_MS, WRITERS, ['crash', 'power', 'pause', 'partition', 'isolate', 'slow', 'flap', 'restart-all']);
  const endMs = world.nowMs + STORM_MS;
  const values = clients.map((client, i) => {
    const lock = [undefined, new Mutex(client, '/locks/v'), makeLock(notes)][i % 3];
    return new AtomicValue(client, '/app/v', { codec, initial: INITIAL, lock, attemptsBeforeLock: 1 + (i % 2) });
  });
  // Two at a time through each object: they wait for each other.
  const writing = [...values, ...values].map((value, i) => write(fleet, value, `${i}`, notes, endMs));
  await Promise.all([world.sleep(STORM_MS), ...writing]);
  fleet.heal();
  const last = await values[0]!.get({ read: 'linearizable' });
  expect(last.length).toBeGreaterThanOrEqual(notes.newest);
  await Promise.all(values.map((value) => value.close()));
  const history = await historyOf(fleet, '/app/v');
  if (history !== null) await check(history, notes);
  expect(notes.locksHeld, 'locks that are held').toBe(0);
  await expectEmpty(fleet, ['/app/v.witnesses', '/locks/v']);
});

async function write(
  fleet: Fleet,
  value: AtomicValue<Link>,
  writer: string,
  notes: Notes,
  endMs: number,
): Promise<void> {
  const { world } = fleet;
  const { random } = world;
  for (let i = 0; world.nowMs < endMs; i++) {
    const options: CallOptions = random.chance(0.3) ? { timeoutMs: random.between(0, 300) } : {};
    const calledMs = world.nowMs;
    await attempt(value, `${writer}.${i}`, random.between(0, 9), options, notes);
    // An exchange is two calls.
    const dueMs = 2 * (options.timeoutMs ?? Number.POSITIVE_INFINITY) + 1;
    expect(world.nowMs - calledMs, 'the duration of the call').toBeLessThanOrEqual(dueMs);
    // It must not affect other users of the object.
    if (random.chance(0.02)) void value.close();
    await world.sleep(random.between(0, 60));
  }
}

/** A random operation. */
async function attempt(
  value: AtomicValue<Link>,
  id: string,
  kind: number,
  options: CallOptions,
  notes: Notes,
): Promise<void> {
  const { newest, sessionsLost } = notes;
  let wasAsked = false;
  const next = (current: Link): Link => {
    wasAsked = true;
    return { id, before: current.id, length: current.length + 1 };
  };
  const look = (found: Link, version: number | null): void => {
    expect(found.length, 'a value that was not out of date at the call').toBeGreaterThanOrEqual(newest);
    notes.seen.push({ value: found, version });
    notes.newest = Math.max(notes.newest, found.length);
  };
  try {
    if (kind === 0) {
      const { before, after, version } = await value.update(() => undefined, options);
      expect(after).toEqual(before);
      look(before, version);
    } else if (kind === 1) {
      look(await value.get({ ...options, read: 'linearizable' }), null);
    } else {
      const writing: Promise<AtomicUpdate<Link> | boolean> =
        kind === 2 ? exchange(value, id, options) : value.update(next, options);
      const result = await notes.ledger.note(id, writing);
      if (result instanceof ZooKeeperError) throw result;
      if (typeof result === 'boolean') return;
      expect(result.before.length, 'derived from a value that was not out of date').toBeGreaterThanOrEqual(newest);
      expect(result.after).toEqual(next(result.before));
      notes.updates.set(id, result);
      notes.newest = Math.max(notes.newest, result.after.length);
    }
  } catch (error) {
    if (!isZooKeeperError(error)) throw error;
    if (options.timeoutMs === undefined) {
      expect(error.outcome, `${error}`).toBe('unknown');
      expect(notes.sessionsLost, `sessions lost, at ${error}`).toBeGreaterThan(sessionsLost);
    } else if (!wasAsked && kind > 2)
      expect(error.outcome, `${error} before the change callback was called`).toBe('not-applied');
  }
}

/** Sets it to a next value if it is unchanged. */
async function exchange(value: AtomicValue<Link>, id: string, options: CallOptions): Promise<boolean> {
  const current = await value.get(options);
  return value.compareAndSet(current, { id, before: current.id, length: current.length + 1 }, options);
}

/** A client-local lock: one holder at a time in this process. */
function makeLock(notes: Notes): TurnLock {
  let last: Promise<void> = Promise.resolve();
  return {
    async acquire() {
      const before = last;
      let release = (): void => {};
      last = new Promise((resolve) => {
        release = resolve;
      });
      await before;
      notes.locksHeld++;
      return {
        async [Symbol.asyncDispose]() {
          notes.locksHeld--;
          release();
        },
      };
    },
  };
}

async function check(history: readonly ZnodeState[], { ledger, updates, seen }: Notes): Promise<void> {
  const links = await Promise.all(history.map((state) => codec.decode(state.data)));
  for (const [i, link] of links.entries()) {
    const before = links[i - 1] ?? INITIAL;
    expect([link.before, link.length, history[i]!.version]).toEqual([before.id, before.length + 1, i]);
  }
  ledger.check(links.map(({ id }) => id));
  for (const [id, { before, version }] of updates) {
    expect(links[version!]?.id, `version ${version}`).toBe(id);
    expect(before).toEqual(links[version! - 1] ?? INITIAL);
  }
  for (const { value, version } of seen) {
    expect(value).toEqual(links[value.length - 1] ?? INITIAL);
    if (version !== null) expect(version).toBe(value.length - 1);
  }
}
