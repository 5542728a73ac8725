import { AddWatchMode, CreateMode, ErrorCode, type MultiOp, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import { create, exists, setData } from '../testing/core-requests.ts';
import { LeaderParty } from '../testing/serving-parties.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';
import { WorkMeter } from './work-meter.ts';

const MANY = 10_000;

/** Runs one turn for the completed disk operations. */
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

/** Runs until the client has a reply. @returns the number of turns */
function turnsUntilReply(server: TestServer, client: TestClient): number {
  for (let turns = 1; turns < 1000; turns++) {
    turn(server);
    if (client.arrivals.some(({ kind }) => kind === 'reply')) return turns;
  }
  throw new Error('there is no reply');
}

/** Runs until what was sent is durable, so that it begins to be applied. */
function untilSynced(server: TestServer): void {
  server.trace.length = 0;
  for (let turns = 0; turns < 1000; turns++) {
    turn(server);
    if (server.trace.some(({ kind }) => kind === 'log-synced')) return;
  }
  throw new Error('nothing is synced');
}

/** A server with a multi that is logged and partly applied. */
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

  test('is visible as a whole: reads of what it changes wait, all other reads see the state before it', () => {
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

  test('notifies a watcher before it can read the change', () => {
    const { server, reader } = duringMulti('/many/n0');
    server.core.onTurnEnd();
    expect(reader.takeArrivals()).toMatchObject([{ kind: 'event', event: { path: '/many/n0' } }]);
    reader.send(exists('/many/n0'));
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ error: ErrorCode.ok }]);
  });

  test('delays a watch that is set in the middle: the reply is not older than the change', () => {
    const { server, writer, reader } = duringMulti();
    reader.send({ op: OpCode.addWatch, path: '/many/n0', mode: AddWatchMode.persistent });
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    turnsUntilReply(server, writer);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
  });

  test('is completed before later writes, also to the same znodes, are applied', () => {
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

  test('delays a sync that arrives in the middle', () => {
    const { server, writer, reader } = duringMulti();
    reader.send({ op: OpCode.sync, path: '/' });
    turn(server);
    expect(repliesOf(reader)).toEqual([]);
    turnsUntilReply(server, writer);
    server.run();
    expect(repliesOf(reader)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
  });

  test('is logged as a whole: a server that crashes in the middle has all of it after a restart', () => {
    const { server } = duringMulti();
    server.disk.crash();
    const again = new TestServer({}, server.disk);
    const client = again.connect();
    client.sendTogether([exists('/many/n0'), exists(`/many/n${MANY - 1}`)]);
    again.run();
    expect(repliesOf(client).map(({ error }) => error)).toEqual([ErrorCode.ok, ErrorCode.ok]);
  });

  test('that closes a session with many ephemerals takes several turns, too', () => {
    const server = new TestServer();
    const [owner, reader] = [server.connect(), server.connect()];
    owner.send(create('/many'));
    const ops = Array.from({ length: MANY }, (_, i) => create(`/many/n${i}`, CreateMode.ephemeral));
    owner.send({ op: OpCode.multi, ops });
    // After that the client is paused for at most two fifths of its session timeout.
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

test('few txns with long paths are applied per turn', () => {
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

test('a multi of few changes to long paths takes several turns, and few with one such change fit into a turn', () => {
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

test('txns that are committed together are applied over several turns, in order', () => {
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

test('the view of the database is consistent, also in the middle of a txn', () => {
  const { server, writer } = duringMulti();
  const database = server.core.view.database();
  expect(database?.lastZxid).toBe(6);
  expect([...(database?.znodes() ?? [])].filter(({ path }) => path.startsWith('/many/n'))).toHaveLength(MANY);
  server.run();
  expect(repliesOf(writer)).toMatchObject([{ zxid: 6, error: ErrorCode.ok }]);
});

test('a sync whose ticket is answered already is answered behind the committed txns that wait for their turn', () => {
  const work = new WorkMeter();
  const leader = new LeaderParty({ work });
  const { pipeline } = leader.serving;
  const [writer, reader] = [leader.connect(), leader.connect()];
  vi.spyOn(writer, 'charge').mockImplementation((units = 0) => void work.charge(units));
  const path = `/${'long'.repeat(2000)}`;
  writer.send(1, create(path));
  leader.commit();
  pipeline.onTurnEnd(0);
  const writes = 500;
  for (let i = 0; i < writes; i++) writer.send(2 + i, setData(path));
  leader.commit();
  expect(pipeline.lastApplied).toBeLessThan(leader.broadcast.lastProposed);
  // As in an ensemble of one, where nothing is outstanding.
  vi.spyOn(leader.broadcast, 'sync').mockReturnValue(0);
  reader.send(1, { op: OpCode.sync, path: '/' });
  for (let turns = 0; pipeline.lastApplied < leader.broadcast.lastProposed; turns++) {
    expect(turns).toBeLessThan(writes);
    expect(reader.replies).toEqual([]);
    pipeline.onTurnEnd(0);
  }
  expect(reader.awaitsTurn).toBe(true);
  pipeline.answerWaiting(reader);
  expect(reader.replies).toMatchObject([{ xid: 1, zxid: leader.broadcast.lastProposed, error: ErrorCode.ok }]);
});
