import { AddWatchMode, CreateMode, ErrorCode, type MultiOp, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create, exists, setData } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const MANY = 10_000;

/** A turn of its own for each thing that the disk has done. */
function turn(server: TestServer): void {
  server.disk.deliver();
  server.core.onTurnEnd();
}

function repliesOf(client: TestClient): { readonly xid: number; readonly zxid: number; readonly error: number }[] {
  return client.takeArrivals().flatMap((arrival) => {
    if (arrival.kind !== 'reply') return [];
    const { xid, zxid, error } = arrival.header;
    return [{ xid, zxid, error }];
  });
}

/** Goes on until the client has a reply. @returns turns that it took */
function turnsUntilReply(server: TestServer, client: TestClient): number {
  for (let turns = 1; turns < 1000; turns++) {
    turn(server);
    if (client.arrivals.some(({ kind }) => kind === 'reply')) return turns;
  }
  throw new Error('there is no reply');
}

/** Goes on until what was sent is durable: the first of it is applied then. */
function untilSynced(server: TestServer): void {
  server.trace.length = 0;
  for (let turns = 0; turns < 1000; turns++) {
    turn(server);
    if (server.trace.some(({ kind }) => kind === 'log-synced')) return;
  }
  throw new Error('nothing is synced');
}

/** With a multi that has been logged, and of which the first changes are made. */
function duringMulti(watched: string | null = null): {
  server: TestServer;
  writer: TestClient;
  reader: TestClient;
} {
  const server = new TestServer();
  const [writer, reader] = [server.connect(), server.connect()];
  writer.sendTogether(['/many', '/many/before', '/other'].map((path) => create(path)));
  if (watched !== null) reader.send(exists(watched, true));
  server.run();
  for (const client of [writer, reader]) client.takeArrivals();
  const ops = Array.from({ length: MANY }, (_, i) => create(`/many/n${i}`));
  writer.send({ op: OpCode.multi, ops });
  untilSynced(server);
  return { server, writer, reader };
}

describe('a txn of many changes', () => {
  test('is applied over several turns', () => {
    const { server, writer } = duringMulti();
    expect(writer.arrivals).toEqual([]);
    const turns = turnsUntilReply(server, writer);
    expect(turns).toBeGreaterThanOrEqual(3);
    expect(turns).toBeLessThan(20);
    expect(repliesOf(writer)).toMatchObject([{ error: ErrorCode.ok }]);
    server.run();
    expect(server.core.nextDeadlineMs()).toBeGreaterThan(0);
  });

  test('is seen as a whole: what it changes is read when it is done, and everything else meanwhile as before it', () => {
    const { server, writer, reader } = duringMulti();
    const multi = 6;
    reader.send(exists('/other'));
    turn(server);
    expect(repliesOf(reader)).toMatchObject([{ xid: 1, zxid: multi - 1, error: ErrorCode.ok }]);
    const hidden: readonly Request[] = [
      exists('/many/n0'),
      exists(`/many/n${MANY - 1}`),
      { op: OpCode.getChildren, path: '/many', watch: false },
      { op: OpCode.multiRead, ops: [{ op: OpCode.getData, path: '/many/n0' }] },
      { op: OpCode.getAllChildrenNumber, path: '/other' },
    ];
    reader.sendTogether([...hidden, exists('/other')]);
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    turnsUntilReply(server, writer);
    server.run();
    const replies = repliesOf(reader);
    expect(replies.map(({ xid }) => xid)).toEqual([2, 3, 4, 5, 6, 7]);
    for (const { zxid, error } of replies) expect([zxid, error]).toEqual([multi, ErrorCode.ok]);
  });

  test('tells a watcher before it can read the change', () => {
    const { server, reader } = duringMulti('/many/n0');
    server.core.onTurnEnd();
    expect(reader.takeArrivals()).toMatchObject([{ kind: 'event', event: { path: '/many/n0' } }]);
    reader.send(exists('/many/n0'));
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ error: ErrorCode.ok }]);
  });

  test('keeps a watch that is set in the middle waiting: the change is told, or the reply is not older than it', () => {
    const { server, writer, reader } = duringMulti();
    reader.send({ op: OpCode.addWatch, path: '/many/n0', mode: AddWatchMode.persistent });
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    turnsUntilReply(server, writer);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
  });

  test('lets what is written behind it, also to the same znodes, wait for its turn', () => {
    const { server, writer, reader } = duringMulti();
    reader.sendTogether([setData('/many/n0'), setData('/other'), exists('/other')]);
    const turns = turnsUntilReply(server, writer);
    expect(turns).toBeGreaterThanOrEqual(3);
    server.run();
    expect(repliesOf(reader)).toMatchObject([
      { zxid: 7, error: ErrorCode.ok },
      { zxid: 8, error: ErrorCode.ok },
      { zxid: 8, error: ErrorCode.ok },
    ]);
  });

  test('answers a sync that came in the middle once it is done', () => {
    const { server, writer, reader } = duringMulti();
    reader.send({ op: OpCode.sync, path: '/' });
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    turnsUntilReply(server, writer);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
  });

  test('is in the log as a whole: a server that ends in the middle of it has it when it starts again', () => {
    const { server } = duringMulti();
    server.disk.crash();
    const again = new TestServer({}, server.disk);
    const client = again.connect();
    client.sendTogether([exists('/many/n0'), exists(`/many/n${MANY - 1}`)]);
    again.run();
    expect(repliesOf(client).map(({ error }) => error)).toEqual([ErrorCode.ok, ErrorCode.ok]);
  });

  test('that ends a session with many ephemerals takes several turns, too', () => {
    const server = new TestServer();
    const [owner, reader] = [server.connect(), server.connect()];
    owner.send(create('/many'));
    const ops = Array.from({ length: MANY }, (_, i) => create(`/many/n${i}`, CreateMode.ephemeral));
    owner.send({ op: OpCode.multi, ops });
    // Behind that it pauses for two fifths of its session's timeout at most.
    server.run();
    server.advance(4000);
    owner.takeArrivals();
    owner.send({ op: OpCode.closeSession });
    untilSynced(server);
    reader.sendTogether([exists(`/many/n${MANY - 1}`), { op: OpCode.getChildren, path: '/many', watch: false }]);
    expect(turnsUntilReply(server, owner)).toBeGreaterThanOrEqual(3);
    expect(repliesOf(reader)).toEqual([]);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ error: ErrorCode.noNode }, { error: ErrorCode.ok }]);
  });
});

