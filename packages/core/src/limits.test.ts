import { CreateMode, ErrorCode, JuteWriter, OpCode, type Request, WatcherType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMIT_OPTIONS, type LimitOptions } from './base/limit-options.ts';
import { create, getData } from './testing/core-requests.ts';
import { type TestClient, TestServer } from './testing/test-server.ts';

function serverWith(limits: Partial<LimitOptions>): TestServer {
  return new TestServer({ limits: { ...DEFAULT_LIMIT_OPTIONS, ...limits } });
}

function ask(server: TestServer, client: TestClient, ...requests: readonly Request[]): number[] {
  client.sendTogether(requests);
  server.run();
  return client.takeArrivals().flatMap((arrival) => (arrival.kind === 'reply' ? [arrival.header.error] : []));
}

const errorsOf = (client: TestClient): number[] =>
  client.takeArrivals().flatMap((arrival) => (arrival.kind === 'reply' ? [arrival.header.error] : []));

const limitsReached = (server: TestServer): unknown[] =>
  server.trace.flatMap((event) => (event.kind === 'limit-reached' ? [[event.limit, event.refused]] : []));

describe('a limit', () => {
  test('on sessions refuses new ones, and resumes existing ones', () => {
    const server = serverWith({ sessionsMax: 1 });
    const first = server.connect();
    const second = server.open();
    second.connect();
    server.run();
    expect(second.isClosed).toBe(true);
    const again = server.open();
    again.connect({ session: first.session! });
    server.run();
    expect(again.takeArrivals()[0]).toMatchObject({ kind: 'session', response: { sessionId: first.session!.id } });
    expect(limitsReached(server)).toEqual([['sessions', 1]]);
  });

  test('on connects reports the token deficit and the drop chance', () => {
    const { connecting } = DEFAULT_LIMIT_OPTIONS;
    const limits = { tokens: 2, fillTimeMs: 1_000_000, freezeTimeMs: 0, dropIncrease: 0.5 };
    const server = serverWith({ connecting: { ...connecting, ...limits } });
    server.connect();
    server.connect();
    server.advance(100);
    server.open().connect();
    server.run();
    const { tokenDeficit, connectDropChance } = server.core.view.meters;
    expect([tokenDeficit.count, tokenDeficit.min, tokenDeficit.max, connectDropChance]).toEqual([2, 1, 2, 0.5]);
  });

  test('on watches refuses a read that would add one more', () => {
    const server = serverWith({ watchesMax: 1 });
    const client = server.connect();
    expect(ask(server, client, getData('/', true), getData('/', false))).toEqual([ErrorCode.ok, ErrorCode.ok]);
    expect(ask(server, client, getData('/zookeeper', true))).toEqual([ErrorCode.throttledOp]);
    const remove: Request = { op: OpCode.removeWatches, path: '/', watcherType: WatcherType.data };
    expect(ask(server, client, remove, getData('/zookeeper', true))).toEqual([ErrorCode.ok, ErrorCode.ok]);
  });

  test('on requests holds connections back, and eventually answers every request', () => {
    for (const limits of [{ requestsMax: 1 }, { sessionRequestsMax: 1 }]) {
      const server = serverWith(limits);
      const clients = [server.connect(), server.connect()];
      for (const [i, client] of clients.entries())
        client.sendTogether([create(`/${i}a`), create(`/${i}b`), getData('/')]);
      server.run();
      for (const client of clients) {
        const errors = client
          .takeArrivals()
          .flatMap((arrival) => (arrival.kind === 'reply' ? [arrival.header.error] : []));
        expect(errors).toEqual([ErrorCode.ok, ErrorCode.ok, ErrorCode.ok]);
      }
    }
  });

  test('on how long requests are throttled refuses later ones in order, but not pings and closeSession', () => {
    const server = serverWith({ requestsMax: 1, requestWaitMaxMs: 500 });
    const [early, late] = [server.connect(), server.connect()];
    server.isDiskHeld = true;
    early.sendTogether([create('/a'), create('/b'), getData('/'), { op: OpCode.ping }, { op: OpCode.closeSession }]);
    server.advance(300);
    late.sendTogether([create('/c'), getData('/c')]);
    server.advance(300);
    server.isDiskHeld = false;
    server.run();
    expect(errorsOf(early)).toEqual([0, ErrorCode.throttledOp, ErrorCode.throttledOp, 0, 0]);
    expect(errorsOf(late)).toEqual([ErrorCode.ok, ErrorCode.ok]);
    expect(limitsReached(server)).toEqual([['late-requests', 1]]);
    expect(server.core.limits.countOf('late-requests')).toBe(2);
    expect(server.core.view.meters).toMatchObject({ throttleWaits: 2, staleRequests: 0 });
  });

  test('on requests closes a connection whose request outlived the session timeout, if stale ones are dropped', () => {
    for (const dropsStale of [true, false]) {
      const server = serverWith({ requestsMax: 1, countsStale: true, dropsStale });
      const [slow, patient] = [server.connect(2000), server.connect(10_000)];
      server.isDiskHeld = true;
      for (const [i, client] of [slow, patient].entries()) client.sendTogether([create(`/${i}a`), create(`/${i}b`)]);
      server.advance(4000);
      server.isDiskHeld = false;
      server.run();
      expect(slow.isClosed).toBe(dropsStale);
      expect(patient.isClosed).toBe(false);
      expect(errorsOf(patient)).toEqual([ErrorCode.ok, ErrorCode.ok]);
      const counted = dropsStale ? [0, 1] : [1, 0];
      const { staleRequests, staleRequestsDropped } = server.core.view.meters;
      expect([staleRequests, staleRequestsDropped]).toEqual(counted);
    }
  });

  test('on large requests closes the connection that exceeds it, until another request is answered or gone', () => {
    const server = serverWith({ largeRequestBytes: 1000, largeRequestsBytesMax: 1500 });
    const [slow, other] = [server.connect(), server.connect()];
    slow.sendBytes(lengthOf(1200));
    server.run();
    expect(ask(server, other, create('/small'))).toEqual([ErrorCode.ok]);
    ask(server, other, create('/large', CreateMode.persistent, { bytes: 1100 }));
    expect(other.isClosed).toBe(true);
    expect(limitsReached(server)).toEqual([['large-requests', 1]]);
    slow.drop();
    const third = server.connect();
    expect(ask(server, third, create('/a', CreateMode.persistent, { bytes: 1100 }))).toEqual([ErrorCode.ok]);
    expect(ask(server, third, create('/b', CreateMode.persistent, { bytes: 1100 }))).toEqual([ErrorCode.ok]);
  });
});

describe('a server with a growth refusal', () => {
  test('refuses what adds to the tree, alone or in a multi, and nothing else', () => {
    const server = new TestServer();
    const client = server.connect();
    expect(ask(server, client, create('/a'))).toEqual([ErrorCode.ok]);
    server.core.limits.growthRefusal = 'the disk is nearly full';
    const remove = { op: OpCode.delete, path: '/a', version: -1 } as const;
    const check = { op: OpCode.check, path: '/a', version: -1 } as const;
    const multi = (ops: unknown): Request => ({ op: OpCode.multi, ops }) as Request;
    expect(ask(server, client, create('/b'), multi([create('/c'), remove]), getData('/a'))).toEqual([
      ErrorCode.throttledOp,
      ErrorCode.throttledOp,
      ErrorCode.ok,
    ]);
    expect(ask(server, client, multi([check, remove]))).toEqual([ErrorCode.ok]);
    server.core.limits.growthRefusal = null;
    expect(ask(server, client, create('/b'))).toEqual([ErrorCode.ok]);
  });
});

/** The length field of a frame. */
function lengthOf(bytes: number): Uint8Array {
  const writer = new JuteWriter(4);
  writer.int(bytes);
  return writer.toBytes();
}
