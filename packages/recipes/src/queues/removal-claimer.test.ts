import { bytes, NotReadOnlyError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { drain } from '../testing/drain.ts';
import { withClients } from '../testing/fleet.ts';
import { IdQueue } from './id-queue.ts';
import { Queue } from './queue.ts';

describe('an item without a lease', () => {
  test(
    'returns to a queue that was deleted when it was empty',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      // A person may do that, and the service does if Curator has created the queue, which is a container then.
      await client.delete('/jobs');
      await item.release();
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'is in the queue again when a loop has ended for which it came too late',
    withClients(async (fleet, client) => {
      const rest = new Queue(client, '/jobs', { codec: text, leases: false });
      const outcomes = new Set<unknown>();
      for (let ms = 0; ms < 12; ms += 0.5) {
        const mortal = await fleet.connect();
        const queue = new Queue(mortal, '/jobs', { codec: text, leases: false });
        await rest.put('a');
        const end = new AbortController();
        const done: string[] = [];
        const looping = (async () => {
          for await (const item of queue.items({ signal: end.signal })) {
            done.push(item.value);
            await item.done();
          }
        })();
        const other = new Queue(mortal, '/other', { codec: text, leases: false });
        await fleet.world.sleep(ms);
        end.abort();
        await looping;
        await expect(other.take({ timeoutMs: 1 })).rejects.toMatchObject({ outcome: 'not-applied' });
        await mortal.close();
        outcomes.add(done.length);
        expect([...done, ...(await drain(rest))], `aborted after ${ms} ms`).toEqual(['a']);
      }
      expect(outcomes).toEqual(new Set([0, 1]));
    }),
  );

  test(
    'is reported as in doubt when the caller cancels or the client is closed before the reply',
    withClients(async (fleet, client) => {
      for (const end of ['timeout', 'close', 'close a loop'] as const) {
        const mortal = await fleet.connectAs('mortal');
        const queue = new Queue(mortal, '/jobs', { codec: text, leases: false });
        await new Queue(client, '/jobs', { codec: text }).put('a');
        const begin = mortal.transaction.bind(mortal);
        mortal.transaction = () => {
          fleet.world.network.block('zk1', 'mortal');
          return begin();
        };
        const options = end === 'timeout' ? { timeoutMs: 1000 } : {};
        const taking = end === 'close a loop' ? queue.items().next() : queue.take(options);
        const refused = expect(taking).rejects.toMatchObject({ outcome: 'unknown' });
        await fleet.world.sleep(1500);
        await mortal.close({ timeoutMs: 100 });
        await refused;
        fleet.world.network.heal();
        await fleet.world.sleep(20_000);
        await drain(new Queue(client, '/jobs', { codec: text }));
      }
    }),
  );

  test(
    'is taken and removed also when its data is changed at that moment',
    withClients(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new IdQueue(client, '/orders', { codec: bytes, leases: false });
      const data = new TextEncoder().encode('changed');
      for (const what of ['take', 'remove'] as const) {
        await queue.put('7', new Uint8Array(0));
        const { get } = client;
        client.get = (async (path: string, options: object) => {
          client.get = get;
          const read = await get.call(client, path, options as never);
          await other.set(path, data);
          return read;
        }) as unknown as typeof client.get;
        if (what === 'take') expect((await queue.tryTake())?.data).toEqual(data);
        else expect(await queue.remove('7')).toBe(1);
        expect(await queue.size()).toBe(0);
      }
    }),
  );

  test(
    'is released when there is a quorum again, after a loop ended on a server without one',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const begin = client.transaction.bind(client);
      for await (const _item of queue) {
        let refusals = 0;
        client.transaction = () => {
          const made = begin();
          if (++refusals <= 3) {
            made.commit = () => Promise.reject(new NotReadOnlyError({ operation: 'transaction', path: null }));
          }
          return made;
        };
        break;
      }
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'can be released again when the service has refused it the first time',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      await client.setAcl('/jobs', [{ perms: ALL & ~CREATE, scheme: 'world', id: 'anyone' }]);
      await expect(item.release()).rejects.toMatchObject({ cause: { code: 'NOAUTH' } });
      await expect(item.done()).rejects.toThrow('released');
      await client.setAcl('/jobs', [{ perms: ALL, scheme: 'world', id: 'anyone' }]);
      await Promise.all([item.release(), item.release()]);
      expect(await drain(queue)).toEqual(['a']);
    }),
  );
});

const ALL = 31;
const CREATE = 4;
