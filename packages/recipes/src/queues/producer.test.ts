import { type Client, ConnectionLossError, NoAuthError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { aroundCommits, lostCommit } from '../testing/commits.ts';
import { drain } from '../testing/drain.ts';
import { Fleet, withClients } from '../testing/fleet.ts';
import { IdQueue } from './id-queue.ts';
import { Queue } from './queue.ts';

describe('a producer', () => {
  /** Delays transactions until the gate is opened. */
  function holdTransactions(client: Client): () => void {
    const begin = client.transaction.bind(client);
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    client.transaction = () => {
      const made = begin();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        await opened;
        return commit(options);
      };
      return made;
    };
    return () => {
      client.transaction = begin;
      open();
    };
  }

  test(
    'puts more items at once than fit into a shared transaction',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      const values = Array.from({ length: 250 }, (_unused, i) => `${i}`);
      await Promise.all([queue.put('before'), queue.putAll(values, { timeoutMs: 10_000 }), queue.put('behind')]);
      expect(await drain(queue)).toEqual(['before', ...values, 'behind']);
    }),
  );

  test(
    'continues with a put that has to create the queue while another one is cancelled',
    withClients(async (fleet, client) => {
      const ensurePath = client.ensurePath.bind(client);
      client.ensurePath = async (path, options) => {
        if (path === '/jobs') await fleet.world.sleep(1000);
        return ensurePath(path, options);
      };
      const queue = new Queue(client, '/jobs', { codec: text });
      const putting = queue.put('a', { timeoutMs: 30_000 });
      await fleet.world.sleep(500);
      await expect(queue.put('b', { timeoutMs: 100 })).rejects.toMatchObject({ outcome: 'not-applied' });
      await putting;
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'reports a queue that cannot be created',
    withClients(async (_, client) => {
      const refused = new NoAuthError({ operation: 'ensurePath', path: '/jobs' });
      const ensurePath = client.ensurePath.bind(client);
      client.ensurePath = (path, options) => (path === '/jobs' ? Promise.reject(refused) : ensurePath(path, options));
      const queue = new Queue(client, '/jobs', { codec: text });
      await expect(queue.put('a', { timeoutMs: 10_000 })).rejects.toMatchObject({ code: 'NOAUTH' });
    }),
  );

  test(
    'puts nothing later that was cancelled before it was refused',
    withClients(async (fleet, client) => {
      const options = { codec: text, itemsMax: 1 };
      const other = new Queue(await fleet.connect(), '/jobs', options);
      const queue = new Queue(client, '/jobs', options);
      await queue.put('first');
      await (await other.take()).done();
      const open = holdTransactions(client);
      await expect(queue.put('late', { timeoutMs: 500 })).rejects.toMatchObject({ outcome: 'unknown' });
      await other.put('x');
      open();
      await fleet.world.sleep(1000);
      expect(await drain(other)).toEqual(['x']);
      await fleet.world.sleep(1000);
      expect(await drain(other)).toEqual([]);
    }),
  );

  test(
    'puts items that fit as soon as a larger put ahead of them is cancelled',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax: 3 });
      await queue.putAll(['a', 'b']);
      const large = queue.putAll(['c', 'd'], { timeoutMs: 500 });
      const small = queue.put('e', { timeoutMs: 10_000 });
      await expect(large).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await small;
      expect(await drain(queue)).toEqual(['a', 'b', 'e']);
    }),
  );

  test(
    'recreates a full queue that is deleted while it waits for room',
    withClients(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax: 1 });
      await queue.put('a');
      const children = client.children.bind(client);
      client.children = (async (path: string, options: object) => {
        if (path === '/jobs') {
          client.children = children;
          await other.deleteRecursive('/jobs');
        }
        return children(path, options as never);
      }) as Client['children'];
      await queue.put('b', { timeoutMs: 10_000 });
      expect(await drain(queue)).toEqual(['b']);
    }),
  );

  test(
    'is not refused because of another put that cannot be sent',
    withClients(async (_, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      const puts = [queue.put('6', 'a'), queue.put('\u0000', 'b'), queue.put('8', 'c')];
      const results = await Promise.allSettled(puts);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(await drain(queue)).toEqual(['a', 'c']);
    }),
  );
});