test('long paths count: few txns that have one are applied in a turn', () => {
  const server = new TestServer();
  const clients = Array.from({ length: 200 }, () => server.connect());
  const path = `/${'long'.repeat(2000)}`;
  clients[0]!.send(create(path));
  server.run();
  clients[0]!.takeArrivals();
  server.isDiskHeld = true;
  for (const client of clients) client.send(setData(path));
  server.run();
  server.isDiskHeld = false;
  while (server.disk.deliver());
  server.core.onTurnEnd();
  expect(clients.flatMap(repliesOf).length).toBeLessThan(100);
  server.run();
  expect(clients.flatMap(repliesOf).length).toBeGreaterThan(100);
});

test('a multi of few changes to long paths is applied over several turns, too, and few of those with one such change in a turn', () => {
  const server = new TestServer();
  const clients = Array.from({ length: 200 }, () => server.connect());
  const [writer] = clients as [TestClient];
  const path = `/${'long'.repeat(2000)}`;
  writer.send(create(path));
  server.run();
  writer.takeArrivals();
  writer.send({ op: OpCode.multi, ops: new Array(100).fill(setData(path)) as MultiOp[] });
  untilSynced(server);
  expect(turnsUntilReply(server, writer)).toBeGreaterThanOrEqual(4);
  server.run();
  writer.takeArrivals();
  server.isDiskHeld = true;
  for (const client of clients) client.send({ op: OpCode.multi, ops: [setData(path) as MultiOp] });
  server.run();
  server.isDiskHeld = false;
  while (server.disk.deliver());
  server.core.onTurnEnd();
  expect(clients.flatMap(repliesOf).length).toBeLessThan(50);
  server.run();
  expect(clients.flatMap(repliesOf).length).toBeGreaterThan(150);
});

test('txns that are committed together are applied over several turns, in their order', () => {
  const server = new TestServer({ globalOutstandingLimit: 20_000 });
  const clients = Array.from({ length: 8 }, () => server.connect());
  clients[0]!.send(create('/a'));
  server.run();
  clients[0]!.takeArrivals();
  server.isDiskHeld = true;
  for (const client of clients) client.sendTogether(new Array(1000).fill(setData('/a')));
  server.run();
  for (const client of clients) expect(client.arrivals).toEqual([]);
  server.isDiskHeld = false;
  while (server.disk.deliver());
  server.core.onTurnEnd();
  const first = clients.flatMap(repliesOf);
  expect(first.length).toBeGreaterThan(500);
  expect(first.length).toBeLessThan(4000);
  server.run();
  const all = [...first, ...clients.flatMap(repliesOf)].map(({ zxid }) => zxid).sort((a, b) => a - b);
  expect(all).toEqual(Array.from({ length: 8000 }, (_, i) => all[0]! + i));
});

test('whoever asks for the whole database gets it of one moment, also in the middle of a txn', () => {
  const { server, writer } = duringMulti();
  const database = server.core.view.database();
  expect(database?.lastZxid).toBe(6);
  expect([...(database?.znodes() ?? [])].filter(({ path }) => path.startsWith('/many/n'))).toHaveLength(MANY);
  server.run();
  expect(repliesOf(writer)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
});
