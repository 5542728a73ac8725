/**
 * Three processes keep the same znode alive under faults of servers and links, and they die and come back. In every
 * seed, checked against the committed history:
 *
 * 1. the znode is never deleted within its time to live after a client has touched it;
 * 2. data that one keeper sets is written in that order; once reported as written it was written, or later data was;
 *    cancelled calls end in time, and after it is closed a keeper writes nothing;
 * 3. when all faults are healed the znode exists, keeps its data, and is not recreated as long as one process keeps it;
 * 4. when it is no longer kept it is deleted, and nothing is left behind.
 */
import { type Client, isZooKeeperError, text, ZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { type Fleet, runFleet } from '../testing/fleet.ts';
import { seeds, testTimeoutMs } from '../testing/seeds.ts';
import { PersistentTtl } from './persistent-ttl.ts';

const HOSTS = ['one', 'two', 'three'];
const PATH = '/leases/printer';
/** Short enough to expire while all are partitioned or dead. */
const TTL_MS = 4000;
/** Interval at which servers look for expired TTLs, milliseconds. */
const CHECK_MS = 500;
const STORM_MS = 60_000;

const SEEDS = seeds(6);

test('a kept znode outlives sessions, but not its keepers', { timeout: testTimeoutMs(SEEDS.length) }, async () => {
  let renewals = 0;
  for (const seed of SEEDS) {
    const live = async (fleet: Fleet): Promise<void> => {
      renewals += await liveThrough(fleet);
    };
    await runFleet(seed, live, { core: { containerCheckIntervalMs: CHECK_MS } });
  }
  // Otherwise the run shows nothing about expiry.
  if (SEEDS.length > 5) expect(renewals).toBeGreaterThan(0);
});

/** What was reported, with the last zxid committed by then: that a keeper's data was written, or that it is closed. */
interface Note {
  readonly keeper: string;
  readonly step: number;
  readonly zxid: number;
  readonly isClosed: boolean;
}

/** @returns how often the znode was deleted and recreated */
async function liveThrough(fleet: Fleet): Promise<number> {
  const random = fleet.world.random.fork('program');
  let isOver = false;
  const znode = new KeptZnode(await fleet.connectAs('observer'));
  const looking = (async () => {
    while (!isOver) {
      await znode.look();
      await fleet.world.sleep(100);
    }
  })();
  const notes: Note[] = [];
  const set = async (kept: PersistentTtl, keeper: string, step: number): Promise<void> => {
    const timeoutMs = random.chance(0.3) ? random.between(0, 500) : undefined;
    const dueMs = fleet.world.nowMs + (timeoutMs ?? Number.POSITIVE_INFINITY);
    try {
      await kept.set(`${keeper} ${step}`, timeoutMs === undefined ? {} : { timeoutMs });
      notes.push({ keeper, step, zxid: fleet.committedZxid, isClosed: false });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
    }
    expect(fleet.world.nowMs, 'when a call with a limit has ended').toBeLessThanOrEqual(dueMs + 1);
  };
  const living = HOSTS.map(async (host) => {
    for (let life = 1; !isOver; life++) {
      const client = await fleet.connectAs(host);
      const keeper = `${host} ${life}`;
      const kept = new PersistentTtl(client, PATH, { ttlMs: TTL_MS, data: `${keeper} 0` });
      let step = 0;
      let wasCutOff = client.state !== 'connected';
      client.onState(() => {
        wasCutOff = true;
      });
      const endMs = fleet.world.nowMs + random.between(500, 8000);
      while (!isOver && fleet.world.nowMs < endMs) {
        await fleet.world.sleep(random.between(50, 1500));
        for (let i = random.between(-1, 2); i > 0; i--) void set(kept, keeper, ++step);
      }
      if (random.chance(0.5)) await fleet.kill(client);
      else {
        await kept.close();
        // In-flight requests have arrived by then, except those to another server.
        await fleet.world.sleep(1000);
        if (!wasCutOff) notes.push({ keeper, step: 0, zxid: fleet.committedZxid, isClosed: true });
        await fleet.world.sleep(random.between(0, 3000));
        await client.close();
      }
      await fleet.world.sleep(random.between(0, 12_000));
    }
  });
  await fleet.storm(HOSTS, STORM_MS);
  await fleet.recover();
  isOver = true;
  await Promise.all([looking, ...living]);
  expect(znode.looks).toBeGreaterThan(0);

  const client = await fleet.connectAs('last');
  const kept = new PersistentTtl(client, PATH, { ttlMs: TTL_MS, data: 'made by the last' });
  await kept.whenPresent();
  await kept.set('the last');
  const { stat } = await client.get(PATH, { read: 'linearizable' });
  await fleet.world.sleep(20 * TTL_MS);
  const later = await client.get(PATH, { codec: text, read: 'linearizable' });
  expect(later.data).toBe('the last');
  expect(later.stat.czxid).toBe(stat.czxid);
  expect((await client.children(PATH)).children).toEqual(['touch']);
  await kept.close();
  await fleet.world.sleep(5 * TTL_MS);
  expect(await client.exists(PATH, { read: 'linearizable' })).toBeNull();
  await Promise.all([client.close(), znode.client.close()]);
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes);
  return znode.renewals;
}

/** Compares what was reported with what was committed. */
function check(tree: CommittedTree, notes: readonly Note[]): void {
  const writes = tree
    .changesOf(PATH)
    .filter(({ type }) => type === 'created' || type === 'changed')
    .map(({ zxid }) => {
      const [host, life, step] = new TextDecoder().decode(tree.stateAt(PATH, zxid)?.data ?? undefined).split(' ');
      return { keeper: `${host} ${life}`, step: Number(step), zxid };
    });
  for (const { keeper, step, zxid, isClosed } of notes) {
    const own = writes.filter((write) => write.keeper === keeper);
    expect(own.map((write) => write.step)).toEqual(own.map((write) => write.step).toSorted((a, b) => a - b));
    if (isClosed)
      expect(
        own.filter((write) => write.zxid > zxid),
        `${keeper} writes after its end`,
      ).toEqual([]);
    else
      expect(
        own.some((write) => write.step >= step && write.zxid <= zxid),
        `${keeper} ${step} at ${zxid}`,
      ).toBe(true);
  }
}

/** Polls the znode, and knows when it was last touched before it was deleted. */
class KeptZnode {
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
      // In this order: a touch that is seen first is not later than the znode that is seen then.
      const touched = await this.client.exists(`${PATH}/touch`);
      const stat = await this.client.exists(PATH);
      if (stat === null) return;
      this.looks++;
      if (stat.czxid !== this.#czxid) {
        if (this.#czxid !== 0n) {
          this.renewals++;
          expect(stat.ctime - this.#keptMs, `${PATH} was recreated, ms after it was kept`).toBeGreaterThanOrEqual(
            TTL_MS,
          );
        }
        this.#czxid = stat.czxid;
        this.#keptMs = stat.ctime;
      }
      if (touched !== null) this.#keptMs = Math.max(this.#keptMs, touched.mtime);
    } catch (error) {
      // It cannot look while it is partitioned.
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }
}
