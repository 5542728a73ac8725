/**
 * Three processes want the same znode, and wait for each other, under faults of servers and links, while processes die,
 * close and come back, and the znode is sometimes deleted. In every seed, checked against the committed history:
 *
 * 1. a client that is certain to own the znode owns it, in its current session, with this token; never are two certain;
 * 2. each reported token is that of a znode of the client's session, and tokens grow; presence is reported before it
 *    ends;
 * 3. after `set` has resolved, the znode has this data, or data that was set later; no other client's znode is changed
 *    or deleted;
 * 4. a client that has closed while connected has left nothing, and never recreates it;
 * 5. cancelled calls end in time; when all faults are healed one process has it, with its latest data, and in the end
 *    it is gone.
 */
import { type Client, isZooKeeperError, NoNodeError, TimeoutError, text } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';

const HOSTS = ['one', 'two', 'three'];
const PATH = '/chair/who';
const STORM_MS = 40_000;

simulate("no client is certain of another client's znode, and it is recreated", 4, liveThrough);

/** One life of a process: its client, and one presence after the other. */
interface Process {
  readonly host: string;
  client: Client | null;
  presence: PersistentEphemeral | null;
  /** Of the data: the number of the life, and of the value within it. */
  life: number;
  step: number;
}

/** What was reported, with the last zxid committed by then. */
interface Notes {
  readonly claims: Map<string, { readonly token: bigint; readonly sessionId: bigint; readonly zxid: number }>;
  readonly sets: { readonly data: string; readonly sessionId: bigint; readonly zxid: number }[];
  readonly leaves: { readonly sessionId: bigint; readonly zxid: number; readonly againZxid: () => number }[];
  /** Sessions of each host. */
  readonly hosts: Map<bigint, string>;
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const processes: Process[] = HOSTS.map((host) => ({ host, client: null, presence: null, life: 0, step: 0 }));
  const notes: Notes = { claims: new Map(), sets: [], leaves: [], hosts: new Map() };
  // A partitioned process may be certain for a while after its znode was deleted.
  const hasVandal = random.chance(0.3);
  let isOver = false;
  let lastToken = 0n;
  let seenTokens = 0;

  const look = (): void => {
    const sure = processes.filter(({ presence }) => presence?.isPresent === true);
    const zxid = fleet.committedZxid;
    if (!hasVandal && sure.length > 1) expect.fail(`${sure.map(({ host }) => host)} are sure`);
    for (const { client, presence } of sure) {
      const token = presence!.token!;
      const sessionId = client!.session!.id;
      if (!hasVandal) notes.claims.set(`${token} ${zxid}`, { token, sessionId, zxid });
      if (token === lastToken || hasVandal) continue;
      expect(token).toBeGreaterThan(lastToken);
      lastToken = token;
      seenTokens++;
    }
  };
  const follow = async ({ host }: Process, presence: PersistentEphemeral): Promise<void> => {
    let token = 0n;
    let signal: AbortSignal | null = null;
    for await (const state of presence) {
      if (signal !== null) expect(signal.aborted, `${host} is notified of the end of its presence`).toBe(true);
      signal = state.isPresent ? state.signal : null;
      if (!state.isPresent) continue;
      expect(state.token).toBeGreaterThanOrEqual(token);
      token = state.token;
    }
    expect(presence.isPresent).toBe(false);
  };
  const following: Promise<void>[] = [];
  const start = (process: Process): void => {
    const { host } = process;
    process.life++;
    process.step = 0;
    const options = { data: `${host} ${process.life}.0`, owner: host };
    process.presence = new PersistentEphemeral(process.client!, PATH, options);
    following.push(follow(process, process.presence));
  };
  const connect = async (process: Process): Promise<void> => {
    const client = await fleet.connectAs(process.host);
    const note = (): void => void (client.session !== null && notes.hosts.set(client.session.id, process.host));
    note();
    client.onState(note);
    process.client = client;
  };
  const set = async ({ client, presence }: Process, data: string, timeoutMs?: number): Promise<void> => {
    const dueMs = fleet.world.nowMs + (timeoutMs ?? Number.POSITIVE_INFINITY);
    try {
      await presence!.set(data, timeoutMs === undefined ? {} : { timeoutMs });
      const sessionId = client!.session?.id;
      if (presence!.isPresent) notes.sets.push({ data, sessionId: sessionId!, zxid: fleet.committedZxid });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      if (error instanceof TimeoutError) expect(error.outcome, 'it keeps trying').toBe('unknown');
    }
    expect(fleet.world.nowMs, 'when a call with a limit has ended').toBeLessThanOrEqual(dueMs + 1);
  };
  /** @returns whether it was connected throughout */
  const leave = async (process: Process): Promise<boolean> => {
    const client = process.client!;
    const sessionId = client.session?.id;
    let wasConnected = client.state === 'connected';
    const states = client.onState(() => {
      wasConnected = false;
    });
    const presence = process.presence!;
    process.presence = null;
    await presence.close();
    states[Symbol.dispose]();
    expect(presence.isPresent).toBe(false);
    let againZxid = Number.POSITIVE_INFINITY;
    if (wasConnected)
      notes.leaves.push({ sessionId: sessionId!, zxid: fleet.committedZxid, againZxid: () => againZxid });
    await fleet.world.sleep(random.between(0, 1000));
    againZxid = fleet.committedZxid;
    return wasConnected;
  };
  const looking = (async () => {
    while (!isOver) {
      look();
      await fleet.world.sleep(5);
    }
  })();
  const vandalize = async (): Promise<void> => {
    const client = await fleet.connectAs('vandal');
    while (!isOver) {
      await fleet.world.sleep(random.between(500, 5000));
      await client.delete(PATH, { timeoutMs: 1000 }).catch((error: unknown) => {
        if (!isZooKeeperError(error)) throw error;
      });
    }
    await client.close();
  };
  const living = processes.map(async (process) => {
    while (!isOver) {
      if (process.client === null) await connect(process);
      start(process);
      const endMs = fleet.world.nowMs + random.pick([random.between(0, 100), random.between(500, 15_000)]);
      while (!isOver && fleet.world.nowMs < endMs) {
        await fleet.world.sleep(random.between(1, 1500));
        const data = `${process.host} ${process.life}.${++process.step}`;
        void set(process, data, random.chance(0.3) ? random.between(0, 500) : undefined);
      }
      if (isOver) return;
      const { client } = process;
      if (random.chance(0.4)) {
        process.presence = null;
        process.client = null;
        await fleet.kill(client!);
      } else if (!(await leave(process)) || random.chance(0.3)) {
        process.client = null;
        await client!.close();
      }
      await fleet.world.sleep(random.between(0, 3000));
    }
  });
  if (hasVandal) living.push(vandalize());
  await Promise.race([fleet.storm(HOSTS, STORM_MS), Promise.all(living)]);
  await fleet.recover();
  isOver = true;
  await Promise.all([looking, ...living]);
  for (const process of processes) {
    if (process.client === null) await connect(process);
    if (process.presence === null) start(process);
  }
  // The last deletion may not have been noticed yet.
  await fleet.world.sleep(1000);
  const holder = (): Process | undefined => processes.find(({ presence }) => presence?.isPresent === true);
  expect(await fleet.world.until(() => holder() !== undefined, 60_000), 'one of them has it').toBe(true);
  look();
  if (!hasVandal) expect(seenTokens).toBeGreaterThan(0);
  const { presence, client } = holder()!;
  await presence!.set('the last');
  const { data } = await client!.get(PATH, { codec: text, read: 'linearizable' });
  expect(data).toBe('the last');
  const observer = await fleet.connectAs('observer');
  await Promise.all(processes.map((process) => process.presence?.close()));
  await fleet.world.sleep(1000);
  expect(await observer.exists(PATH, { read: 'linearizable' })).toBeNull();
  await expect(observer.get(PATH)).rejects.toThrow(NoNodeError);
  await Promise.all([observer, ...processes.map((process) => process.client!)].map((each) => each.close()));
  await Promise.all(following);
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes, hasVandal);
}

