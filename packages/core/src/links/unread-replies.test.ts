import { CreateMode, type MultiReadOp, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { PeerAddress } from '../base/ports.ts';
import { create } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';
import { UnreadReplies } from './unread-replies.ts';

const addressOf = (last: number): PeerAddress => ({
  ip: Uint8Array.of(10, 0, 0, last),
  host: `10.0.0.${last}`,
  port: 1,
});

describe('long replies that are not read', () => {
  test('are dropped once their total is too large: of the address with most of them, the oldest first', () => {
    const replies = new UnreadReplies<string>(100);
    replies.hold('a1', addressOf(1), 40);
    replies.hold('b1', addressOf(2), 30);
    replies.hold('b2', addressOf(2), 30);
    expect(replies.shed()).toBeNull();
    replies.hold('c', addressOf(3), 30);
    expect([replies.shed(), replies.shed(), replies.bytes]).toEqual(['b1', null, 100]);
    replies.hold('c', addressOf(3), 50);
    expect([replies.shed(), replies.shed(), replies.bytes]).toEqual(['a1', null, 80]);
  });

  test('no longer count once they are read', () => {
    const replies = new UnreadReplies<string>(100);
    for (let i = 0; i < 10; i++) {
      replies.hold('a', addressOf(1), 90);
      replies.release('a');
      replies.release('a');
    }
    expect([replies.bytes, replies.shed()]).toEqual([0, null]);
  });

  test('are kept if a single one exceeds the limit', () => {
    const replies = new UnreadReplies<string>(100);
    replies.hold('a', addressOf(1), 1000);
    expect(replies.shed()).toBeNull();
  });
});

const REPLY_BYTES = 200_000;

/** Requests a reply of about that length. */
function ask(client: TestClient): void {
  const op: MultiReadOp = { op: OpCode.getData, path: '/big' };
  client.send({ op: OpCode.multiRead, ops: [op, op] });
}

test('clients that do not read are disconnected before their replies fill the memory, and others are not', () => {
  const server = new TestServer({ multiReadBytesMax: REPLY_BYTES + 10_000 });
  const client = server.connect();
  client.send(create('/big', CreateMode.persistent, { bytes: REPLY_BYTES / 2 }));
  server.run();
  const deaf = Array.from({ length: 40 }, () => {
    const one = server.connect();
    one.isDeaf = true;
    ask(one);
    server.run();
    return one;
  });
  client.takeArrivals();
  ask(client);
  server.run();
  expect(client.takeArrivals()).toMatchObject([{ kind: 'reply', header: { error: 0 } }]);
  const open = deaf.filter(({ isClosed }) => !isClosed);
  expect(open.length).toBeGreaterThan(10);
  expect(open.length).toBeLessThanOrEqual(17);
  expect(open).toEqual(deaf.slice(-open.length));
  // A client that reads its reply makes room for another.
  open[0]!.listen();
  ask(open[0]!);
  server.run();
  expect(open[0]!.isClosed).toBe(false);
});
