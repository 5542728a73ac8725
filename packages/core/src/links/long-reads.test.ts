/** Reads that take several turns, as clients see them. */
import { AddWatchMode, CreateMode, ErrorCode, EventType, JuteReader, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import { create, remove } from '../testing/core-requests.ts';
import { type Arrival, type TestClient, TestServer } from '../testing/test-server.ts';
import { ChildNames } from '../tree/child-names.ts';
import { DataTree } from '../tree/data-tree.ts';
import { DescendantCount } from '../tree/descendant-count.ts';
import { EphemeralNames } from '../tree/ephemeral-names.ts';

const CHILDREN = 20_000;
const readRoot: Request = { op: OpCode.exists, path: '/', watch: false };

/** A server with `/many` and its children. */
function makeServer(flags = 0): { server: TestServer; writer: TestClient } {
  const server = new TestServer({ frameBytesMax: 2 ** 24 });
  const writer = server.connect();
  writer.send(create('/many'));
  for (let i = 0; i < CHILDREN; i += 2500) {
    const ops = Array.from({ length: 2500 }, (_, j) => create(`/many/child-${i + j}`, flags));
    writer.send({ op: OpCode.multi, ops });
    server.run();
    // With many ephemerals it has to wait before it may create more.
    server.advance(1000);
  }
  writer.takeArrivals();
  return { server, writer };
}

function namesIn(arrival: Arrival | undefined): string[] {
  if (arrival?.kind !== 'reply') throw new Error(`a reply was expected, not ${JSON.stringify(arrival)}`);
  expect(arrival.header.error).toBe(ErrorCode.ok);
  const reader = new JuteReader(arrival.body);
  return Array.from({ length: reader.int() }, () => reader.ustring()!);
}

const isNames = (value: unknown): boolean => value instanceof ChildNames;

const getMany = (watch = false): Request => ({ op: OpCode.getChildren, path: '/many', watch });
const expectedNames = new Set(Array.from({ length: CHILDREN }, (_, i) => `child-${i}`));

describe('a read of many znodes', () => {
  test('takes several turns, in which other clients are answered', () => {
    const { server } = makeServer();
    const [reader, other] = [server.connect(), server.connect()];
    reader.send(getMany());
    other.send(readRoot);
    server.core.onTurnEnd();
    expect(reader.takeArrivals()).toEqual([]);
    expect(other.takeArrivals()).toHaveLength(1);
    other.send(readRoot);
    server.core.onTurnEnd();
    expect(reader.takeArrivals()).toEqual([]);
    expect(other.takeArrivals()).toHaveLength(1);
    server.run();
    expect(new Set(namesIn(reader.takeArrivals()[0]))).toEqual(expectedNames);
  });

  test('is counted in the bytes that were sent, although its reply has left before the end of the turn', () => {
    const { server } = makeServer();
    const reader = server.connect();
    const { meters } = server.core.view;
    const before = meters.sentBytes;
    reader.send(getMany());
    server.run();
    const [reply] = reader.takeArrivals();
    const names = namesIn(reply).reduce((sum, name) => sum + 4 + name.length, 0);
    // Its length, xid, zxid and error, and the count of names.
    expect(meters.sentBytes - before).toBe(4 + 4 + 8 + 4 + 4 + names);
  });

  test('shows one moment: later changes trigger the watch that it left, after its reply', () => {
    const { server, writer } = makeServer();
    const reader = server.connect();
    reader.send(getMany(true));
    const { lastZxid } = server.core.view;
    writer.sendTogether([create('/many/late'), remove('/many/child-1'), remove(`/many/child-${CHILDREN - 1}`)]);
    server.core.onTurnEnd();
    while (server.disk.deliver());
    server.core.onTurnEnd();
    expect(writer.takeArrivals()).toHaveLength(3);
    expect(reader.takeArrivals()).toEqual([]);
    server.run();
    const [reply, event, ...rest] = reader.takeArrivals();
    expect(new Set(namesIn(reply))).toEqual(expectedNames);
    expect(reply).toMatchObject({ header: { zxid: lastZxid } });
    expect(event).toMatchObject({ kind: 'event', event: { type: EventType.nodeChildrenChanged, path: '/many' } });
    expect(rest).toEqual([]);
  });

  test('keeps its place between the writes of its session', () => {
    const { server } = makeServer();
    const client = server.connect();
    client.sendTogether([create('/many/mine'), getMany(), remove('/many/mine'), getMany(), readRoot]);
    server.run();
    const arrivals = client.takeArrivals();
    expect(arrivals.map((arrival) => arrival.kind === 'reply' && arrival.header.xid)).toEqual([1, 2, 3, 4, 5]);
    expect(namesIn(arrivals[1])).toHaveLength(CHILDREN + 1);
    expect(namesIn(arrivals[3])).toHaveLength(CHILDREN);
  });

  test('delays writes of its session, which could not be applied before it is finished', () => {
    const { server } = makeServer();
    const client = server.connect();
    const part = { op: OpCode.getChildren, path: '/many' } as const;
    server.isDiskHeld = true;
    client.sendTogether([create('/many/mine'), { op: OpCode.multiRead, ops: [part, part] }, remove('/many/mine')]);
    // The first write, and the read after it.
    expect(server.core.view.outstandingRequests).toBe(2);
    expect(client.isPaused).toBe(true);
    server.isDiskHeld = false;
    server.run();
    expect(client.takeArrivals()).toMatchObject([1, 2, 3].map((xid) => ({ header: { xid, error: ErrorCode.ok } })));
  });

  test('waits while many others are under way, and all are answered in the end', () => {
    const { server } = makeServer();
    const [leaver, ...readers] = Array.from({ length: 60 }, () => server.connect());
    const observers = vi.spyOn(Set.prototype, 'add');
    const multiRead: Request = { op: OpCode.multiRead, ops: [{ op: OpCode.getChildren, path: '/many' }] };
    leaver!.sendTogether([getMany(), readRoot]);
    for (const [i, reader] of readers.entries()) reader.sendTogether([i % 2 === 0 ? getMany() : multiRead, readRoot]);
    const underWay = server.core.view.outstandingRequests;
    leaver!.drop();
    // One client does not read its reply: others do not wait for it.
    readers[3]!.isDeaf = true;
    for (let turn = 0; turn < 5; turn++) server.core.onTurnEnd();
    const begun = new Set(observers.mock.calls.map(([added]) => added).filter(isNames));
    expect(begun.size, 'sixteen, and one replacing the client that has disconnected').toBe(17);
    observers.mockRestore();
    server.run();
    expect(underWay, 'requests that wait for their turn are not outstanding').toBeLessThanOrEqual(16);
    for (const [i, reader] of readers.entries()) {
      if (reader.isDeaf) continue;
      const [names, root] = reader.takeArrivals();
      if (i % 2 === 0) expect(namesIn(names)).toHaveLength(CHILDREN);
      else expect(names).toMatchObject({ header: { xid: 1, error: ErrorCode.ok } });
      expect(root).toMatchObject({ header: { xid: 2, error: ErrorCode.ok } });
    }
  });

  test('leaves no outstanding request when its client is disconnected while it starts', () => {
    const server = new TestServer({ frameBytesMax: 2 ** 25 });
    const client = server.connect();
    const pad = 'x'.repeat(131_290);
    // The last event of a slice is one too many for the client.
    const dataWatches = Array.from({ length: 128 }, (_, i) => `/${String(i).padStart(4, '0')}${pad}`);
    const none = { existWatches: [], childWatches: [], persistentWatches: [], persistentRecursiveWatches: [] };
    client.send({ op: OpCode.setWatches2, relativeZxid: 0, dataWatches, ...none } as Request);
    server.run();
    expect(client.isClosed).toBe(true);
    expect(server.core.view.outstandingRequests).toBe(0);
  });

  test('is dropped when its client disconnects', () => {
    const { server } = makeServer();
    const reader = server.connect();
    reader.send(getMany());
    server.core.onTurnEnd();
    reader.drop();
    server.run();
    expect(server.failure).toBeNull();
    const other = server.connect();
    other.send(getMany());
    server.run();
    expect(namesIn(other.takeArrivals()[0])).toHaveLength(CHILDREN);
  });

  test('no longer observes the tree once its client has disconnected', () => {
    const { server, writer: owner } = makeServer(CreateMode.ephemeral);
    const remover = server.connect();
    const observed = [ChildNames, DescendantCount, EphemeralNames].map(({ prototype }) =>
      vi.spyOn(prototype, 'onRemoving'),
    );
    const calls = (): number => observed.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    const removeOne = (name: string): number => {
      const before = calls();
      remover.send(remove(`/many/${name}`));
      server.core.onTurnEnd();
      while (server.disk.deliver());
      server.core.onTurnEnd();
      return calls() - before;
    };
    const reads: readonly Request[] = [
      getMany(),
      { op: OpCode.getChildren2, path: '/many', watch: false },
      { op: OpCode.getAllChildrenNumber, path: '/many' },
      { op: OpCode.multiRead, ops: [{ op: OpCode.getChildren, path: '/many' }] },
      { op: OpCode.getEphemerals, prefix: null },
    ];
    for (const [i, read] of reads.entries()) {
      const reader = read.op === OpCode.getEphemerals ? owner : server.connect();
      reader.send(read);
      expect([read.op, removeOne(`child-${2 * i}`)]).toEqual([read.op, 1]);
      reader.drop();
      expect([read.op, removeOne(`child-${2 * i + 1}`)]).toEqual([read.op, 0]);
    }
    for (const spy of observed) spy.mockRestore();
  });

  test('may exceed the output of a client: the rest of its requests waits, and it is not disconnected', () => {
    const { server, writer } = makeServer();
    const reader = server.connect();
    reader.send({ op: OpCode.addWatch, path: '/many', mode: AddWatchMode.persistent });
    server.run();
    reader.takeArrivals();
    reader.isDeaf = true;
    for (let i = 0; i < 100; i++) reader.send(getMany());
    server.run();
    const bytes = reader.queuedBytes;
    expect(bytes, 'some of the replies').toBeLessThan(2 * 1024 * 1024);
    writer.send(create('/many/late'));
    server.run();
    expect(reader.queuedBytes, 'and an event').toBeLessThan(bytes + 100);
    reader.listen();
    server.run();
    const replies = reader.takeArrivals().filter(({ kind }) => kind === 'reply');
    expect(replies.length).toBe(100);
    expect(namesIn(replies[0])).toHaveLength(CHILDREN);
    expect(namesIn(replies[99])).toHaveLength(CHILDREN + 1);
  });

  test('of several megabytes reads one megabyte per turn, however many clients ask', () => {
    const server = new TestServer();
    const writer = server.connect();
    writer.send(create('/large', 0, { bytes: 1_000_000 }));
    server.run();
    const readers = Array.from({ length: 8 }, () => server.connect());
    const getData = { op: OpCode.getData, path: '/large', watch: false } as const;
    const read = vi.spyOn(DataTree.prototype, 'writeDataAndStat');
    const turns: number[] = [];
    let before = 0;
    for (const reader of readers) reader.send({ op: OpCode.multiRead, ops: new Array(3).fill(getData) });
    for (; before < 24 && turns.length < 100; before = read.mock.calls.length) {
      server.core.onTurnEnd();
      turns.push(read.mock.calls.length - before);
    }
    expect(before).toBe(24);
    expect(Math.max(...turns)).toBe(1);
    read.mockRestore();
    server.run();
    for (const reader of readers) expect(reader.takeArrivals()).toMatchObject([{ header: { error: 0 } }]);
  });

  test('that counts descendants or lists ephemerals takes several turns, too', () => {
    const { server, writer } = makeServer(1);
    const reader = server.connect();
    for (const request of [
      { op: OpCode.getAllChildrenNumber, path: '/many' },
      { op: OpCode.getEphemerals, prefix: '/many/child-19' },
    ] as const) {
      writer.send(request);
      reader.send(readRoot);
      server.core.onTurnEnd();
      expect(writer.takeArrivals()).toEqual([]);
      expect(reader.takeArrivals()).toHaveLength(1);
      server.run();
      const [reply] = writer.takeArrivals();
      if (request.op === OpCode.getEphemerals) expect(namesIn(reply)).toHaveLength(1111);
      else
        expect(reply).toMatchObject({
          header: { error: 0 },
          body: new Uint8Array([0, 0, CHILDREN >> 8, CHILDREN & 255]),
        });
    }
  });
});

describe('setWatches with many paths', () => {
  const MANY_PATHS = 10_000;

  test('takes several turns, sets every watch, and is answered before later requests', () => {
    const { server, writer } = makeServer();
    const [client, other] = [server.connect(), server.connect()];
    const existWatches = Array.from({ length: MANY_PATHS }, (_, i) => `/later-${i}`);
    client.sendTogether([
      {
        op: OpCode.setWatches,
        relativeZxid: 0,
        dataWatches: ['/many/child-0', '/none'],
        existWatches,
        childWatches: [],
        persistentWatches: [],
        persistentRecursiveWatches: [],
      },
      readRoot,
    ]);
    other.send(readRoot);
    server.core.onTurnEnd();
    const arrived = client.takeArrivals();
    expect(arrived.map((arrival) => arrival.kind === 'event' && arrival.event.type)).toEqual([
      EventType.nodeDataChanged,
      EventType.nodeDeleted,
    ]);
    expect(other.takeArrivals()).toHaveLength(1);
    server.run();
    expect(client.takeArrivals()).toMatchObject([
      { kind: 'reply', header: { xid: 1, error: 0 } },
      { kind: 'reply', header: { xid: 2, error: 0 } },
    ]);
    expect(server.core.view.watches.count).toBe(MANY_PATHS);
    writer.send(create(`/later-${MANY_PATHS - 1}`));
    server.run();
    expect(client.takeArrivals()).toMatchObject([{ kind: 'event', event: { type: EventType.nodeCreated } }]);
  });
});
