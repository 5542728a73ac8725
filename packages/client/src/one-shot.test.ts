import { ErrorCode, OpCode } from '@meerkat/protocol';
import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { json } from './codec/json.ts';
import { connect } from './connect.ts';
import { AuthFailedError, ClosedError, NoWatcherError } from './errors.ts';
import { Bytes, PASSWORD, replyBytes } from './machine/testing/scripted-server.ts';
import { OneShotWatch } from './one-shot.ts';
import type { Transport, TransportEvents, TransportStream } from './transport/transport.ts';

test('the promise has the event, with the path relative to the chroot', async () => {
  const watch = new OneShotWatch((path) => path.replace('/app', ''));
  watch.onWatchSuspended();
  watch.onWatchRearmed();

  watch.onWatchEvent({ type: 'changed', path: '/app/config', zxid: 7n });

  expect(await watch.changed).toEqual({ type: 'changed', path: '/config', zxid: 7n });
});

test.each([
  ['closed', ClosedError],
  ['auth-failed', AuthFailedError],
  ['removed', NoWatcherError],
] as const)('a watch that ends (%s) rejects, and the rejection may stay unhandled', async (reason, type) => {
  const about = { operation: 'get', path: '/config' };
  const watched = new OneShotWatch((path) => path, about);
  const forgotten = new OneShotWatch((path) => path, about);

  watched.onWatchEnded(reason);
  forgotten.onWatchEnded(reason);

  await expect(watched.changed).rejects.toBeInstanceOf(type);
  await expect(watched.changed).rejects.toMatchObject(about);
});

test('a read with a watch reports the next change, also after a reconnect and on a new session', async () => {
  await using server = await TestServer.start();
  await using writer = await connect(server.connectString);
  await using client = await connect(server.connectString);
  await writer.create('/a', 'one');

  const first = await client.get('/a', { watch: true });
  await writer.set('/a', 'two');
  expect(await first.changed).toMatchObject({ type: 'changed', path: '/a' });

  const second = await client.exists('/a', { watch: true });
  await server.restart();
  await writer.set('/a', 'three');
  expect(await second.changed).toMatchObject({ type: 'changed', path: '/a' });

  const third = await client.children('/a', { watch: true });
  await server.expireSession(client.session?.id ?? 0n);
  await writer.create('/a/b');
  expect(await third.changed).toMatchObject({ type: 'children', path: '/a' });
});

test('a watch whose client is closed rejects', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const { changed } = await client.exists('/a', { watch: true });

  await client.close();

  await expect(changed).rejects.toBeInstanceOf(ClosedError);
});

test('a removed watch reports nothing, and leaves others on the same path', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  await client.create('/a');
  const kept = await client.get('/a', { watch: true });
  const dropped = await client.get('/a', { watch: true });
  const received: string[] = [];
  void dropped.changed.then(() => received.push('dropped'));

  dropped[Symbol.dispose]();
  await client.set('/a', 'new');
  await kept.changed;
  const again = await client.get('/a', { watch: true });
  await client.set('/a', 'newer');
  await again.changed;

  expect(received).toEqual([]);
  expect(Object.keys(dropped)).toEqual(['data', 'stat', 'changed']);
});

test.each([
  ['whose sync was refused', { read: 'linearizable' }, { code: 'THROTTLEDOP' }],
  ['whose data cannot be decoded', { codec: json() }, { code: 'DECODEFAILED' }],
] as const)('a read %s leaves no watch, although the read itself set one', async (_, options, error) => {
  const service = new RefusingSync();
  await using client = await connect('127.0.0.1:1', { transport: service });

  await expect(client.get('/a', { watch: true, ...options })).rejects.toMatchObject(error);
  await client.exists('/b', { watch: true });
  service.cut();
  await client.sync().catch(() => {});

  // Watches that a client still waits for are rearmed before anything else.
  const numbers = new Bytes().int(0).int(1).text('/b').int(0);
  expect(service.rearmed).toEqual([new Uint8Array(numbers.list)]);
});

/** A service that is too busy to sync, and answers the few other requests. */
class RefusingSync implements Transport {
  /** The lists of each setWatches. */
  readonly rearmed: Uint8Array[] = [];
  #events: TransportEvents | null = null;

  resolve(): Promise<readonly string[]> {
    return Promise.resolve(['127.0.0.1']);
  }

  probe(): Promise<string> {
    return Promise.reject(new Error('no server is asked'));
  }

  connect(_target: unknown, events: TransportEvents): TransportStream {
    this.#events = events;
    let isFirst = true;
    queueMicrotask(() => events.onOpen());
    return {
      write: (bytes) => {
        const view = new DataView(bytes.slice().buffer);
        for (let at = 0; at < view.byteLength; at += 4 + view.getInt32(at)) {
          const xid = view.getInt32(at + 4);
          const body = new Uint8Array(view.buffer, at + 12, view.getInt32(at) - 8);
          const answer = isFirst ? accepted() : this.#answer(xid, view.getInt32(at + 8), body);
          isFirst = false;
          queueMicrotask(() => events.onBytes(answer));
        }
        return true;
      },
      destroy() {},
    };
  }

  cut(): void {
    this.#events?.onClosed(null, 'cut');
  }

  #answer(xid: number, op: number, body: Uint8Array): Uint8Array {
    switch (op) {
      case OpCode.sync:
        return replyBytes(xid, 0, ErrorCode.throttledOp);
      case OpCode.getData:
        return replyBytes(xid, 7, 0, new Bytes().text('hi').stat(7));
      case OpCode.exists:
        return replyBytes(xid, 7, ErrorCode.noNode);
      case OpCode.setWatches:
        this.rearmed.push(body.slice(8));
    }
    return replyBytes(xid, 7, 0);
  }
}

function accepted(): Uint8Array {
  return new Bytes().int(0).int(9000).long(0x77).buffer(PASSWORD).byte(0).frame();
}
