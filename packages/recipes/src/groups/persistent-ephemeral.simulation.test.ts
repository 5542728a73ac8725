/**
 * Three processes want the same znode, and wait for each other, while servers and links fail and processes die and come
 * back. In every seed:
 *
 * 1. never are two of them sure at one moment that the znode is theirs;
 * 2. tokens grow from each to the next;
 * 3. when everything is healed one of them has it, with the data that it set last;
 * 4. when all are closed it is gone.
 */
import { type Client, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three'];
const PATH = '/chair/who';
/** More than syncLimit × tickTime of these ensembles, as a follower may go on answering without its leader. */
const MARGIN_MS = 700;
const STORM_MS = 40_000;

interface Process {
  readonly host: string;
  client: Client | null;
  presence: PersistentEphemeral | null;
}

const SEEDS = seeds(8);

test('nobody is sure of a znode that somebody else has, and it comes back', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const processes: Process[] = HOSTS.map((host) => ({ host, client: null, presence: null }));
  let isOver = false;
  let lastToken = 0n;
  let seenTokens = 0;

  const look = (): void => {
    const sure = processes.filter(({ presence }) => presence?.isPresent === true);
    expect(sure.map(({ host }) => host).length, `${sure.map(({ host }) => host)} are sure`).toBeLessThanOrEqual(1);
    const token = sure[0]?.presence?.token ?? null;
    if (token === null || token === lastToken) return;
    expect(token).toBeGreaterThan(lastToken);
    lastToken = token;
    seenTokens++;
  };
  const start = async (process: Process): Promise<void> => {
    process.client = await world.connect(process.host);
    const { host } = process;
    process.presence = new PersistentEphemeral(process.client, PATH, {
      data: `${host} 0`,
      owner: host,
      marginMs: MARGIN_MS,
    });
  };
  const looking = (async () => {
    while (!isOver) {
      look();
      await world.world.sleep(5);
    }
  })();
  const living = processes.map(async (process) => {
    for (let life = 1; !isOver; life++) {
      await start(process);
      const endMs = world.world.nowMs + random.between(500, 15_000);
      for (let i = 1; !isOver && world.world.nowMs < endMs; i++) {
        await world.world.sleep(random.between(50, 1500));
        void process.presence?.set(`${process.host} ${life}.${i}`).catch(() => {});
      }
      if (isOver) return;
      const { client, presence } = process;
      process.client = null;
      process.presence = null;
      if (random.chance(0.5)) await world.kill(client!);
      else {
        await presence?.close();
        await client?.close();
      }
      await world.world.sleep(random.between(0, 3000));
    }
  });
  await world.storm(HOSTS, STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all([looking, ...living]);
  for (const process of processes) if (process.client === null) await start(process);

  const isHeld = (): boolean => processes.some(({ presence }) => presence?.isPresent === true);
  expect(await world.world.until(isHeld, 60_000), 'one of them has it').toBe(true);
  look();
  expect(seenTokens).toBeGreaterThan(0);
  const holder = processes.find(({ presence }) => presence?.isPresent === true)!;
  await holder.presence!.set('the last');
  const { data } = await holder.client!.get(PATH, { codec: text, read: 'linearizable' });
  expect(data).toBe('the last');
  const observer = await world.connect('observer');
  await Promise.all(processes.map(({ presence }) => presence?.close()));
  await world.world.sleep(1000);
  expect(await observer.exists(PATH, { read: 'linearizable' })).toBeNull();
  await Promise.all([observer, ...processes.map(({ client }) => client)].map((client) => client?.close()));
}
