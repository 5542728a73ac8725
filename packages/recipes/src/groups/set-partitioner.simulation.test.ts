/**
 * Workers divide a set under faults of servers and links, while workers die, leave and come back. In every seed:
 *
 * 1. a client that is certain to hold an item is first in its committed line, and no other client is certain to hold
 *    it;
 * 2. the items of a share are those that the committed members of some time divide the set into;
 * 3. a closed partitioner holds nothing and gets nothing, and if it was connected, nothing of it is left a second
 *    later;
 * 4. when all faults are healed and membership is stable, every item is held, by the member to which it belongs.
 */
import type { Client } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Fleet } from '../testing/fleet.ts';
import { LineHistory } from '../testing/line-history.ts';
import { simulate } from '../testing/simulate.ts';
import { SetPartitioner, type Share } from './set-partitioner.ts';

const HOSTS = ['one', 'two', 'three'];
const ITEMS = ['a', 'b', 'c', 'd', 'e'];
const QUIET_MS = 300;
const STORM_MS = 30_000;

simulate('no item is held twice, and in the end all are held', 3, liveThrough);

/** A partitioner, and its shares. */
interface Part {
  readonly partitioner: SetPartitioner;
  readonly client: Client;
  readonly shares: Share[];
  isClosed: boolean;
}

/** What clients held, got or had released, with the last zxid committed by then. */
interface Notes {
  /** By item, token and zxid. */
  readonly claims: Map<string, { readonly item: string; readonly token: bigint; readonly zxid: number }>;
  readonly shares: { readonly host: string; readonly items: readonly string[]; readonly zxid: number }[];
  readonly leaves: { readonly sessionId: bigint; readonly zxid: number }[];
}