describe('a reply that is lost', () => {
  /** Breaks the connection when the next request has been sent: it may or may not be applied. */
  async function breakSoon(fleet: Fleet, afterMs: number): Promise<void> {
    await fleet.world.sleep(afterMs);
    for (const end of fleet.world.network.openEnds) if (end.host === 'client1') end.breakStream();
  }

  test.each([true, false])('does not put or take anything twice (leases: %s)', async (leases) => {
    for (let seed = 1; seed <= 12; seed++) {
      const fleet = new Fleet(seed, { servers: 1 });
      await fleet.run(async () => {
        const client = await fleet.connect();
        const queue = new Queue(client, '/jobs', { codec: text, leases });
        const values = Array.from({ length: 10 }, (_, i) => `${i}`);
        const puts = values.map(async (value, i) => {
          await fleet.world.sleep(20 * i);
          await queue.put(value);
        });
        for (let i = 0; i < 8; i++) await breakSoon(fleet, 7 + 3 * seed);
        await Promise.all(puts);
        expect(await queue.size()).toBe(10);
        const breaking = (async () => {
          for (let i = 0; i < 20; i++) await breakSoon(fleet, 5 + seed);
        })();
        expect(await drain(queue)).toEqual(values);
        await breaking;
      });
    }
  });
});

describe('servers that accept less than the client assumes', () => {
  test.each([Number.POSITIVE_INFINITY, 10])(
    'refuse an item that is too large for them, but not the others (itemsMax: %d)',
    (itemsMax) =>
      withClients(async (fleet) => {
        const client = await fleet.connect({ requestBytesMax: 8 * 1024 * 1024 });
        const queue = new Queue(client, '/jobs', { codec: text, itemsMax });
        await queue.put('a');
        const puts = ['b', 'c'.repeat(400_000), 'd'.repeat(1_500_000), 'e'].map((value) => queue.put(value));
        const outcomes = await Promise.allSettled(puts);
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
        await expect(puts[2]).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'not-applied' });
        expect((await drain(queue)).map((value) => value[0])).toEqual(['a', 'b', 'c', 'e']);
      })(),
  );

  test(
    'get items one by one that are too large together',
    withClients(async (fleet) => {
      const client = await fleet.connect({ requestBytesMax: 8 * 1024 * 1024 });
      const queue = new Queue(client, '/jobs', { codec: text });
      const values = ['a', 'b', 'c'].map((letter) => letter.repeat(400_000));
      await expect(queue.putAll(values)).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'not-applied' });
      await Promise.all(values.map((value) => queue.put(value)));
      expect(await drain(queue)).toEqual(values);
    }),
  );

  test.each([1, 2])('do not leave a put in doubt when the doubt is resolved after %d lost replies', (deletionsMax) =>
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const remove = client.delete.bind(client);
      let losses = 0;
      let deletions = 0;
      aroundCommits(client, (commit) => {
        const isLost = losses < 2 || (losses === 2 && deletions < deletionsMax);
        if (!isLost) return commit();
        losses++;
        return Promise.reject(lostCommit());
      });
      client.delete = async (path, options) => {
        const isLost = deletions++ < deletionsMax;
        await remove(path, options).catch((error: unknown) => {
          if (!isLost) throw error;
        });
        if (isLost) throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await queue.put('b');
      expect([losses, deletions]).toEqual([deletionsMax + 1, deletionsMax]);
      client.delete = remove;
      expect(await drain(queue)).toEqual(['a', 'b']);
    })(),
  );

  test(
    'do not cause a put to be applied twice whose replies are lost as often',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      let losses = 0;
      const restore = aroundCommits(client, async (commit) => {
        const isApplied = losses === 0;
        if (isApplied) await commit();
        losses++;
        throw lostCommit();
      });
      await queue.put('b');
      restore();
      await queue.put('c');
      expect(losses).toBeGreaterThan(1);
      expect(await drain(queue)).toEqual(['a', 'b', 'c']);
    }),
  );
});
