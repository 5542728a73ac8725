/**
 * Members join, die, leave, come back and change under faults of servers and links; all processes observe. In every
 * seed, checked against the committed history:
 *
 * 1. a client that is certain to be a member has a znode of its current session; one that has left while connected has
 *    none; data that was set is there, or data that was set later;
 * 2. each observer's views are consistent with each other: members that leave were there, members that join were not;
 *    each reported member existed with the reported data;
 * 3. an observer that has been connected for a while lists all members that existed throughout, and none that did not
 *    exist;
 * 4. when all faults are healed, every observer lists exactly the live members, once each, with their newest data.
 */
import { type Client, isZooKeeperError } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { Group, type GroupLayout, type GroupObservation, type Member, type Membership } from './group.ts';

const HOSTS = ['one', 'two', 'three', 'four'];
const LAYOUTS: readonly GroupLayout[] = ['curator', 'kazoo', 'kazoo-shallow'];
const PATH = '/groups/g';
const STORM_MS = 30_000;
/**
 * Longer than a client waits for a silent server, two thirds of a session (4000 ms), and than a lagging one keeps its
 * clients.
 */
const LAG_MS = 5000;

simulate('every observer sees exactly the live members', 4, liveThrough);

interface Process {
  readonly host: string;
  client: Client | null;
  membership: Membership | null;
  observation: GroupObservation | null;
  data: string;
  /** Since when it has been connected without interruption, virtual ms. */
  connectedMs: number;
}

/** What was reported, with the last zxid committed by then. */
interface Notes {
  /** Memberships that are certain, and those that have certainly ended. */
  readonly memberships: { path: string; sessionId: bigint; isMember: boolean; zxid: number }[];
  readonly sets: { path: string; sessionId: bigint; data: string; zxid: number }[];
  readonly seen: Map<string, Member>;
  /** Lists of observers that have been connected since an earlier zxid. */
  readonly lists: { host: string; names: readonly string[]; sinceZxid: number; untilZxid: number }[];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const layout = random.pick(LAYOUTS);
  const processes: Process[] = HOSTS.map((host) => ({
    host,
    client: null,
    membership: null,
    observation: null,
    data: '',
    connectedMs: 0,
  }));
  const notes: Notes = { memberships: [], sets: [], seen: new Map(), lists: [] };
  const observing: Promise<void>[] = [];
  let isOver = false;
  /** The last committed zxid at each time. */
  const marks: { readonly ms: number; readonly zxid: number }[] = [];

  const start = async (process: Process): Promise<void> => {
    const client = await fleet.connectAs(process.host);
    const group = new Group(client, PATH, { layout });
    process.client = client;
    process.connectedMs = fleet.world.nowMs;
    client.onState(({ state }) => {
      process.connectedMs = state === 'connected' ? fleet.world.nowMs : Number.POSITIVE_INFINITY;
    });
    // Without an owner the stale member of a dead process exists for a while beside the new one.
    const owner = layout !== 'curator' && random.chance(0.3) ? undefined : process.host;
    process.membership = group.join(process.host, { owner });
    const observation = group.observe();
    process.observation = observation;
    observing.push(follow(observation, notes));
  };
  /** @returns whether it was connected throughout */
  const leave = async (client: Client, membership: Membership): Promise<boolean> => {
    const sessionId = client.session?.id;
    let wasConnected = client.state === 'connected';
    const states = client.onState(() => {
      wasConnected = false;
    });
    await membership.close();
    states[Symbol.dispose]();
    expect(membership.isMember).toBe(false);
    const { path } = membership;
    if (wasConnected)
      notes.memberships.push({ path, sessionId: sessionId!, isMember: false, zxid: fleet.committedZxid });
    return wasConnected;
  };
  const set = async ({ client, membership, data }: Process, timeoutMs: number | undefined): Promise<void> => {
    try {
      await membership!.set(data, timeoutMs === undefined ? {} : { timeoutMs });
      const { path, isMember } = membership!;
      const sessionId = client!.session?.id;
      if (isMember && sessionId !== undefined) notes.sets.push({ path, sessionId, data, zxid: fleet.committedZxid });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
    }
  };
  const look = (): void => {
    const [ms, zxid] = [fleet.world.nowMs, fleet.committedZxid];
    marks.push({ ms, zxid });
    for (const { host, client, membership, observation, connectedMs } of processes) {
      const session = client?.session;
      if (client == null || membership === null || session == null) continue;
      const { path, isMember } = membership;
      const isCertain = isMember && client.lostAtMs > client.surroundings.clock.monotonicMs();
      if (isCertain) notes.memberships.push({ path, sessionId: session.id, isMember, zxid });
      const members = observation?.current ?? null;
      if (members === null || connectedMs > ms - LAG_MS) continue;
      const sinceZxid = marks.findLast((mark) => mark.ms <= ms - LAG_MS)?.zxid;
      if (sinceZxid === undefined) continue;
      notes.lists.push({ host, names: members.map(({ name }) => name), sinceZxid, untilZxid: zxid });
    }
  };
  const looking = (async () => {
    while (!isOver) {
      look();
      await fleet.world.sleep(100);
    }
  })();
  const living = processes.map(async (process) => {
    for (let life = 1; !isOver; life++) {
      await start(process);
      const endMs = fleet.world.nowMs + random.between(1000, 15_000);
      for (let i = 1; !isOver && fleet.world.nowMs < endMs; i++) {
        await fleet.world.sleep(random.between(50, 1500));
        if (layout !== 'curator' || process.membership === null) continue;
        process.data = `${life}.${i}`;
        void set(process, random.chance(0.3) ? random.between(0, 500) : undefined);
      }
      if (isOver) return;
      const { client, membership, observation } = process;
      process.client = null;
      process.membership = null;
      process.observation = null;
      process.data = '';
      if (random.chance(0.5)) await fleet.kill(client!);
      else {
        const hasLeft = await leave(client!, membership!);
        // It may join again with the same client, at once.
        if (hasLeft && random.chance(0.5)) {
          const again = new Group(client!, PATH, { layout }).join(process.host, { owner: process.host });
          await fleet.world.sleep(random.between(0, 200));
          await leave(client!, again);
        }
        await observation?.close();
        await client?.close();
      }
      await fleet.world.sleep(random.between(0, 6000));
    }
  });
  await fleet.storm(HOSTS, STORM_MS);
  await fleet.recover();
  isOver = true;
  await Promise.all([looking, ...living]);

