/**
 * The one case in which a client can be certain for longer than it should: the server that answers it is cut off from
 * the leader, does not know it yet, and cannot tell the leader that the session lives. Leases exclude this case, see
 * docs/leases.md; Apache's servers have none.
 */
import { type Client, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Queue } from '../queues/queue.ts';
import { Fleet } from '../testing/fleet.ts';
import { openStation } from '../testing/station.ts';
import { Mutex } from './mutex.ts';

/** Of all simulated servers. */
const TICK_MS = 100;
const SYNC_LIMIT = 20;

/** Acquires something exclusive. */
type Take = (client: Client, marginMs: number) => Promise<{ readonly isHeld: boolean }>;

const TAKES: Record<string, Take> = {
  'a lock': (client, marginMs) => new Mutex(client, '/lock', { marginMs }).acquire(),
  'an item of a queue': (client, marginMs) => new Queue(client, '/jobs', { codec: text, marginMs }).take(),
};

/** Whether a holder is certain at the moment when another client acquires what it holds. */
async function isSureBesideAnother(take: Take, marginMs: number, leaseTicks: number): Promise<boolean> {
  const { world, ensemble } = new Fleet(1, { ensemble: { syncLimit: SYNC_LIMIT, leaseTicks } });
  return world.run(async () => {
    await world.until(() => ensemble.isWhole, 60_000);
    const follower = ensemble.servers.find((server) => server !== ensemble.leader)!;
    const one = await openStation(world, ensemble, 'one', { servers: `${follower.host}:2181` });
    const two = await openStation(world, ensemble, 'two', { servers: `${ensemble.leader!.host}:2181` });
    await new Queue(two.client, '/jobs', { codec: text }).put('a job');
    const held = await take(one.client, marginMs);
    const next = take(two.client, 0);
    for (const { host } of ensemble.servers) {
      world.network.block(follower.host, host);
      world.network.block(host, follower.host);
    }
    // As long as the follower waits for its leader it answers pings; then the process is paused.
    await world.sleep(SYNC_LIMIT * TICK_MS - TICK_MS);
    one.pause();
    await next;
    return held.isHeld;
  });
}

const WHAT = Object.keys(TAKES);

test.each(WHAT)('with leases, a cut-off follower causes no second holder of %s, even without margin', async (what) => {
  expect(await isSureBesideAnother(TAKES[what]!, 0, 2)).toBe(false);
});

test.each(WHAT)(
  'without leases, a follower that is cut off may cause two holders of %s, unless there is a margin',
  async (what) => {
    expect(await isSureBesideAnother(TAKES[what]!, 0, 0)).toBe(true);
    expect(await isSureBesideAnother(TAKES[what]!, SYNC_LIMIT * TICK_MS, 0)).toBe(false);
  },
);