/** Compares what was reported with what was committed. */
function check(tree: CommittedTree, { claims, sets, leaves, hosts }: Notes, hasVandal: boolean): void {
  const dataAt = (zxid: number): string => new TextDecoder().decode(tree.stateAt(PATH, zxid)?.data ?? undefined);
  for (const { token, sessionId, zxid } of claims.values()) {
    // The server that knew of a new one may have crashed at once.
    const state = tree.stateAt(PATH, Math.max(zxid, Number(token)));
    if (BigInt(state?.czxid ?? 0) !== token) expect.fail(`${token} is not there at ${zxid}, but ${state?.czxid}`);
    if (state!.owner !== sessionId) expect.fail(`${token} is not of session ${sessionId}`);
  }
  for (const { data, sessionId, zxid } of sets) {
    const state = tree.stateAt(PATH, zxid);
    if (state?.owner !== sessionId) continue;
    expect(ageOf(dataAt(zxid)), `${data} or later, at ${zxid}`).toBeGreaterThanOrEqual(ageOf(data));
  }
  for (const { type, zxid } of tree.changesOf(PATH)) {
    if (type !== 'changed') continue;
    // The service compares versions, not znodes: the first version of a deleted znode is also that of the next one.
    const state = tree.stateAt(PATH, zxid)!;
    if (hasVandal && state.version === 1) continue;
    // Data begins with the name of the host that writes it.
    const owner = hosts.get(state.owner);
    if (dataAt(zxid) !== 'the last') expect(dataAt(zxid).split(' ')[0], `data at ${zxid}`).toBe(owner);
  }
  for (const { sessionId, zxid, againZxid } of leaves) {
    const later = tree.changesOf(PATH).filter((change) => change.zxid > zxid && change.zxid <= againZxid());
    for (const at of [zxid, ...later.map((change) => change.zxid)]) {
      if (tree.stateAt(PATH, at)?.owner === sessionId) expect.fail(`what was closed is there at ${at}`);
    }
  }
}

/** For data such as `one 3.14`: the fourteenth value of the third life. */
function ageOf(data: string): number {
  if (data === 'the last') return Number.POSITIVE_INFINITY;
  const [life, step] = data.split(' ')[1]!.split('.').map(Number);
  return life! * 10_000 + step!;
}
