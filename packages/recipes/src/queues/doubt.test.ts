import { type Client, NotReadOnlyError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { CountDownLatch } from '../barriers/count-down-latch.ts';
import { aroundCommits, aroundNextCommit, lostCommit } from '../testing/commits.ts';
import { drain } from '../testing/drain.ts';
import { type Fleet, withClients } from '../testing/fleet.ts';
import { DelayQueue } from './delay-queue.ts';
import { Queue } from './queue.ts';

describe('an operation in doubt', () => {
  /** The next transaction is sent, and the connection breaks for this long before its reply. */
  function loseNextReply({ world }: Fleet, client: Client, durationMs: number): void {
    aroundNextCommit(client, (commit) => {
      const committed = commit();
      world.timeline.plan(1, () => {
        world.network.block('client1', 'zk1');
        world.network.block('zk1', 'client1');
        for (const end of world.network.openEnds) if (end.host === 'client1') end.breakStream();
      });
      world.timeline.plan(durationMs, () => world.network.heal());
      return committed;
    });
  }

  test(
    'stays in doubt when the client is closed',
    withClients(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      loseNextReply(fleet, client, 60_000);
      const putting = queue.put('b');
      const whenPut = expect(putting).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await client.close({ timeoutMs: 100 });
      await whenPut;
    }),
  );

  test(
    'is not repeated in another session: its outcome stays unknown',
    withClients(async (fleet, client, other) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      const latch = new CountDownLatch(client, '/latch', 5);
      await queue.put('a');
      await latch.countDown();
      for (const operation of [() => queue.put('b'), () => latch.countDown()]) {
        loseNextReply(fleet, client, 60_000);
        await expect(operation()).rejects.toMatchObject({ code: 'SESSIONLOST', outcome: 'unknown' });
        await client.whenConnected();
      }
      const items = (await other.children('/jobs')).children;
      expect(items.filter((name) => name.startsWith('queue-'))).toHaveLength(2);
      expect(await new CountDownLatch(other, '/latch', 5).count()).toBe(3);
    }, 2),
  );

  test(
    'does not block waiting callers beyond their timeout',
    withClients(async (fleet, client) => {
      const latch = new CountDownLatch(client, '/latch', 5);
      await latch.countDown();
      const startedMs = fleet.world.nowMs;
      loseNextReply(fleet, client, 60_000);
      const counting = latch.countDown({ timeoutMs: 2000 });
      await expect(counting).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
      expect(fleet.world.nowMs - startedMs).toBeLessThan(10_000);
    }),
  );

  test(
    'stays in doubt when the client is closed, also for the done of an item',
    withClients(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      loseNextReply(fleet, client, 60_000);
      const whenDone = expect(item.done()).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await client.close({ timeoutMs: 100 });
      await whenDone;
    }),
  );

  test(
    'does not block later callers beyond their timeout',
    withClients(async (fleet, client) => {
      const queue = new DelayQueue(client, '/later', { codec: text });
      await queue.put('a');
      // The last clock reading is too old by then.
      await fleet.world.sleep(15_000);
      const startedMs = fleet.world.nowMs;
      loseNextReply(fleet, client, 60_000);
      const stuck = queue.put('stuck', { at: 1 });
      stuck.catch(() => {});
      const put = queue.put('b', { delayMs: 1, timeoutMs: 500 });
      await expect(put).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      expect(fleet.world.nowMs - startedMs).toBeLessThan(10_000);
    }),
  );
});

test.each([Number.POSITIVE_INFINITY, 10])(
  'puts nothing that was cancelled before anything was sent (itemsMax: %d)',
  (itemsMax) =>
    withClients(async (fleet, client) => {
      const { network } = fleet.world;
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax });
      await queue.put('a');
      network.block('client1', 'zk1');
      network.block('zk1', 'client1');
      for (const end of network.openEnds) end.breakStream();
      await fleet.world.sleep(100);
      const others = [queue.put('b'), queue.put('c')];
      const given = queue.put('x', { timeoutMs: 500 });
      others.push(queue.put('d'));
      await expect(given).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await expect(queue.put('y', { timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'not-applied',
      });
      network.heal();
      await Promise.all(others);
      expect(await drain(queue)).toEqual(['a', 'b', 'c', 'd']);
    })(),
);

test(
  'puts nothing that is the first of its transaction and was cancelled before anything was sent',
  withClients(async (fleet, client) => {
    const { network } = fleet.world;
    const queue = new Queue(client, '/jobs', { codec: text });
    network.block('client1', 'zk1');
    network.block('zk1', 'client1');
    for (const end of network.openEnds) end.breakStream();
    await fleet.world.sleep(100);
    const abort = new AbortController();
    const given = queue.put('x', { signal: abort.signal });
    const other = queue.put('b', { timeoutMs: 60_000 });
    await fleet.world.sleep(100);
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied' });
    network.heal();
    await other;
    expect(await drain(queue)).toEqual(['b']);
  }),
);

test.each([true, false])('an item that was released can no longer be done (leases: %s)', (leases) =>
  withClients(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text, leases });
    await queue.put('a');
    const item = await queue.take();
    await item.release();
    await expect(item.done()).rejects.toThrow('no longer held');
    expect(await drain(queue)).toEqual(['a']);
    await queue.put('b');
    const next = await queue.take();
    await next.done();
    await next.done();
    await next.release();
    expect(await queue.size()).toBe(0);
  })(),
);

test(
  'a put in doubt does not count as refused when a server without a quorum answers',
  withClients(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.put('a');
    let count = 0;
    const restore = aroundCommits(client, async (commit) => {
      count++;
      if (count > 1 && count < 4) throw new NotReadOnlyError({ operation: 'transaction', path: null });
      const results = await commit();
      if (count > 1) return results;
      throw lostCommit();
    });
    await queue.put('b');
    expect(count).toBe(4);
    restore();
    expect(await drain(queue)).toEqual(['a', 'b']);
  }),
);
