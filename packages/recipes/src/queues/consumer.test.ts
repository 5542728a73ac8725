import { type Client, SessionLostError, text } from '@meerkat/client';
import { DEFAULT_LINK } from '@meerkat/simulator';
import { describe, expect, test } from 'vitest';
import { aroundNextCommit, lostCommit } from '../testing/commits.ts';
import { cutOff, drain } from '../testing/drain.ts';
import { Fleet, withClients } from '../testing/fleet.ts';
import { DelayQueue } from './delay-queue.ts';
import { IdQueue } from './id-queue.ts';
import { Queue } from './queue.ts';

describe('a queue without leases', () => {
  test.each(['heals', 'is closed'])(
    'keeps a loop from ending before its item is in the queue again, unless the client %s',
    (end) =>
      withClients(async (fleet, client) => {
        const queue = new Queue(client, '/jobs', { codec: text, leases: false });
        await queue.put('a');
        const looping = (async () => {
          for await (const item of queue) {
            expect(item.value).toBe('a');
            cutOff(fleet, 20_000);
            for (const open of fleet.world.network.openEnds) open.breakStream();
            // It is not in flight when the session ends.
            await fleet.world.sleep(100);
            break;
          }
        })();
        const state = { isSettled: false };
        const settled = looping.finally(() => {
          state.isSettled = true;
        });
        settled.catch(() => {});
        await fleet.world.sleep(10_000);
        expect(state.isSettled).toBe(false);
        if (end === 'heals') {
          await settled;
          expect(await drain(queue)).toEqual(['a']);
        } else {
          await client.close({ timeoutMs: 100 });
          await expect(settled).rejects.toMatchObject({ code: 'CLOSED' });
        }
      })(),
  );

  test(
    'has an item again that was released while disconnected, however long that took',
    withClients(async (fleet, client) => {
      const { network } = fleet.world;
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      network.block('client1', 'zk1');
      network.block('zk1', 'client1');
      for (const end of network.openEnds) end.breakStream();
      await expect(item.release({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      network.heal();
      await item.release();
      expect(await drain(queue)).toEqual(['a']);
    }),
  );
});

test(
  'leaves no lease behind for an item that was deleted when the reply was lost',
  withClients(async (fleet, client) => {
    const other = await fleet.connect();
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.putAll(['a', 'b']);
    aroundNextCommit(client, async (commit) => {
      await commit();
      await other.delete('/jobs/queue-0000000000');
      throw lostCommit();
    });
    await client.ensurePath('/jobs-leases');
    expect(await drain(queue)).toEqual(['b']);
    await fleet.world.sleep(1000);
    expect((await other.children('/jobs-leases')).children).toEqual([]);
  }),
);

test.each([true, false])('a wait continues when the session is lost while an item is claimed (leases: %s)', (leases) =>
  withClients(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text, leases });
    await queue.put('a');
    // With leases, a claim creates a znode whose parent is missing at first; without, it reads the item before it is
    // removed.
    const { get, ensurePath } = client;
    let failures = 0;
    const fail = (path: string): boolean => (path === '/jobs-leases' || path.startsWith('/jobs/')) && failures++ === 0;
    const lost = (path: string): SessionLostError => new SessionLostError({ operation: 'claim', path });
    client.get = ((path: string, options: object) =>
      fail(path) ? Promise.reject(lost(path)) : get.call(client, path, options as never)) as typeof client.get;
    client.ensurePath = (path, options) =>
      fail(path) ? Promise.reject(lost(path)) : ensurePath.call(client, path, options);
    const item = await queue.take({ timeoutMs: 10_000 });
    expect([item.value, failures > 0]).toEqual(['a', true]);
    await item.done();
    expect(await queue.size()).toBe(0);
  })(),
);

describe('a session that ends while an item is claimed', () => {
  /** Partitions a client as soon as it claims something, for longer than its session lives. */
  function cutAtClaim({ world }: Fleet, client: Client): void {
    const begin = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = begin;
      world.network.block('client1', 'zk1');
      world.network.block('zk1', 'client1');
      world.timeline.plan(10_000, () => world.network.heal());
      return begin();
    };
  }

  test(
    'does not make an item look missing',
    withClients(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      cutAtClaim(fleet, client);
      const item = await queue.tryTake();
      expect(item?.value).toBe('a');
      await item?.done();
    }),
  );

  test(
    'does not prevent the removal of an item',
    withClients(async (fleet, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'a');
      await queue.put('8', 'b');
      await queue.put('7', 'c');
      cutAtClaim(fleet, client);
      expect(await queue.remove('7')).toBe(2);
      expect(await drain(queue)).toEqual(['b']);
    }),
  );
});

test('releasing an item again, after a lost reply, does not take it from its next consumer', async () => {
  for (let breakMs = 0; breakMs < 8; breakMs += 0.5) {
    const fleet = new Fleet(1, { servers: 1 });
    await fleet.run(async () => {
      const [first, second] = await fleet.connectAll(2);
      const queue = new Queue(first!, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      const taking = new Queue(second!, '/jobs', { codec: text }).take();
      await fleet.world.sleep(100);
      const returning = item.release();
      await fleet.world.sleep(breakMs);
      for (const end of fleet.world.network.openEnds) if (end.host === 'client1') end.breakStream();
      const next = await taking;
      await returning;
      await fleet.world.sleep(3000);
      expect(next.isHeld, `the connection broke after ${breakMs} ms`).toBe(true);
      await next.done();
    });
  }
});

test(
  'releasing an item does not take it from a client that leased it after the lease was deleted by hand',
  withClients(async (fleet, client) => {
    const other = await fleet.connect();
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.put('a');
    const item = await queue.take();
    // The reply to the deletion is delayed that long.
    fleet.world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
    await other.delete('/jobs-leases/queue-0000000000');
    const next = await new Queue(other, '/jobs', { codec: text }).take();
    expect([item.isHeld, next.isHeld]).toEqual([true, true]);
    await item.release();
    await fleet.world.sleep(3000);
    expect(next.isHeld).toBe(true);
    await next.done();
  }),
);

test(
  'leaves no tallies behind when callers cancel while the clock of the service is read',
  withClients(async (fleet, client) => {
    const queue = new DelayQueue(client, '/later', { codec: text });
    await queue.put('first', { delayMs: 1 });
    fleet.world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
    // The first has a tally already, and each of the others creates its own before its timeout.
    for (const timeoutMs of [500, 1200, 1200, 1200]) {
      // The last clock reading is too old by then.
      await fleet.world.sleep(15_000);
      await expect(queue.put('slow', { delayMs: 1, timeoutMs })).rejects.toMatchObject({ code: 'TIMEOUT' });
    }
    await queue.put('last', { delayMs: 1 });
    await fleet.world.sleep(3000);
    expect((await client.children('/later-lines/tallies')).children).toHaveLength(1);
  }),
);
