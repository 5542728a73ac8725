import { CreateMode, ErrorCode, type MultiOp, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create, errorsOf, exists, setData } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const MANY = 8000;

/** Runs turns until something is proposed. @returns the number of turns */
function turnsUntilProposed(server: TestServer): number {
  for (let turns = 1; turns < 100; turns++) {
    server.core.onTurnEnd();
    if (server.disk.deliver()) return turns;
  }
  throw new Error('nothing is proposed');
}

/** Two clients, one of which has just sent a multi of `MANY` creates followed by these operations. */
function duringMulti(more: readonly MultiOp[] = []): { server: TestServer; writer: TestClient; other: TestClient } {
  const server = new TestServer();
  const [writer, other] = [server.connect(), server.connect()];
  writer.sendTogether([create('/many'), create('/other')]);
  server.run();
  writer.takeArrivals();
  const ops: MultiOp[] = Array.from({ length: MANY }, (_, i) => create(`/many/n${i}`));
  writer.send({ op: OpCode.multi, ops: [...ops, ...more] });
  return { server, writer, other };
}

test('a multi of few operations on long paths is prepared over several turns, too', () => {
  const server = new TestServer();
  const [writer, other] = [server.connect(), server.connect()];
  const path = `/${'long'.repeat(2000)}`;
  writer.send(create(path));
  server.run();
  writer.takeArrivals();
  writer.send({ op: OpCode.multi, ops: new Array(100).fill(setData(path)) as MultiOp[] });
  other.send(exists('/'));
  server.core.onTurnEnd();
  expect(errorsOf(other.takeArrivals())).toEqual([ErrorCode.ok]);
  expect(turnsUntilProposed(server)).toBeGreaterThanOrEqual(8);
  server.run();
  expect(errorsOf(writer.takeArrivals())).toEqual([ErrorCode.ok]);
});

test('a closeSession with ephemerals on long paths is prepared over several turns, too', () => {
  const server = new TestServer();
  const owner = server.connect();
  const parent = `/${'long'.repeat(2000)}`;
  owner.send(create(parent));
  owner.sendTogether(Array.from({ length: 200 }, (_, i) => create(`${parent}/${i}`, CreateMode.ephemeral)));
  server.run();
  owner.takeArrivals();
  owner.send({ op: OpCode.closeSession });
  expect(turnsUntilProposed(server)).toBeGreaterThanOrEqual(5);
  server.run();
  expect(server.core.view.database()?.sessions.size).toBe(0);
});

describe('a multi of many operations', () => {
  test('is prepared over several turns, in which other clients can read', () => {
    const { server, writer, other } = duringMulti();
    other.send(exists('/other'));
    server.core.onTurnEnd();
    expect(errorsOf(other.takeArrivals())).toEqual([ErrorCode.ok]);
    expect(turnsUntilProposed(server)).toBeGreaterThanOrEqual(4);
    server.run();
    expect(errorsOf(writer.takeArrivals())).toEqual([ErrorCode.ok]);
    expect(server.core.nextDeadlineMs()).toBeGreaterThan(0);
  });

  test('is visible to writes that arrive meanwhile, which take later zxids', () => {
    const { server, writer, other } = duringMulti();
    other.sendTogether([create('/many/n1'), setData('/many/n2'), exists('/many/n2')]);
    server.run();
    expect(errorsOf(writer.takeArrivals())).toEqual([ErrorCode.ok]);
    const replies = other.takeArrivals().map((arrival) => (arrival.kind === 'reply' ? arrival.header : null));
    expect(replies).toMatchObject([
      { xid: 1, zxid: 6, error: ErrorCode.nodeExists },
      { xid: 2, zxid: 7, error: ErrorCode.ok },
      { xid: 3, zxid: 7, error: ErrorCode.ok },
    ]);
  });

  test('is rolled back completely when its last operation fails, even if txns were applied in between', () => {
    const server = new TestServer();
    const [writer, other] = [server.connect(), server.connect()];
    writer.send(create('/many'));
    server.run();
    // In flight when the multi begins, and applied before it fails.
    other.send(create('/many/earlier'));
    const ops: MultiOp[] = Array.from({ length: MANY }, (_, i) => create(`/many/n${i}`));
    writer.send({ op: OpCode.multi, ops: [...ops, { op: OpCode.delete, path: '/none', version: -1 }] });
    server.run();
    other.sendTogether([create('/many/n0'), { op: OpCode.getAllChildrenNumber, path: '/many' }]);
    server.run();
    expect(errorsOf(other.takeArrivals())).toEqual([ErrorCode.ok, ErrorCode.ok, ErrorCode.ok]);
    const mismatches = server.trace.filter(({ kind }) => kind === 'digest-mismatch');
    expect(mismatches).toEqual([]);
    server.disk.crash();
    const again = new TestServer({}, server.disk);
    expect([again.failure, again.isServing]).toEqual([null, true]);
  });

  test('is completed after its client has disconnected, and so are the writes behind it', () => {
    const { server, writer, other } = duringMulti();
    other.sendTogether([setData('/other'), setData('/other')]);
    server.core.onTurnEnd();
    writer.drop();
    other.drop();
    server.run();
    const reader = server.connect();
    reader.sendTogether([exists('/many/n0'), { op: OpCode.delete, path: '/other', version: 2 }]);
    server.run();
    expect(errorsOf(reader.takeArrivals())).toEqual([ErrorCode.ok, ErrorCode.ok]);
  });

  test('is completed by a stopping server', () => {
    const { server, writer } = duringMulti();
    server.core.onTurnEnd();
    server.stop();
    expect(errorsOf(writer.takeArrivals())).toEqual([ErrorCode.ok]);
    expect(server.isStopped).toBe(true);
  });
});

test('a closeSession with many ephemerals is prepared over several turns, and no write of the session follows', () => {
  const server = new TestServer();
  const [owner, other] = [server.connect(), server.connect()];
  other.send(create('/many'));
  for (const name of ['n', 'm', 'l']) {
    const ops = Array.from({ length: MANY }, (_, i) => create(`/many/${name}${i}`, CreateMode.ephemeral));
    owner.send({ op: OpCode.multi, ops });
    // After that the client is paused for at most a quarter of its session timeout.
    server.advance(2500);
  }
  for (const client of [owner, other]) client.takeArrivals();
  owner.sendTogether([{ op: OpCode.closeSession }, create('/many/late')]);
  other.send(create('/many/n0'));
  expect(turnsUntilProposed(server)).toBeGreaterThanOrEqual(4);
  server.run();
  expect(errorsOf(other.takeArrivals())).toEqual([ErrorCode.ok]);
  other.sendTogether([exists('/many/n1'), exists('/many/late'), { op: OpCode.delete, path: '/many/n0', version: 0 }]);
  server.run();
  expect(errorsOf(other.takeArrivals())).toEqual([ErrorCode.noNode, ErrorCode.noNode, ErrorCode.ok]);
});

test('createSession and closeSession wait while a long request is prepared', () => {
  const { server, writer, other } = duringMulti();
  const late = server.open();
  late.connect();
  server.core.onTurnEnd();
  expect(late.arrivals).toEqual([]);
  server.core.expireSession(other.session!.id);
  server.run();
  expect(errorsOf(writer.takeArrivals())).toEqual([ErrorCode.ok]);
  expect(late.takeArrivals()).toMatchObject([{ kind: 'session' }]);
  expect(other.isClosed).toBe(true);
});
