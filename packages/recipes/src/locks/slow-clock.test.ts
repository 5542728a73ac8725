/**
 * Why docs/recipes/README.md makes its first assumption: a client whose clock is slower than that of the servers.
 */
import { text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { FencedStore } from '../testing/fenced-store.ts';
import { Fleet } from '../testing/fleet.ts';
import { openStation } from '../testing/station.ts';
import { Mutex } from './mutex.ts';

const SESSION_MS = 4000;
/** In 1000 ms of the servers the client counts 800. */
const DRIFT_PER_MILLION = -200_000;
/** By this many of the client's milliseconds, a session is over before the client considers it lost. */
const DRIFT_MS = (SESSION_MS * -DRIFT_PER_MILLION) / 1_000_000;

interface Outcome {
  /** Whether the old holder is still certain when another client has acquired the lock. */
  readonly isSureBesideAnother: boolean;
  /** The data in the service after the old holder has tried to write. */
  readonly inside: string;
  /** Whether an external store accepts the write of the old holder. */
  readonly isTakenOutside: boolean;
}

/**
 * A holder with a slow clock is partitioned, another client acquires the lock and writes, and the old holder writes,
 * too.
 */
async function playWithSlowClock(marginMs: number): Promise<Outcome> {
  const { world, ensemble } = new Fleet(1, { servers: 1 });
  return world.run(async () => {
    const sessionTimeoutMs = SESSION_MS;
    const one = await openStation(world, ensemble, 'one', { sessionTimeoutMs });
    const two = await openStation(world, ensemble, 'two', { sessionTimeoutMs });
    world.clockOf('one').setDrift(DRIFT_PER_MILLION);
    await one.client.create('/fenced', '');
    const old = await new Mutex(one.client, '/lock', { marginMs }).acquire();
    await old.guarded.set('/fenced', 'the old one');
    const store = new FencedStore('/fenced', () => true);
    expect(store.writeOutside(old)).toBe(true);

    world.network.block('one', 'zk1');
    world.network.block('zk1', 'one');
    const next = await new Mutex(two.client, '/lock').acquire();
    const isSureBesideAnother = old.isHeld;
    await next.guarded.set('/fenced', 'the next one');
    expect(store.writeOutside(next)).toBe(true);
    world.network.heal();
    await expect(old.guarded.set('/fenced', 'too late')).rejects.toThrow();
    const { data } = await two.client.get('/fenced', { codec: text });
    return { isSureBesideAnother, inside: data, isTakenOutside: store.writeOutside(old) };
  });
}

test('a slow clock causes two holders of a lock, but the old one still cannot write', async () => {
  const outcome = await playWithSlowClock(0);
  expect(outcome).toEqual({ isSureBesideAnother: true, inside: 'the next one', isTakenOutside: false });
});

test('with a margin for the drift there is one holder', async () => {
  const outcome = await playWithSlowClock(DRIFT_MS);
  expect(outcome).toEqual({ isSureBesideAnother: false, inside: 'the next one', isTakenOutside: false });
});