async function liveThrough(fleet: Fleet): Promise<void> {
  const random = fleet.world.random.fork('program');
  const notes: Notes = { claims: new Map(), shares: [], leaves: [] };
  const parts: Part[] = [];
  let isOver = false;
  let isClosed = false;

  /** All items that clients are certain to hold at this moment, by holder. */
  const held = (): Map<string, string> => {
    const holders = new Map<string, string>();
    const zxid = fleet.committedZxid;
    for (const { partitioner, shares, isClosed: hasLeft } of parts) {
      for (const [item, lock] of shares.flatMap(({ locks }) => [...locks])) {
        if (!lock.isHeld) continue;
        if (hasLeft) expect.fail(`${partitioner.identifier} holds ${item} after it was closed`);
        if (holders.has(item)) expect.fail(`${item} is held by ${partitioner.identifier} and ${holders.get(item)}`);
        holders.set(item, partitioner.identifier);
        notes.claims.set(`${item} ${lock.token} ${zxid}`, { item, token: lock.token, zxid });
      }
    }
    return holders;
  };
  const serve = async (part: Part): Promise<void> => {
    for await (const share of part.partitioner) {
      expect(part.isClosed, 'a share is yielded after the end').toBe(false);
      part.shares.push(share);
      notes.shares.push({ host: part.partitioner.identifier, items: share.items, zxid: fleet.committedZxid });
      const leavesMs = !isOver && random.chance(0.1) ? random.between(0, 3000) : Number.POSITIVE_INFINITY;
      const endMs = fleet.world.nowMs + leavesMs;
      while (!share.recall.aborted && fleet.world.nowMs < endMs) await fleet.world.sleep(50);
      if (fleet.world.nowMs >= endMs) return;
      // Work that takes a while.
      await fleet.world.sleep(random.between(0, 500));
    }
  };
  const serving: Promise<void>[] = [];
  const start = (host: string, client: Client): Part => {
    const options = { identifier: host, quietMs: QUIET_MS };
    const part: Part = {
      partitioner: new SetPartitioner(client, '/p', ITEMS, options),
      client,
      shares: [],
      isClosed: false,
    };
    parts.push(part);
    serving.push(serve(part));
    return part;
  };
  const leave = async (part: Part): Promise<void> => {
    const { client } = part;
    const sessionId = client.session?.id;
    let wasConnected = client.state === 'connected';
    const states = client.onState(() => {
      wasConnected = false;
    });
    await part.partitioner.close();
    part.isClosed = true;
    // What was about to be created is removed in the background.
    await fleet.world.sleep(1000);
    states[Symbol.dispose]();
    if (sessionId === undefined) return;
    if (wasConnected) notes.leaves.push({ sessionId, zxid: fleet.committedZxid });
  };
  const looking = (async () => {
    while (!isClosed) {
      held();
      await fleet.world.sleep(10);
    }
  })();
  const live = async (host: string): Promise<Part> => {
    for (let client: Client | null = null; ; ) {
      client ??= await fleet.connectAs(host);
      const part = start(host, client);
      const endMs =
        fleet.world.nowMs +
        random.pick([random.between(0, 1500), random.between(QUIET_MS, QUIET_MS + 20), random.between(2000, 20_000)]);
      await fleet.world.until(() => isOver || fleet.world.nowMs >= endMs, 60_000);
      if (isOver) return part;
      if (random.chance(0.4)) {
        part.shares.length = 0;
        await fleet.kill(client);
        client = null;
      } else {
        await leave(part);
        if (random.chance(0.5)) {
          await client.close();
          client = null;
        }
      }
      await fleet.world.sleep(random.between(0, 2000));
    }
  };
  const living = HOSTS.map(live);
  await fleet.storm(HOSTS, STORM_MS);
  await fleet.recover();
  isOver = true;
  for (const part of await Promise.all(living)) {
    // A partitioner whose loop has ended.
    await leave(part);
    start(part.partitioner.identifier, part.client);
  }
  const expected = (): boolean => {
    const holders = held();
    const workers = HOSTS.toSorted();
    return ITEMS.every((item, i) => holders.get(item) === workers[i % workers.length]);
  };
  const isCovered = await fleet.world.until(expected, 60_000, 50);
  expect(isCovered, `held in the end: ${JSON.stringify([...held()])}`).toBe(true);
  for (const part of parts.slice(-HOSTS.length)) {
    await leave(part);
    held();
  }
  isClosed = true;
  await Promise.all([looking, ...serving]);
  const tree = await fleet.committedTree();
  if (tree !== null) check(tree, notes);
  for (const { client } of parts.slice(-HOSTS.length)) await client.close();
}

/** Compares what was reported with what was committed. */
function check(tree: CommittedTree, { claims, shares, leaves }: Notes): void {
  const lines = new Map(ITEMS.map((item) => [item, new LineHistory(tree, `/p/locks/${item}`)]));
  for (const { item, token, zxid } of claims.values()) {
    const first = lines.get(item)!.at(zxid);
    // The server that knew of a new one may have crashed at once.
    if (token !== first.token && token <= zxid)
      expect.fail(`${token} is sure of ${item} at ${zxid}, and ${first.token} stands first`);
  }
  const parties = tree.changesOf('/p/party').map(({ zxid }) => ({ zxid, names: tree.childrenAt('/p/party', zxid) }));
  for (const { host, items, zxid } of shares) {
    const isOf = (names: readonly string[]): boolean => {
      const workers = names.map((name) => name.slice(name.indexOf('-') + 1)).sort();
      const due = ITEMS.filter((_, i) => workers.length > 0 && workers[i % workers.length] === host);
      return `${due}` === `${items}`;
    };
    const isFound = parties.some((party) => party.zxid <= zxid && isOf(party.names));
    expect(isFound, `the share ${items} of ${host} is that of the members of some time`).toBe(true);
  }
  const paths = [...tree.paths()].filter((path) => path.startsWith('/p/'));
  for (const { sessionId, zxid } of leaves) {
    const left = paths.filter((path) => tree.stateAt(path, zxid)?.owner === sessionId);
    expect(left, 'what a client that has closed leaves behind').toEqual([]);
  }
  expect(claims.size).toBeGreaterThan(0);
  expect(leaves.length).toBeGreaterThan(0);
}
