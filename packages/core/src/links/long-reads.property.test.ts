/**
 * Long reads among writes, watches, slow clients and clients that disconnect: what each client sees fits one history.
 */
import { AddWatchMode, EventType, JuteReader, OpCode, type Request } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { create } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const CHILDREN = 6000;
const CLIENTS = 30;
/** Writers never disconnect, and read everything at once. */
const WRITERS = 4;
const STEPS = 300;

const getMany: Request = { op: OpCode.getChildren, path: '/many', watch: true };
const countMany: Request = { op: OpCode.getAllChildrenNumber, path: '/many' };
const multiRead: Request = {
  op: OpCode.multiRead,
  ops: [...Array.from({ length: 40 }, () => ({ op: OpCode.getData, path: '/x' }) as const), getManyPart()],
};
const watchAll: Request = { op: OpCode.addWatch, path: '/', mode: AddWatchMode.persistentRecursive };
const restore = {
  op: OpCode.setWatches2,
  relativeZxid: 2 ** 40,
  dataWatches: ['/x', '/many/child-1'],
  existWatches: Array.from({ length: 400 }, (_, i) => `/none${i}`),
  childWatches: ['/many'],
  persistentWatches: [],
  persistentRecursiveWatches: [],
} as Request;

function getManyPart(): { readonly op: typeof OpCode.getChildren; readonly path: string } {
  return { op: OpCode.getChildren, path: '/many' };
}

interface Change {
  readonly zxid: number;
  readonly name: string | null;
  readonly isThere: boolean;
}

/** A client, and its requests. */
class Party {
  readonly asked: Request[] = [];
  readonly client: TestClient;

  constructor(server: TestServer) {
    this.client = server.connect();
    this.ask(watchAll);
    server.run();
  }

  ask(request: Request): void {
    // What is sent to a paused stream waits in the network.
    if (this.client.isPaused || this.client.isClosed) return;
    this.asked.push(request);
    this.client.send(request);
  }
}

test.each([1, 2])('what each client receives fits one history, regardless of other clients: seed %i', (seed) => {
  let state = seed;
  const random = (n: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor((((state ^ (state >>> 13)) >>> 0) / 2 ** 32) * n);
  };
  const server = new TestServer({ frameBytesMax: 2 ** 24 });
  const first = server.connect();
  first.sendTogether([create('/many'), create('/x')]);
  for (let i = 0; i < CHILDREN; i += 3000) {
    first.send({ op: OpCode.multi, ops: Array.from({ length: 3000 }, (_, j) => create(`/many/child-${i + j}`)) });
  }
  server.run();
  const parties = Array.from({ length: CLIENTS }, () => new Party(server));
  const all = [...parties];
  let made = 0;
  for (let step = 0; step < STEPS; step++) {
    const at = random(CLIENTS);
    const party = parties[at]!;
    const dice = random(100);
    if (dice < 25) party.ask(getMany);
    else if (dice < 35) party.ask(countMany);
    else if (dice < 45) party.ask(multiRead);
    else if (dice < 50) party.ask(restore);
    else if (dice < 55) party.ask({ op: OpCode.sync, path: '/' });
    else if (dice < 60) party.ask({ op: OpCode.exists, path: '/x', watch: true });
    else if (dice < 80) {
      const writer = parties[random(WRITERS)]!;
      const kind = random(3);
      if (kind === 0) writer.ask(create(`/many/new-${made++}`));
      else if (kind === 1) writer.ask({ op: OpCode.delete, path: `/many/child-${random(CHILDREN)}`, version: -1 });
      else writer.ask({ op: OpCode.setData, path: '/x', data: null, version: -1 });
    } else if (at < WRITERS || dice >= 90) {
      server.core.onTurnEnd();
      if (random(3) === 0) server.disk.deliver();
    } else if (dice < 84) party.client.isDeaf = true;
    else if (dice < 88) party.client.listen();
    else {
      party.client.drop();
      parties[at] = new Party(server);
      all.push(parties[at]!);
    }
  }
  for (const { client } of parties) if (client.isDeaf) client.listen();
  server.run();
  expect(server.core.view.outstandingRequests).toBe(0);

  const arrivals = new Map(all.map(({ client, asked }) => [client, { asked, arrived: client.takeArrivals() }]));
  const changes: Change[] = [];
  for (const { client } of parties.slice(0, WRITERS)) {
    const { asked, arrived } = arrivals.get(client)!;
    for (const each of arrived) {
      if (each.kind !== 'reply' || each.header.error !== 0) continue;
      const { xid, zxid } = each.header;
      const request = asked[xid - 1]!;
      if (request.op === OpCode.create) changes.push({ zxid, name: request.path.slice(6), isThere: true });
      else if (request.op === OpCode.delete) changes.push({ zxid, name: request.path.slice(6), isThere: false });
      else if (request.op === OpCode.setData) changes.push({ zxid, name: null, isThere: true });
    }
  }
  changes.sort((a, b) => a.zxid - b.zxid);
  const childrenAt = (zxid: number): Set<string> => {
    const names = new Set(Array.from({ length: CHILDREN }, (_, i) => `child-${i}`));
    for (const change of changes) {
      if (change.zxid > zxid || change.name === null) continue;
      if (change.isThere) names.add(change.name);
      else names.delete(change.name);
    }
    return names;
  };

  let lists = 0;
  for (const [client, { asked, arrived }] of arrivals) {
    let replyZxid = 0;
    let eventZxid = 0;
    let watchedFrom = Number.POSITIVE_INFINITY;
    const xids: number[] = [];
    const events: number[] = [];
    for (const each of arrived) {
      if (each.kind === 'event' && each.zxid > 0) {
        // No reply that shows the change has come before the event, and events come in order.
        expect(each.zxid).toBeGreaterThan(replyZxid);
        expect(each.zxid).toBeGreaterThanOrEqual(eventZxid);
        eventZxid = each.zxid;
        if (each.event.type !== EventType.nodeChildrenChanged) events.push(each.zxid);
      } else if (each.kind === 'reply') {
        const { xid, zxid, error } = each.header;
        xids.push(xid);
        expect(zxid).toBeGreaterThanOrEqual(Math.max(replyZxid, eventZxid));
        replyZxid = zxid;
        const request = asked[xid - 1]!;
        if (request === watchAll) watchedFrom = zxid;
        if (error !== 0 || (request !== getMany && request !== countMany)) continue;
        lists++;
        const reader = new JuteReader(each.body);
        const names = childrenAt(zxid);
        expect(reader.int()).toBe(names.size);
        if (request === getMany) {
          expect(new Set(Array.from(names, () => reader.ustring()))).toEqual(names);
          expect(reader.remaining).toBe(0);
        }
      }
    }
    expect(xids).toEqual(xids.map((_, i) => i + 1));
    if (client.isClosed) continue;
    expect(xids).toHaveLength(asked.length);
    expect(events).toEqual(changes.map(({ zxid }) => zxid).filter((zxid) => zxid > watchedFrom));
  }
  expect(lists).toBeGreaterThan(20);
  expect(changes.length).toBeGreaterThan(20);
});
