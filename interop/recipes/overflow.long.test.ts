import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect, text } from '@meerkat/client';
import { Mutex, type MutexOptions, NameService, Queue, SequenceExhaustedError, sequenceOf } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { OPEN_ACL, type RecordBuilder, record } from '../harness/record-builder.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from '../harness/server-process.ts';

/** The last number that an Apache server assigns only once. */
const LAST = 2 ** 31 - 1;

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `locks whose sequence numbers overflow (${kind})`, () => {
    test('are recreated when the queue is empty, with the layout of Curator', async () => {
      // A process warns once for each path.
      const path = `/locks-${kind}`;
      await using place = await startAt(kind, path, LAST - 1);
      const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
      const first = await new Mutex(place.client, path).acquire();
      expect(sequenceOf(first.path)).toBe(LAST - 1);
      expect(await warned).toMatchObject({
        code: 'MEERKAT_SEQUENCE',
        message: expect.stringMatching(/^\/locks-\w+ has given 2147483646 sequence numbers, 99 % of those/),
      });

      // The waiting one gets the last number; on an Apache server those after it get the same one.
      const order: number[] = [];
      let holders = 0;
      const waiting: Promise<void>[] = [];
      for (let i = 0; i < 4; i++) {
        waiting.push(
          new Mutex(place.client, path).acquire().then(async (lock) => {
            expect(++holders).toBe(1);
            order.push(sequenceOf(lock.path) ?? -1);
            await place.client.sync();
            holders--;
            await lock.release();
          }),
        );
        await place.client.sync();
      }
      await first.release();
      await Promise.all(waiting);
      expect(order).toHaveLength(4);
      if (kind === 'meerkat') expect(order).toEqual([LAST, LAST + 1, LAST + 2, LAST + 3]);
      else expect(order[0]).toBe(LAST);

      const last = await new Mutex(place.client, path).acquire();
      expect(sequenceOf(last.path)).toBeLessThan(100);
      await last.release();
    });

    test('continue on our server, and are refused with a clear error on Apache, with the layout of kazoo', async () => {
      await using place = await startAt(kind, '/locks', LAST);
      const options: MutexOptions = { layout: 'kazoo' };
      const first = await new Mutex(place.client, '/locks', options).acquire();
      expect(sequenceOf(first.path)).toBe(LAST);
      const second = new Mutex(place.client, '/locks', options).acquire();
      if (kind === 'apache') {
        const error = await second.catch((failure: unknown) => failure);
        expect(error).toBeInstanceOf(SequenceExhaustedError);
        expect(String(error)).toContain('/locks: the server has used up the sequence numbers of this znode');
        await place.client.sync();
        expect(await new Mutex(place.client, '/locks', options).contenders()).toHaveLength(1);
        await first.release();
      } else {
        expect(await new Mutex(place.client, '/locks', options).tryAcquire()).toBeNull();
        await first.release();
        const lock = await second;
        expect(sequenceOf(lock.path)).toBe(LAST + 1);
        await lock.release();
      }
    });
  });

  describeWith(kind === 'apache' ? ['apache'] : [], `other sequence numbers that overflow (${kind})`, () => {
    test('no name or number is assigned twice, and a caller that gets none gets a clear error', async () => {
      await using place = await startAt(kind, '/ids', LAST - 2);
      const names = new NameService(place.client, '/');
      expect(await names.nextId('ids')).toBe(LAST - 2);
      await using worker = await names.claim('ids/worker-');
      expect(worker.name).toBe(`ids/worker-${LAST - 1}`);
      if (kind === 'meerkat') {
        expect(await names.nextId('ids')).toBe(LAST + 1);
        await using next = await names.claim('ids/worker-');
        expect(next.id).toBe(LAST + 2);
        return;
      }
      // First in sequence, and then so many in parallel that the server assigns some of them a negative number.
      const refused: unknown[] = [await names.nextId('ids').catch(ownError)];
      const calls = Array.from({ length: 10 }, () => names.claim('ids/worker-').catch(ownError));
      refused.push(...(await Promise.all(calls)));
      for (const error of refused) {
        expect(error).toBeInstanceOf(SequenceExhaustedError);
        expect(String(error)).toContain('/ids: the server has used up the sequence numbers of this znode');
      }
      // They leave nothing behind.
      let children: readonly string[] = [];
      do ({ children } = await place.client.children('/ids', { read: 'linearizable' }));
      while (children.length > 1);
      expect(children[0]).toContain(`worker-${LAST - 1}`);
    });

    test('a queue continues on our server, and reports a clear error on Apache', async () => {
      const path = `/jobs-${kind}`;
      await using place = await startAt(kind, path, LAST - 1);
      const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
      const queue = new Queue<string>(place.client, path, { codec: text });
      await queue.put('first');
      expect(await warned).toMatchObject({
        code: 'MEERKAT_SEQUENCE',
        message: expect.stringMatching(/^\/jobs-\w+ has given 2147483646 sequence numbers, 99 % of those/),
      });
      await queue.put('last');
      if (kind === 'apache') {
        const error = await queue.put('one more').catch(ownError);
        expect(error).toBeInstanceOf(SequenceExhaustedError);
        expect(String(error)).toContain('the item that had it last is still there');
      } else {
        await queue.put('one more');
      }
      const items = ['first', 'last', ...(kind === 'apache' ? [] : ['one more'])];
      for (const value of items) {
        await using item = await queue.take();
        expect(item.value).toBe(value);
        await item.done();
      }
      if (kind === 'meerkat') return;
      // As the error advises, because the queue is empty.
      await place.client.delete(path);
      await queue.putAll(['one', 'two']);
      expect((await place.client.children(path)).children.map(sequenceOf).sort()).toEqual([0, 1]);
    });
  });
}

function ownError(error: unknown): unknown {
  return error;
}

interface Place extends AsyncDisposable {
  readonly client: Client;
}

/** Starts a server with a znode that has already had this many children. */
async function startAt(kind: ServerKind, path: string, children: number): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'overflow-'));
  const data = join(directory, 'data', 'version-2');
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, 'snapshot.1'), makeSnapshot(path, children));
  const server = await ServerProcess.start(kind, { directory });
  const client = await connect(`127.0.0.1:${server.port}`, { connectTimeoutMs: 60_000 });
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.dispose();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A hand-built snapshot (snapshot-format.ts): the root, the system znodes, and one more znode. */
function makeSnapshot(path: string, children: number): Buffer {
  const znode = (builder: RecordBuilder, path: string, cversion: number): RecordBuilder =>
    builder
      .ustring(path)
      .buffer('')
      .long(1n)
      // czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid
      .long(1n)
      .long(1n)
      .long(1_700_000_000_000n)
      .long(1_700_000_000_000n)
      .int(0)
      .int(cversion)
      .int(0)
      .long(0n)
      .long(1n);
  const builder = record().raw(Buffer.from('ZKSN')).int(2).long(-1n);
  // No sessions, one ACL.
  builder.int(0).int(1).long(1n).acls(OPEN_ACL);
  znode(builder, '', 2);
  znode(builder, '/zookeeper', 2);
  znode(builder, '/zookeeper/config', 0);
  znode(builder, '/zookeeper/quota', 0);
  znode(builder, path, children);
  builder.ustring('/');
  return builder.long(adler32(builder.build())).ustring('/').build();
}

function adler32(bytes: Uint8Array): bigint {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return BigInt(b) * 65_536n + BigInt(a);
}
