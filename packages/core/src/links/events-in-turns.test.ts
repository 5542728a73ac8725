import { AddWatchMode, EventType, OpCode, type Request } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { create } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

const WATCHERS = 1000;
const readRoot: Request = { op: OpCode.exists, path: '/', watch: false };
const readWatched: Request = { op: OpCode.getData, path: '/watched', watch: false };

function setData(text: string): Request {
  return { op: OpCode.setData, path: '/watched', data: Buffer.from(text), version: -1 };
}

/** Many clients that watch a znode, and one that has written to it; the write is applied in the current turn. */
function written(): { server: TestServer; writer: TestClient; other: TestClient; watchers: TestClient[] } {
  const server = new TestServer();
  const [writer, other] = [server.connect(), server.connect()];
  writer.send(create('/watched'));
  const watchers = Array.from({ length: WATCHERS }, () => server.connect());
  for (const watcher of watchers)
    watcher.send({ op: OpCode.addWatch, path: '/watched', mode: AddWatchMode.persistent });
  server.run();
  for (const client of [writer, other, ...watchers]) client.takeArrivals();
  writer.send(setData('a'));
  server.core.onTurnEnd();
  while (server.disk.deliver());
  return { server, writer, other, watchers };
}

const kindsOf = (client: TestClient): string[] => client.takeArrivals().map(({ kind }) => kind);

test('an event for thousands of clients leaves over several turns, and replies do not wait for it', () => {
  const { server, writer, other, watchers } = written();
  other.send(readRoot);
  const received: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    server.core.onTurnEnd();
    received.push(watchers.filter((watcher) => watcher.takeArrivals().length > 0).length);
    if (turn === 0) expect([kindsOf(writer), kindsOf(other)]).toEqual([['reply'], ['reply']]);
  }
  expect(Math.max(...received)).toBeLessThanOrEqual(128);
  expect(received.reduce((sum, count) => sum + count, 0)).toBe(WATCHERS);
});

test('an event reaches a client before a reply that shows the change, even if it has not left yet', () => {
  const { server, watchers } = written();
  const last = watchers.at(-1)!;
  last.send(readWatched);
  server.core.onTurnEnd();
  expect(last.takeArrivals()).toMatchObject([
    { kind: 'event', event: { type: EventType.nodeDataChanged, path: '/watched' } },
    { kind: 'reply' },
  ]);
  server.run();
  expect(last.takeArrivals()).toEqual([]);
  for (const watcher of watchers.slice(0, -1)) expect(kindsOf(watcher)).toEqual(['event']);
});

test('new events leave together with waiting ones, in order', () => {
  const { server, writer, watchers } = written();
  writer.sendTogether([setData('b'), setData('c')]);
  server.core.onTurnEnd();
  while (server.disk.deliver());
  server.run();
  for (const watcher of watchers) expect(kindsOf(watcher)).toEqual(['event', 'event', 'event']);
});

test('a client may close while its event waits, and a stopping server sends the other events', () => {
  const { server, watchers } = written();
  watchers[500]!.drop();
  server.core.onTurnEnd();
  server.core.stop();
  server.core.onTurnEnd();
  expect(server.failure).toBeNull();
  expect(kindsOf(watchers.at(-1)!)[0]).toBe('event');
});
