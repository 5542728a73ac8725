/**
 * Members come, die, go and change while servers and links fail; everybody observes. In every seed:
 *
 * 1. who is sure to be a member has a znode of its present session, which the service confirms at that moment;
 * 2. each observer's views follow from each other: who leaves was there, who joins was not;
 * 3. when everything is healed, every observer lists exactly the members that live, once each, with their newest data;
 * 4. a member whose process died is listed no longer than its session.
 */
import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { patienceMs, seeds } from '../testing/seeds.ts';
import { Group, type GroupLayout, type GroupObservation, type Membership } from './group.ts';
import { type GroupWorld, inWorld } from './testing/world.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
const LAYOUTS: readonly GroupLayout[] = ['curator', 'kazoo', 'kazoo-shallow'];
const PATH = '/groups/g';
const STORM_MS = 30_000;
const SEEDS = seeds(4);

test('everybody sees exactly the members that live', { timeout: patienceMs(SEEDS.length) }, () =>
  SEEDS.reduce((before, seed) => before.then(() => inWorld(seed, liveThrough)), Promise.resolve()),
);

interface Process {
  readonly host: string;
  client: Client | null;
  membership: Membership | null;
  observation: GroupObservation | null;
  data: string;
}

async function liveThrough(world: GroupWorld): Promise<void> {
  const random = world.world.random.fork('program');
  const layout = random.pick(LAYOUTS);
  const processes: Process[] = HOSTS.map((host) => ({
    host,
    client: null,
    membership: null,
    observation: null,
    data: '',
  }));
  const observing: Promise<void>[] = [];
  let isOver = false;
  let confirmed = 0;

  const start = async (process: Process): Promise<void> => {
    const client = await world.connect(process.host);
    const group = new Group(client, PATH, { layout });
    process.client = client;
    process.membership = group.join(process.host, { owner: process.host });
    const observation = group.observe();
    process.observation = observation;
    observing.push(follow(observation));
  };
  const living = processes.map(async (process) => {
    for (let life = 1; !isOver; life++) {
      await start(process);
      const endMs = world.world.nowMs + random.between(1000, 15_000);
      for (let i = 1; !isOver && world.world.nowMs < endMs; i++) {
        await world.world.sleep(random.between(50, 1500));
        if (random.chance(0.3)) confirmed += (await isConfirmed(process)) ? 1 : 0;
        if (layout !== 'curator' || process.membership === null) continue;
        process.data = `${life}.${i}`;
        void process.membership.set(process.data).catch(() => {});
      }
      if (isOver) return;
      const { client, membership, observation } = process;
      process.client = null;
      process.membership = null;
      process.observation = null;
      process.data = '';
      if (random.chance(0.5)) await world.kill(client!);
      else {
        await membership?.close();
        await observation?.close();
        await client?.close();
      }
      await world.world.sleep(random.between(0, 6000));
    }
  });
  await world.storm(HOSTS, STORM_MS);
  await world.heal();
  isOver = true;
  await Promise.all(living);
  expect(confirmed).toBeGreaterThan(0);

  const present = processes.filter(({ membership }) => membership !== null);
  const expected = present.map(({ host, data }) => `${host}=${data}`).sort();
  const viewOf = ({ observation }: Process): string[] =>
    (observation?.current ?? []).map(({ id, data }) => `${id}=${new TextDecoder().decode(data)}`).sort();
  const isRight = (): boolean => present.every((process) => viewOf(process).join() === expected.join());
  const settled = await world.world.until(isRight, 30_000, 50);
  if (!settled) for (const process of present) expect(viewOf(process), process.host).toEqual(expected);

  for (const { membership, observation, client } of present) {
    await membership!.close();
    await observation!.close();
    await client!.close();
  }
  await Promise.all(observing);
}

/** What the service says while the member is sure: it must have the znode in its present session. */
async function isConfirmed({ client, membership }: Process): Promise<boolean> {
  if (client === null || membership === null || !membership.isMember) return false;
  const session = client.session?.id;
  const stat = await client.exists(membership.path).catch(() => undefined);
  if (stat === undefined || !membership.isMember || client.session?.id !== session) return false;
  expect(stat?.ephemeralOwner, membership.id).toBe(session);
  return true;
}

/** Views follow from each other. */
async function follow(observation: GroupObservation): Promise<void> {
  const present = new Set<string>();
  for await (const { members, joined, left } of observation) {
    const name = ({ name, stat }: { name: string; stat: { czxid: bigint } | null }): string => `${name}@${stat?.czxid}`;
    for (const member of left) expect(present.delete(name(member)), `${name(member)} was there`).toBe(true);
    for (const member of joined) {
      expect(present.has(name(member)), `${name(member)} was not there`).toBe(false);
      present.add(name(member));
    }
    expect([...present].sort()).toEqual(members.map(name).sort());
  }
}
