import { type Acl, AddWatchMode, CreateMode, OPEN_ACL, OpCode, Perm, type Request } from '@meerkat/protocol';
import { describe, expect, test, vi } from 'vitest';
import { create } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';
import { DataTree } from '../tree/data-tree.ts';
import { ClientConnection } from './client-connection.ts';

const readRoot: Request = { op: OpCode.exists, path: '/', watch: false };
const MANY = 5000;

function xidsOf(client: TestClient): number[] {
  return client.takeArrivals().map((arrival) => (arrival.kind === 'reply' ? arrival.header.xid : Number.NaN));
}

describe('the share of a turn', () => {
  test('of a busy connection is bounded: others are answered in between, and all of its requests in the end', () => {
    const server = new TestServer();
    const [greedy, modest] = [server.connect(), server.connect()];
    greedy.sendTogether(new Array(MANY).fill(readRoot));
    modest.send(readRoot);
    server.core.onTurnEnd();
    const first = xidsOf(greedy);
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThan(MANY / 4);
    expect(xidsOf(modest)).toEqual([1]);
    expect(greedy.isPaused).toBe(true);
    modest.send(readRoot);
    server.core.onTurnEnd();
    expect(xidsOf(modest)).toEqual([2]);
    server.run();
    expect([...first, ...xidsOf(greedy)]).toEqual(Array.from({ length: MANY }, (_, i) => i + 1));
    expect(greedy.isPaused).toBe(false);
  });

  test('gets smaller the more connections are busy', () => {
    const server = new TestServer();
    const alone = server.connect();
    alone.sendTogether(new Array(MANY).fill(readRoot));
    server.core.onTurnEnd();
    const ofOne = xidsOf(alone).length;
    server.run();
    const crowd = Array.from({ length: 10 }, () => server.connect());
    for (const client of crowd) client.sendTogether(new Array(MANY).fill(readRoot));
    server.core.onTurnEnd();
    for (const client of crowd) client.takeArrivals();
    server.core.onTurnEnd();
    const ofCrowd = sumOf(crowd.map((client) => xidsOf(client).length));
    expect(ofCrowd).toBeLessThanOrEqual(1.1 * ofOne);
  });

  test('counts the cost of requests, not only their number', () => {
    const server = new TestServer();
    const client = server.connect();
    const other = server.connect();
    const aclOf = (path: string): Acl[] =>
      Array.from({ length: 2000 }, (_, i) => ({ perms: Perm.all, scheme: 'digest', id: `user${i}:${path}` }));
    const paths = Array.from({ length: 20 }, (_, i) => `/${i}`);
    for (const path of paths) {
      other.send(create(path, CreateMode.persistent, { acl: aclOf(path) }));
    }
    server.run();
    client.sendTogether(paths.map((path) => ({ op: OpCode.exists, path, watch: false })));
    server.core.onTurnEnd();
    expect(xidsOf(client).length).toBeLessThan(10);
    server.run();
    expect(xidsOf(client).at(-1)).toBe(20);
  });

  test('counts the length of paths in writes', () => {
    const server = new TestServer();
    const client = server.connect();
    const set = (path: string): Request => ({ op: OpCode.setData, path, data: null, version: -1 });
    const countAtOnce = (path: string): number => {
      client.sendTogether(new Array(500).fill(set(path)));
      server.core.onTurnEnd();
      while (server.disk.deliver());
      server.core.onTurnEnd();
      const { length } = xidsOf(client);
      server.run();
      client.takeArrivals();
      return length;
    };
    expect(countAtOnce('/short')).toBeGreaterThan(200);
    expect(countAtOnce('/long'.repeat(1600))).toBeLessThan(20);
  });

  test('counts the bytes of long replies: a few leave per turn, however many connections ask', () => {
    const server = new TestServer();
    const maker = server.connect();
    maker.send(create('/big', CreateMode.persistent, { bytes: 900_000 }));
    server.run();
    const get = { op: OpCode.getData, path: '/big', watch: false } as const;
    for (const request of [{ op: OpCode.multiRead, ops: new Array(4).fill(get) } as const, get]) {
      const clients = Array.from({ length: 12 }, () => server.connect());
      for (const client of clients) client.send(request);
      let most = 0;
      let answered = 0;
      for (let turns = 0; turns < 200 && answered < clients.length; turns++) {
        server.core.onTurnEnd();
        const replies = sumOf(clients.map((client) => xidsOf(client).length));
        most = Math.max(most, replies);
        answered += replies;
      }
      expect(answered).toBe(clients.length);
      expect(most).toBeLessThanOrEqual(request === get ? 4 : 2);
      for (const client of clients) client.drop();
    }
  });

  test('allows one write at a time that triggers very many recursive watches, also while the disk is slow', () => {
    const server = new TestServer({ frameBytesMax: 2 ** 24 });
    const [greedy, modest] = [server.connect(), server.connect()];
    const set = (path: string): Request => ({ op: OpCode.setData, path, data: null, version: -1 });
    for (let i = 1; i <= 1000; i++) {
      greedy.send({ op: OpCode.addWatch, path: '/d'.repeat(i), mode: AddWatchMode.persistentRecursive });
    }
    server.run();
    greedy.takeArrivals();
    server.isDiskHeld = true;
    greedy.sendTogether(new Array(50).fill(set('/d'.repeat(1000))));
    modest.sendTogether(new Array(50).fill(set('/d')));
    for (let i = 0; i < 100; i++) server.core.onTurnEnd();
    server.isDiskHeld = false;
    while (server.disk.deliver());
    server.core.onTurnEnd();
    expect(xidsOf(greedy)).toEqual([1001]);
    expect(xidsOf(modest)).toHaveLength(50);
    server.run();
    expect(xidsOf(greedy)).toEqual(Array.from({ length: 49 }, (_, i) => 1002 + i));
    greedy.sendTogether([set('/d'.repeat(1000)), readRoot, set('/d'.repeat(1000)), readRoot]);
    server.run();
    expect(xidsOf(greedy)).toEqual([1051, 1052, 1053, 1054]);
  });

  test('bounds the writes waiting for the disk if many clients are notified: others wait for few events', () => {
    const server = new TestServer();
    const [greedy, modest] = [server.connect(), server.connect()];
    const watchers = Array.from({ length: 512 }, () => server.connect());
    for (const [i, watcher] of watchers.entries()) {
      const mode = i % 2 === 0 ? AddWatchMode.persistent : AddWatchMode.persistentRecursive;
      watcher.send({ op: OpCode.addWatch, path: '/', mode });
    }
    server.run();
    const set = { op: OpCode.setData, path: '/', data: null, version: -1 } as const;
    const asked: readonly [Request, number][] = [
      // Of 8192 units, 256 for an event to all watchers.
      [set, 32],
      [{ ...create('/told'), path: '/told-', flags: CreateMode.persistentSequential } as Request, 32],
      [{ op: OpCode.multi, ops: new Array(4).fill(set) }, 8],
      [{ op: OpCode.multi, ops: new Array(16).fill(set) }, 1],
    ];
    for (const [request, outstanding] of asked) {
      greedy.takeArrivals();
      server.isDiskHeld = true;
      greedy.sendTogether(new Array(50).fill(request));
      for (let i = 0; i < 100; i++) server.core.onTurnEnd();
      expect(greedy.isPaused).toBe(true);
      expect(server.core.view.outstandingRequests).toBe(outstanding);
      modest.send(set);
      server.core.onTurnEnd();
      expect(server.core.view.outstandingRequests).toBe(outstanding + 1);
      server.isDiskHeld = false;
      server.run();
      expect(xidsOf(greedy)).toHaveLength(50);
      expect(xidsOf(modest)).toHaveLength(1);
    }
  });

  test('excludes a long multi directly after another one: for some time the server is free for others', () => {
    const server = new TestServer();
    const [greedy, modest] = [server.connect(), server.connect()];
    server.advance(5000);
    const check = { op: OpCode.check, path: '/', version: -1 } as const;
    const multi: Request = { op: OpCode.multi, ops: new Array(4096 + 4800).fill(check) };
    greedy.sendTogether([multi, multi, readRoot]);
    server.run();
    expect(xidsOf(greedy)).toEqual([1]);
    modest.send(multi);
    server.run();
    expect(xidsOf(modest)).toEqual([1]);
    server.advance(74);
    expect(xidsOf(greedy)).toEqual([]);
    server.advance(1);
    expect(xidsOf(greedy)).toEqual([2]);
    server.advance(3839);
    expect(xidsOf(greedy)).toEqual([]);
    server.advance(1);
    expect(xidsOf(greedy)).toEqual([3]);
  });

  test('allows a long multi soon after another one if no other client writes, and always in time for a ping', () => {
    const server = new TestServer();
    const client = server.connect(8000);
    const other = server.connect();
    server.advance(5000);
    const check = { op: OpCode.check, path: '/', version: -1 } as const;
    const multi: Request = { op: OpCode.multi, ops: new Array(4096 + 16_384).fill(check) };
    const pauseBehindMulti = () => {
      client.sendTogether([multi, readRoot]);
      server.run();
      expect(xidsOf(client)).toHaveLength(1);
      for (let ms = 0; ; ms++) {
        if (xidsOf(client).length > 0) return ms;
        server.advance(1);
      }
    };
    expect(pauseBehindMulti()).toBe(256);
    other.send({ op: OpCode.setData, path: '/', data: null, version: -1 });
    server.run();
    expect(pauseBehindMulti()).toBe(3200);
    server.advance(5000);
    expect(pauseBehindMulti()).toBe(256);
  });

  test('is renewed at the start of a millisecond, for which the server requests a tick', () => {
    const server = new TestServer();
    const client = server.connect();
    server.advance(5000);
    const check = { op: OpCode.check, path: '/', version: -1 } as const;
    client.sendTogether([{ op: OpCode.multi, ops: new Array(4096 + 100).fill(check) }, readRoot]);
    server.run();
    expect(xidsOf(client)).toEqual([1]);
    // 100 / 64 ms.
    expect(server.core.nextDeadlineMs()).toBe(server.clock.nowMs + 2);
    server.advance(2);
    expect(xidsOf(client)).toEqual([2]);
  });

  test('counts the events of a multi: one that notifies many watchers is long, too', () => {
    const server = new TestServer();
    const [client, other] = [server.connect(), server.connect()];
    const watchers = Array.from({ length: 20 }, () => server.connect());
    for (const watcher of watchers) watcher.send({ op: OpCode.addWatch, path: '/', mode: AddWatchMode.persistent });
    server.advance(5000);
    const set = { op: OpCode.setData, path: '/', data: null, version: -1 } as const;
    const multi: Request = { op: OpCode.multi, ops: new Array(3584).fill(set) };
    other.send(set);
    server.run();
    const pauseMs = () => {
      client.send(multi);
      server.run();
      expect(xidsOf(client)).toHaveLength(1);
      client.send(readRoot);
      for (let ms = 0; ; ms++) {
        server.run();
        if (xidsOf(client).length > 0) return ms;
        server.advance(1);
      }
    };
    // 3584 · 20 / 16 additional units exceed the limit of a short multi by 3968.
    expect(pauseMs()).toBe(Math.ceil(3968 / 1.25));
    for (const watcher of watchers) watcher.drop();
    server.run();
    other.send(set);
    expect(pauseMs()).toBe(0);
  });

  test('is small for a client that keeps creating ephemerals while others write: their deletion is long', () => {
    const server = new TestServer();
    const [owner, other] = [server.connect(), server.connect()];
    server.advance(5000);
    let made = 0;
    const create = () => {
      const path = `/${made++}`;
      return { op: OpCode.create, path, data: null, acl: OPEN_ACL, flags: CreateMode.ephemeral, ttl: -1 } as const;
    };
    const creates = (count: number) => Array.from({ length: count }, create);
    /** Milliseconds until all requests and one after them are answered. */
    const msOf = (client: TestClient, requests: readonly Request[]) => {
      client.sendTogether([...requests, readRoot]);
      let answered = 0;
      for (let ms = 0; ; ms++) {
        server.run();
        answered += xidsOf(client).length;
        if (answered > requests.length) return ms;
        server.advance(1);
      }
    };
    const set: Request = { op: OpCode.setData, path: '/', data: null, version: -1 };
    expect(msOf(owner, creates(4096))).toBe(0);
    expect(msOf(owner, creates(640))).toBeCloseTo(10, -1);
    expect(msOf(other, [set])).toBe(0);
    expect(msOf(owner, creates(640))).toBeCloseTo(160, -1);
    server.advance(500);
    expect(msOf(other, creates(640))).toBe(0);
    owner.send({ op: OpCode.multi, ops: creates(640) });
    server.run();
    expect(xidsOf(owner)).toHaveLength(1);
    expect(msOf(owner, [])).toBeCloseTo(160, -1);
  });

  test('bounds the writes waiting for the disk if paths are long: another write waits for few of them', () => {
    const server = new TestServer();
    const [greedy, modest] = [server.connect(), server.connect()];
    const path = `/${'long'.repeat(1024)}`;
    const create = { op: OpCode.create, data: null, acl: OPEN_ACL, flags: CreateMode.persistent, ttl: -1 } as const;
    const set = { op: OpCode.setData, path, data: null, version: -1 } as const;
    greedy.send({ ...create, path });
    server.run();
    greedy.takeArrivals();
    for (const request of [set, { op: OpCode.multi, ops: [set] } as const]) {
      server.isDiskHeld = true;
      greedy.sendTogether(new Array(100).fill(request));
      for (let i = 0; i < 100; i++) server.core.onTurnEnd();
      expect(greedy.isPaused).toBe(true);
      expect(server.core.view.outstandingRequests).toBe(16);
      modest.send({ op: OpCode.setData, path: '/', data: null, version: -1 });
      server.core.onTurnEnd();
      expect(server.core.view.outstandingRequests).toBe(17);
      server.isDiskHeld = false;
      server.run();
      expect(xidsOf(greedy)).toHaveLength(100);
      expect(xidsOf(modest)).toHaveLength(1);
    }
  });

  test('bounds the writes waiting for the disk to about a megabyte: another write waits for no more', () => {
    const setOf = (bytes: number) => ({ op: OpCode.setData, path: '/a', data: new Uint8Array(bytes), version: -1 });
    const multi: Request = { op: OpCode.multi, ops: new Array(4).fill(setOf(50_000)) };
    for (const request of [setOf(200_000), multi]) {
      const server = new TestServer();
      const [greedy, modest] = [server.connect(), server.connect()];
      greedy.send(create('/a'));
      server.run();
      greedy.takeArrivals();
      server.isDiskHeld = true;
      greedy.sendTogether(new Array(30).fill(request));
      for (let i = 0; i < 100; i++) server.core.onTurnEnd();
      expect(greedy.isPaused).toBe(true);
      modest.send(create('/mine'));
      server.core.onTurnEnd();
      server.isDiskHeld = false;
      server.run();
      // After two sessions, a create, and six writes of the other client.
      expect(modest.takeArrivals()).toMatchObject([{ header: { error: 0, zxid: 3 + 6 + 1 } }]);
      expect(xidsOf(greedy)).toEqual(Array.from({ length: 30 }, (_, i) => i + 2));
    }
  });

  test('applies to reads that waited for a write, too', () => {
    const server = new TestServer({ globalOutstandingLimit: 2 * MANY });
    const [greedy, modest] = [server.connect(), server.connect()];
    server.isDiskHeld = true;
    greedy.sendTogether([create('/a'), ...new Array<Request>(MANY).fill(readRoot)]);
    server.run();
    expect(greedy.takeArrivals()).toEqual([]);
    server.isDiskHeld = false;
    while (server.disk.deliver());
    server.core.onTurnEnd();
    const first = xidsOf(greedy);
    expect(first.length).toBeLessThan(MANY / 2);
    modest.send(readRoot);
    server.core.onTurnEnd();
    expect(xidsOf(modest)).toEqual([1]);
    server.run();
    expect([...first, ...xidsOf(greedy)]).toEqual(Array.from({ length: MANY + 1 }, (_, i) => i + 1));
  });

  test('counts the names, entries and identities in replies to short requests', () => {
    const server = new TestServer();
    const [maker, reader] = [server.connect(), server.connect()];
    const acl: Acl[] = Array.from({ length: 500 }, (_, i) => ({ perms: Perm.all, scheme: 'digest', id: `u${i}:x` }));
    maker.sendTogether([
      create('/acl', CreateMode.persistent, { acl: [...acl, ...OPEN_ACL] }),
      create('/parent'),
      ...Array.from({ length: 500 }, (_, i) => create(`/parent/${i}`)),
    ]);
    for (let i = 0; i < 90; i++) reader.send({ op: OpCode.auth, scheme: 'digest', auth: Buffer.from(`u${i}:x`) }, -4);
    server.run();
    const asked: readonly Request[] = [
      { op: OpCode.getChildren, path: '/parent', watch: false },
      { op: OpCode.getACL, path: '/acl' },
      { op: OpCode.whoAmI },
    ];
    for (const request of asked) {
      reader.takeArrivals();
      reader.sendTogether(new Array(200).fill(request));
      server.core.onTurnEnd();
      expect(xidsOf(reader).length, String(request.op)).toBeLessThan(30);
      server.run();
    }
  });

  test('is a part of the cost of a turn, however many connections are busy: each gets its turn', () => {
    const server = new TestServer();
    const alone = server.connect();
    alone.sendTogether(new Array(MANY).fill(readRoot));
    server.core.onTurnEnd();
    const ofOne = xidsOf(alone).length;
    server.run();
    const crowd = Array.from({ length: 64 }, () => server.connect());
    for (const client of crowd) client.sendTogether(new Array(1500).fill(readRoot));
    server.core.onTurnEnd();
    for (const client of crowd) client.takeArrivals();
    const answered = crowd.map(() => 0);
    for (let turn = 0; turn < 8; turn++) {
      server.core.onTurnEnd();
      const counts = crowd.map((client) => xidsOf(client).length);
      expect(sumOf(counts)).toBeLessThanOrEqual(1.1 * ofOne);
      for (const [i, count] of counts.entries()) answered[i]! += count;
    }
    expect(Math.min(...answered)).toBeGreaterThan(0);
  });

  test('does not start long reads when others have used up the turn: few start per turn, and all in the end', () => {
    const server = new TestServer({ frameBytesMax: 2 ** 21 });
    const maker = server.connect();
    maker.send(create('/big', CreateMode.persistent, { bytes: 900_000 }));
    server.run();
    const part = { op: OpCode.getData, path: '/big' } as const;
    const clients = Array.from({ length: 12 }, () => server.connect());
    const modest = server.connect();
    const copied = vi.spyOn(DataTree.prototype, 'writeDataAndStat');
    for (const client of clients) client.sendTogether([{ op: OpCode.multiRead, ops: [part, part, part] }, readRoot]);
    modest.send(readRoot);
    const perTurn: number[] = [];
    while (perTurn.length < 100) {
      server.core.onTurnEnd();
      perTurn.push(copied.mock.calls.length);
      copied.mockClear();
      if (perTurn.length === 1) expect(xidsOf(modest)).toEqual([1]);
    }
    copied.mockRestore();
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(5);
    expect(sumOf(perTurn)).toBe(36);
    for (const client of clients) expect(xidsOf(client)).toEqual([1, 2]);
  });

  test('does not decode long requests of many clients in one turn', () => {
    const server = new TestServer({ frameBytesMax: 2 ** 21 });
    const clients = Array.from({ length: 12 }, () => server.connect());
    const set = { op: OpCode.setData, path: '/none', data: null, version: -1 } as const;
    const multi: Request = { op: OpCode.multi, ops: new Array(4000).fill(set) };
    for (const client of clients) client.sendTogether([multi, readRoot]);
    expect(server.core.view.outstandingRequests).toBe(1);
    expect(clients.filter(({ isPaused }) => isPaused)).toHaveLength(12);
    server.run();
    for (const client of clients) expect(xidsOf(client)).toEqual([1, 2]);
    expect(clients.filter(({ isPaused }) => isPaused)).toEqual([]);
  });

  test('comes once per round, also for connections that keep filling their output while others send little', () => {
    const server = new TestServer({ frameBytesMax: 2 ** 21 });
    const modest = Array.from({ length: 40 }, () => server.connect());
    modest[0]!.send({
      op: OpCode.create,
      path: '/big',
      data: new Uint8Array(2 ** 20),
      acl: OPEN_ACL,
      flags: 0,
      ttl: -1,
    });
    server.run();
    const greedy = Array.from({ length: 4 }, () => server.connect());
    const getBig: Request = { op: OpCode.getData, path: '/big', watch: false };
    for (const client of greedy) client.sendTogether(new Array(100).fill(getBig));
    for (let turn = 0; turn < 20; turn++) {
      for (const client of modest) client.sendTogether(new Array(40).fill(readRoot));
      server.core.onTurnEnd();
    }
    const turns = vi.spyOn(ClientConnection.prototype, 'onTurn');
    server.core.onTurnEnd();
    server.core.onTurnEnd();
    const connections = new Set(turns.mock.contexts);
    expect(turns.mock.calls.length).toBeLessThanOrEqual(2 * connections.size);
    turns.mockRestore();
  });

  test('counts the operations of a multi', () => {
    const server = new TestServer();
    const [greedy, modest] = [server.connect(), server.connect()];
    const check = { op: OpCode.check, path: '/', version: -1 } as const;
    const multi: Request = { op: OpCode.multi, ops: new Array(50).fill(check) };
    server.isDiskHeld = true;
    greedy.sendTogether(new Array(200).fill(multi));
    modest.send(multi);
    expect(server.core.view.outstandingRequests).toBeLessThan(20);
    expect(greedy.isPaused).toBe(true);
    expect(modest.isPaused).toBe(false);
    server.isDiskHeld = false;
    server.run();
    expect(xidsOf(greedy)).toHaveLength(200);
    expect(xidsOf(modest)).toEqual([1]);
  });
});

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
