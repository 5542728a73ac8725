import { CreateMode, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create } from '../../testing/core-requests.ts';
import { type TestClient, TestServer } from '../../testing/test-server.ts';
import { LearnerMeters } from './learner-meters.ts';
import { Meters } from './meters.ts';
import { NamespaceMeters } from './namespace-meters.ts';

/** A clock that a test moves. */
class Hands {
  ms = 1000;

  monotonicMs(): number {
    return this.ms;
  }

  wallMs(): number {
    return 1_700_000_000_000 + this.ms;
  }
}

function write(client: TestClient, server: TestServer, path: string, bytes: number): void {
  client.send(create(path, CreateMode.persistent, { bytes }));
  server.run();
}

describe('meters', () => {
  test('measure reads from the beginning of their turn to its end, when replies are sent', () => {
    const clock = new Hands();
    const meters = new Meters(clock);
    meters.onTurnStart();
    meters.onReadAtOnce(OpCode.getData);
    meters.onReadAtOnce(OpCode.getData);
    meters.onReadAtOnce(OpCode.exists);
    clock.ms += 0.5;
    meters.onTurnEnd();
    expect(meters.operation(OpCode.getData)).toMatchObject({ count: 2, sum: 1000 });
    expect(meters.operation(OpCode.exists)).toMatchObject({ count: 1, sum: 500 });
    expect(meters.reads).toMatchObject({ count: 3, sum: 1500 });
    expect(meters.turns).toMatchObject({ count: 1, sum: 500 });
  });

  test('measure a delayed answer from the turn of its request', () => {
    const clock = new Hands();
    const meters = new Meters(clock);
    const since = meters.onTurnStart();
    meters.onTurnEnd();
    clock.ms += 3;
    meters.onTurnStart();
    meters.onAnswered(OpCode.setData, since);
    meters.onAnswered(OpCode.getData, since);
    clock.ms += 1;
    meters.onTurnEnd();
    expect(meters.updates).toMatchObject({ count: 1, sum: 4000 });
    expect(meters.reads).toMatchObject({ count: 1, sum: 4000 });
    expect(meters.operation(OpCode.closeSession).count).toBe(0);
  });

  test('have a histogram for each operation', () => {
    const meters = new Meters(new Hands());
    const ops = Object.values(OpCode);
    expect(new Set(ops.map((op) => meters.operation(op))).size).toBe(ops.length);
  });

  test('lose nothing when a turn has more answers than they keep', () => {
    const meters = new Meters(new Hands());
    meters.onTurnStart();
    for (let i = 0; i < 10_000; i++) meters.onAnswered(OpCode.create, 1000);
    meters.onTurnEnd();
    expect(meters.updates.count).toBe(10_000);
  });

  test('count what clients of a server do', () => {
    const server = new TestServer();
    const client = server.connect();
    const { meters, watches } = server.core.view;
    write(client, server, '/app', 10);
    client.send({ op: OpCode.getData, path: '/app', watch: true });
    server.run();
    client.send({ op: OpCode.setData, path: '/app', data: new Uint8Array(5), version: -1 });
    server.run();
    expect(meters.operation(OpCode.create).count).toBe(1);
    expect(meters.operation(OpCode.getData).count).toBe(1);
    expect(meters.updates.count).toBe(2);
    // The session, the znode, its new data.
    expect(meters.prepared).toBe(3);
    expect(meters.applied).toBe(3);
    expect(watches.fired.dataChanged).toMatchObject({ count: 1, sum: 1 });
    expect(watches.fired.created.count).toBe(0);
    expect(meters.eventBytes).toBeGreaterThan(0);
    expect(meters.sentBytes).toBeGreaterThan(meters.eventBytes);
  });
});

test('reads are counted for their namespace although a write to another one comes between', () => {
  const meters = new NamespaceMeters();
  const data = new Uint8Array(10);
  for (let i = 0; i < 3; i++) {
    meters.onRead('/a/x', 100);
    meters.onRead('/a/y', 100);
    meters.onTxn({ type: OpCode.setData, path: '/b/x', data, version: 1 });
  }
  const counted = Array.from(meters.values(), ({ name, read, written }) => [name, read.count, written.count]);
  expect(counted).toEqual([
    ['a', 6, 0],
    ['b', 0, 3],
  ]);
});

describe('learners', () => {
  test('one txn at a time is measured, until it or a later one arrives', () => {
    const meter = new LearnerMeters().of(7)!;
    const { acks, ackLatency } = meter;
    acks.start(10, 1000);
    acks.start(11, 1001);
    expect([acks.awaits(9), acks.awaits(10), acks.awaits(12)]).toEqual([false, true, true]);
    acks.stop(1003);
    expect(acks.awaits(12)).toBe(false);
    expect(ackLatency).toMatchObject({ count: 1, sum: 3000 });
    acks.start(13, 2000);
    acks.forget();
    expect(acks.awaits(13)).toBe(false);
  });

  test('unknown servers cannot create them without limit', () => {
    const learners = new LearnerMeters();
    for (let id = 0; id < 10_000; id++) learners.of(id);
    expect([...learners.entries()].length).toBe(255);
    expect(learners.of(10_000)).toBeNull();
    expect(learners.of(3)).not.toBeNull();
  });
});

describe('namespaces', () => {
  test('count the bytes read and written below a child of the root', () => {
    const server = new TestServer();
    const client = server.connect();
    write(client, server, '/app', 10);
    write(client, server, '/app/a', 20);
    write(client, server, '/application', 1);
    client.send({ op: OpCode.getData, path: '/app/a', watch: false });
    client.send({ op: OpCode.exists, path: '/app', watch: false });
    client.send({ op: OpCode.exists, path: '/', watch: false });
    server.run();
    const found = [...server.core.view.meters.namespaces.values()].map(({ name, read, written }) => [
      name,
      read.sum,
      written.sum,
    ]);
    // Path, data and the 68 bytes of a Stat; path and data.
    expect(found).toEqual([
      ['app', 6 + 20 + 68 + 4 + 68, 4 + 10 + 6 + 20],
      ['application', 0, 12 + 1],
    ]);
  });

  test('are counted together from the hundredth on', () => {
    const server = new TestServer();
    const client = server.connect();
    for (let i = 0; i < 150; i++) write(client, server, `/n${i}`, 0);
    const meters = [...server.core.view.meters.namespaces.values()];
    expect(meters.length).toBe(101);
    expect(meters.at(-1)).toMatchObject({ name: '_other', written: { count: 50 } });
  });
});
