import {
  AbortedError,
  BadReplyError,
  BadVersionError,
  ConnectionLossError,
  ReconfigDisabledError,
  RequestTooLargeError,
  TimeoutError,
} from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { describe, expect, test } from 'vitest';
import { errorOf } from '../outcome.ts';
import { StateLog } from '../state-log.ts';
import { type Site, text } from './site.ts';

/** Default jute.maxbuffer of a server. */
const FRAME_BYTES_MAX = 1_048_575;

/** Requests: order, size, consistency, timeout and abort. */
export function testRequests(site: Site): void {
  describe('requests', () => {
    test('10,000 requests in flight are executed and answered in call order', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path, '-1');
      const answered: number[] = [];
      const versions: number[] = [];
      const made: Promise<unknown>[] = [];
      for (let i = 0; i < 5000; i++) {
        made.push(
          client.set(path, String(i), { version: i }).then((stat) => {
            versions.push(stat.version);
            answered.push(2 * i);
          }),
          client.get(path).then(({ data, stat }) => {
            answered.push(2 * i + 1);
            // A client reads its own writes, and nothing that it has not written yet.
            if (text(data) !== String(i) || stat.version !== i + 1) throw new Error(`${i} read as ${text(data)}`);
          }),
        );
      }
      await Promise.all(made);
      expect(answered).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
      expect(versions).toEqual(Array.from({ length: 5000 }, (_, i) => i + 1));
    });

    test('a refused request does not affect other requests', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      const results = await Promise.allSettled([
        client.set(path, 'a', { version: 0 }),
        client.set(path, 'b', { version: 0 }),
        client.set(path, 'c', { version: 1 }),
        client.exists(`${path}/none`),
        client.get(path),
      ]);
      expect(results.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
        'fulfilled',
      ]);
      expect(results[1]).toMatchObject({ reason: expect.any(BadVersionError) });
      expect(results[4]).toMatchObject({ value: { stat: { version: 2 } } });
    });

    test('a request may be as large as a frame, but not larger', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      // setData: xid, op, path, data, version.
      const overhead = 4 + 4 + (4 + path.length) + 4 + 4;
      const largest = new Uint8Array(FRAME_BYTES_MAX - overhead).fill(7);
      expect(await client.set(path, largest)).toMatchObject({ version: 1, dataLength: largest.length });
      const { data } = await client.get(path);
      expect(Buffer.compare(data, largest)).toBe(0);

      const states = new StateLog(client);
      const before = client.set(path, 'small');
      const tooLarge = errorOf(client.set(path, new Uint8Array(largest.length + 1)));
      const after = client.set(path, 'also small');
      const error = await tooLarge;
      expect(error).toBeInstanceOf(RequestTooLargeError);
      expect(error).toMatchObject({ code: 'REQUESTTOOLARGE', operation: 'set', path, outcome: 'not-applied' });
      expect([(await before).version, (await after).version]).toEqual([2, 3]);
      expect(states.states).toEqual([]);
    });

    test('a request that is too large for the server only costs the connection', async () => {
      await using client = await site.connect({ requestBytesMax: 64 * 1024 * 1024, backOff: { minMs: 1, maxMs: 5 } });
      const path = site.freshPath();
      await client.create(path);
      const session = client.session?.id;
      const [write, read] = await Promise.allSettled([
        client.set(path, new Uint8Array(2 * FRAME_BYTES_MAX)),
        client.get(path),
      ]);
      expect(write).toMatchObject({ reason: expect.any(ConnectionLossError) });
      expect(read).toMatchObject({ value: { stat: { version: 0 } } });
      expect(client.session?.id).toBe(session);
    });

    test('a reply that exceeds the limit fails its request, not the client', async () => {
      await using client = await site.connect({ replyBytesMax: 2000, backOff: { minMs: 1, maxMs: 5 } });
      const path = site.freshPath();
      await client.create(path, new Uint8Array(5000));
      const error = await errorOf(client.get(path));
      expect(error).toBeInstanceOf(BadReplyError);
      expect(error).toMatchObject({ path, operation: 'get', server: site.address });
      expect(await client.exists(path)).toMatchObject({ dataLength: 5000 });
    });

    test('a linearizable read sees writes acknowledged to any other client', async () => {
      await using writer = await site.connect();
      await using reader = await site.connect();
      const path = site.freshPath();
      await writer.create(path, '0');
      await writer.create(`${path}/0`);
      for (let i = 1; i <= 50; i++) {
        await writer.set(path, String(i));
        expect(text((await reader.get(path, { read: 'linearizable' })).data)).toBe(String(i));
        expect(await reader.exists(path, { read: 'linearizable' })).toMatchObject({ version: i });
      }
      const { children } = await reader.children(path, { read: 'linearizable' });
      expect(children).toEqual(['0']);
      expect(await reader.exists(`${path}/none`, { read: 'linearizable' })).toBeNull();
      const { stat, changed } = await reader.get(path, { read: 'linearizable', watch: true });
      expect(stat.version).toBe(50);
      await writer.set(path, 'last');
      expect(await changed).toMatchObject({ type: 'changed', path });
      expect((await errorOf(reader.get(`${path}/none`, { read: 'linearizable' }))).code).toBe('NONODE');
    });

    test('sync, ping, config and reconfig are answered', async () => {
      await using client = await site.connect();
      await client.sync();
      await client.sync(site.freshPath());
      expect(await client.ping()).toBeGreaterThanOrEqual(0);
      const { data, stat } = await client.config();
      expect(text(data)).toBe('');
      expect(stat.version).toBe(0);
      const error = await errorOf(client.reconfig({ leaving: [3] }));
      expect(error).toBeInstanceOf(ReconfigDisabledError);
      expect(error).toMatchObject({ operation: 'reconfig', outcome: 'not-applied' });
    });

    test('a request times out after timeoutMs; its late reply does not affect others', async () => {
      await using proxy = await TcpProxy.start({ target: site.server.port });
      await using client = await site.connectThrough(proxy);
      const path = site.freshPath();
      await client.create(path);
      proxy.freeze('toClient');
      const [write, read, patient] = await Promise.all([
        errorOf(client.set(path, 'a', { timeoutMs: 30 })),
        errorOf(client.get(path, { timeoutMs: 20, watch: true })),
        (async () => {
          const made = client.set(path, 'b');
          await new Promise((resolve) => setTimeout(resolve, 60));
          proxy.thaw();
          return made;
        })(),
      ]);
      expect(write).toBeInstanceOf(TimeoutError);
      expect(write).toMatchObject({ code: 'TIMEOUT', operation: 'set', path, outcome: 'unknown' });
      expect(read).toBeInstanceOf(TimeoutError);
      expect(read).toMatchObject({ outcome: 'not-applied' });
      // The first write was sent and applied; its outcome was unknown.
      expect(patient.version).toBe(2);
      expect(text((await client.get(path)).data)).toBe('b');
    });

    test('a signal aborts requests, with its reason as the cause', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      const reason = new Error('enough');
      const early = await errorOf(client.create(path, '', { signal: AbortSignal.abort(reason) }));
      expect(early).toBeInstanceOf(AbortedError);
      expect(early).toMatchObject({ name: 'AbortError', cause: reason, outcome: 'not-applied', path });
      expect(await client.exists(path)).toBeNull();

      const controller = new AbortController();
      const { signal } = controller;
      const many = Array.from({ length: 100 }, () => errorOf(client.get('/', { signal })));
      const write = errorOf(client.create(path, '', { signal }));
      controller.abort(reason);
      for (const error of await Promise.all(many)) expect(error).toMatchObject({ name: 'AbortError', cause: reason });
      expect(await write).toMatchObject({ name: 'AbortError', outcome: 'unknown' });
      // It was in flight, and the server has applied it.
      expect(await client.exists(path)).not.toBeNull();
    });
  });
}
