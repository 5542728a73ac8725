/** Closed connections that had many watches, as seen by other clients. */
import { AddWatchMode, EventType, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { create, setData } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const MANY = 20_000;
const paths = Array.from({ length: MANY }, (_, i) => `/w${i}`);

/** setWatches2 of a client that is up to date. */
function setWatches(existWatches: readonly string[], recursive: readonly string[] = []): Request {
  return {
    op: OpCode.setWatches2,
    relativeZxid: 2 ** 40,
    dataWatches: [],
    existWatches: [...existWatches],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [...recursive],
  } as Request;
}

function eventsOf(client: TestClient): string[] {
  return client.takeArrivals().flatMap((arrival) => {
    if (arrival.kind !== 'event') return [];
    const name = Object.entries(EventType).find(([, type]) => type === arrival.event.type)?.[0];
    return [`${name} ${arrival.event.path}`];
  });
}

/** A server, and a client with very many watches. */
function makeServer(): { server: TestServer; crowded: TestClient } {
  const server = new TestServer({ frameBytesMax: 2 ** 24 });
  const crowded = server.connect();
  crowded.send(setWatches(paths, ['/']));
  server.run();
  return { server, crowded };
}

function watched(server: TestServer): { connections: number; paths: number; watches: number } {
  return server.core.view.watches.summary();
}

/** One turn, with everything that the disk has completed. */
function turn(server: TestServer): void {
  server.core.onTurnEnd();
  while (server.disk.deliver());
}

describe('the watches of a closed connection', () => {
  test('are released over several turns, in which others are answered, until all are gone', () => {
    const { server, crowded } = makeServer();
    const other = server.connect();
    expect(watched(server)).toEqual({ connections: 1, paths: MANY + 1, watches: MANY + 1 });
    crowded.drop();
    expect(watched(server)).toEqual({ connections: 0, paths: MANY + 1, watches: 0 });
    let turns = 0;
    for (let before = MANY + 1; before > 0; turns++) {
      other.send({ op: OpCode.exists, path: '/', watch: false });
      turn(server);
      expect(other.takeArrivals()).toHaveLength(1);
      const { paths: left } = watched(server);
      expect(left).toBeLessThan(before);
      expect(before - left).toBeLessThan(MANY / 4);
      before = left;
    }
    expect(turns).toBeGreaterThan(5);
    expect(server.core.nextDeadlineMs()).toBeGreaterThan(0);
  });

  test('get no events meanwhile, while other watchers of the same paths get each event once', () => {
    const { server, crowded } = makeServer();
    const [other, writer] = [server.connect(), server.connect()];
    other.send({ op: OpCode.exists, path: '/w7', watch: true });
    other.send({ op: OpCode.addWatch, path: '/w8', mode: AddWatchMode.persistent });
    server.run();
    crowded.takeArrivals();
    crowded.drop();
    writer.sendTogether([create('/w7'), create('/w8'), setData('/w7'), setData('/w8')]);
    turn(server);
    turn(server);
    expect(watched(server).paths).toBeGreaterThan(1000);
    expect(eventsOf(other)).toEqual(['nodeCreated /w7', 'nodeCreated /w8', 'nodeDataChanged /w8']);
    server.run();
    writer.sendTogether([setData('/w7'), setData('/w8')]);
    server.run();
    expect(eventsOf(other)).toEqual(['nodeDataChanged /w8']);
    expect(crowded.takeArrivals()).toEqual([]);
    expect(watched(server)).toEqual({ connections: 1, paths: 1, watches: 1 });
  });

  test('are separate from those that its session sets again on its next connection', () => {
    const { server, crowded } = makeServer();
    crowded.drop();
    const next = server.open();
    next.connect({ session: crowded.session! });
    next.send(setWatches(paths.slice(0, 100), ['/w1']));
    turn(server);
    turn(server);
    expect(watched(server).paths).toBeGreaterThan(1000);
    const writer = server.connect();
    writer.sendTogether([create('/w0'), create('/w1'), create('/w1/x'), create('/w200')]);
    server.run();
    expect(watched(server)).toEqual({ connections: 1, paths: 99, watches: 99 });
    writer.sendTogether([create('/w2'), setData('/w1/x')]);
    server.run();
    expect(eventsOf(next)).toEqual([
      'nodeCreated /w0',
      'nodeCreated /w1',
      'nodeCreated /w1/x',
      'nodeCreated /w2',
      'nodeDataChanged /w1/x',
    ]);
    expect(crowded.takeArrivals().some(({ kind }) => kind === 'event')).toBe(false);
  });
});