  const present = processes.filter(({ membership }) => membership !== null);
  const expected = present.map(({ host, data }) => `${host}=${data}`).sort();
  const viewOf = ({ observation }: Process): string[] =>
    (observation?.current ?? []).map(({ id, data }) => `${id}=${new TextDecoder().decode(data)}`).sort();
  const isRight = (): boolean => present.every((process) => viewOf(process).join() === expected.join());
  const settled = await fleet.world.until(isRight, 30_000, 50);
  if (!settled) for (const process of present) expect(viewOf(process), process.host).toEqual(expected);

  for (const { client } of present.slice(0, 1)) {
    const listed = await new Group(client!, PATH, { layout }).members();
    expect(listed.map(({ id }) => id).sort()).toEqual(present.map(({ host }) => host).sort());
  }
  for (const { membership, observation, client } of present) {
    await leave(client!, membership!);
    await observation!.close();
    await client!.close();
  }
  await Promise.all(observing);
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes);
}

/** Compares what was reported with what was committed. */
function check(tree: CommittedTree, { memberships, sets, seen, lists }: Notes): void {
  const decoder = new TextDecoder();
  const madeSince = (since: number, path: string): number[] =>
    tree
      .changesOf(path)
      .filter(({ type, zxid }) => type === 'created' && zxid > since)
      .map(({ zxid }) => zxid);
  for (const { path, sessionId, isMember, zxid } of memberships) {
    // A very recent creation may be newer than the mark, when the server that knew of it has crashed.
    const states = [zxid, ...(isMember ? madeSince(zxid, path) : [])].map((at) => tree.stateAt(path, at));
    const isThere = states.some((state) => state?.owner === sessionId);
    if (isThere !== isMember) expect.fail(`${path} is ${isThere ? '' : 'not '}there at ${zxid}`);
  }
  for (const { path, sessionId, data, zxid } of sets) {
    const state = tree.stateAt(path, zxid);
    // It may have been replaced since the reply.
    if (state?.owner !== sessionId) continue;
    expect(compareLives(decoder.decode(state.data ?? undefined), data), `${data} at ${zxid}`).toBeGreaterThanOrEqual(0);
  }
  for (const { id, name, data, stat } of seen.values()) {
    // kazoo's layout has the id instead of data.
    const text = name.endsWith('__party__') ? id : decoder.decode(data);
    const state = stat === null ? null : tree.stateAt(`${PATH}/${name}`, Number(stat.mzxid));
    if (stat === null) expect(tree.changesOf(`${PATH}/${name}`), name).not.toEqual([]);
    else
      expect([BigInt(state?.czxid ?? 0), decoder.decode(state?.data ?? undefined)], name).toEqual([stat.czxid, text]);
  }
  for (const { host, names, sinceZxid, untilZxid } of lists) {
    const children = tree.changesOf(PATH).filter(({ zxid }) => zxid > sinceZxid && zxid <= untilZxid);
    const times = [sinceZxid, ...children.map(({ zxid }) => zxid)].map((zxid) => tree.childrenAt(PATH, zxid));
    const always = times.reduce((all, next) => all.filter((name) => next.includes(name)));
    const ever = new Set(times.flat());
    for (const name of always) if (!names.includes(name)) expect.fail(`${host} does not list ${name} at ${untilZxid}`);
    for (const name of names) if (!ever.has(name)) expect.fail(`${host} lists ${name}, gone since ${sinceZxid}`);
  }
  expect(memberships.length).toBeGreaterThan(0);
}

/** For data such as 3.14: the fourteenth value of the third life. */
function compareLives(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  return left![0]! - right![0]! || left![1]! - right![1]!;
}

/** Checks that consecutive views are consistent. */
async function follow(observation: GroupObservation, { seen }: Notes): Promise<void> {
  const present = new Map<string, bigint>();
  for await (const { members, joined, left, changed } of observation) {
    const name = ({ name, stat }: Member): string => `${name}@${stat?.czxid}`;
    for (const member of left) expect(present.delete(name(member)), `${name(member)} was there`).toBe(true);
    for (const member of joined) {
      expect(present.has(name(member)), `${name(member)} was not there`).toBe(false);
      present.set(name(member), member.stat?.mzxid ?? 0n);
    }
    for (const member of changed) {
      expect(member.stat!.mzxid, `${name(member)} is newer`).toBeGreaterThan(present.get(name(member))!);
      present.set(name(member), member.stat!.mzxid);
    }
    const all = members.map((member) => [name(member), member.stat?.mzxid ?? 0n]);
    expect([...present].sort()).toEqual(all.sort());
    for (const member of members) seen.set(`${name(member)} ${member.stat?.mzxid}`, member);
  }
}
