/**
 * Three processes keep the same znode alive while servers and links fail, and they die and come back. In every seed:
 *
 * 1. the znode is never deleted within its time to live after somebody has kept it;
 * 2. when everything is healed it is there, keeps its data, and is not made anew as long as one keeps it;
 * 3. when nobody keeps it any more it goes, and nothing stays.
 */
import { type Client, text, ZooKeeperError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { PersistentTtl } from './persistent-ttl.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three'];
const PATH = '/leases/printer';
/** Short enough to end while all are cut off or dead. */
const TTL_MS = 4000;
/** How often servers look for what has had its time, milliseconds. */
const CHECK_MS = 500;
const STORM_MS = 60_000;

const SEEDS = seeds(6);

test('what is kept outlives sessions, and not its keepers', { timeout: patienceMs(SEEDS.length) }, async () => {
  let renewals = 0;
  for (const seed of SEEDS) {
    const live = async (world: GroupWorld): Promise<void> => {
      renewals += await liveThrough(world);
    };
    await inWorld(seed, live, 3, { containerCheckIntervalMs: CHECK_MS });
  }
  // Otherwise nothing is shown of when it goes.
  if (SEEDS.length > 5) expect(renewals).toBeGreaterThan(0);
});

/** @returns how often the znode was gone, and made anew */
async function liveThrough(world: GroupWorld): Promise<number> {
  const random = world.world.random.fork('program');
  let isOver = false;
  const witness = new Witness(await world.connect('observer'));
  const looking = (async () => {
    while (!isOver) {
      await witness.look();
      await world.world.sleep(100);
    }
  })();
  const living = HOSTS.map(async (host) => {
    while (!isOver) {
      const client = await world.connect(host);
      const kept = new PersistentTtl(client, PATH, { ttlMs: TTL_MS, data: host });
      const endMs = world.world.nowMs + random.between(500, 8000);
      while (!isOver && world.world.nowMs < endMs) {
        await world.world.sleep(random.between(50, 1500));
        if (random.chance(0.3)) void kept.set(`${host} ${random.uint32()}`).catch(() => {});
      }
      if (random.chance(0.5)) await world.kill(client);
      else {
        await kept.close();
        await client.close();
      }
      await world.world.sleep(random.between(0, 12_000));
    }
  });
  await world.storm(HOSTS, STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all([looking, ...living]);
  expect(witness.looks).toBeGreaterThan(0);

  const client = await world.connect('last');
  const kept = new PersistentTtl(client, PATH, { ttlMs: TTL_MS, data: 'made by the last' });
  await kept.whenPresent();
  await kept.set('the last');
  const { stat } = await client.get(PATH, { read: 'linearizable' });
  await world.world.sleep(20 * TTL_MS);
  const later = await client.get(PATH, { codec: text, read: 'linearizable' });
  expect(later.data).toBe('the last');
  expect(later.stat.czxid).toBe(stat.czxid);
  expect((await client.children(PATH)).children).toEqual(['touch']);
  await kept.close();
  await world.world.sleep(5 * TTL_MS);
  expect(await client.exists(PATH, { read: 'linearizable' })).toBeNull();
  await Promise.all([client.close(), witness.client.close()]);
  return witness.renewals;
}

/** Looks again and again, and knows when the znode was last kept before it went. */
class Witness {
  readonly client: Client;
  looks = 0;
  renewals = 0;
  #czxid = 0n;
  #keptMs = 0;

  constructor(client: Client) {
    this.client = client;
  }

  async look(): Promise<void> {
    try {
      // In this order: a touch that is seen first was not later than the znode that is seen then.
      const touched = await this.client.exists(`${PATH}/touch`);
      const stat = await this.client.exists(PATH);
      if (stat === null) return;
      this.looks++;
      if (stat.czxid !== this.#czxid) {
        if (this.#czxid !== 0n) {
          this.renewals++;
          expect(stat.ctime - this.#keptMs, `${PATH} was made anew, ms after it was kept`).toBeGreaterThanOrEqual(
            TTL_MS,
          );
        }
        this.#czxid = stat.czxid;
        this.#keptMs = stat.ctime;
      }
      if (touched !== null) this.#keptMs = Math.max(this.#keptMs, touched.mtime);
    } catch (error) {
      // It cannot look while it is cut off.
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }
}
