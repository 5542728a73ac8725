import { type Client, ConnectionLossError, NotReadOnlyError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { drain } from '../testing/drain.ts';
import { withClients } from '../testing/fleet.ts';
import { DelayQueue } from './delay-queue.ts';
import { IdQueue } from './id-queue.ts';
import { Queue } from './queue.ts';

/**
 * From now on the client is connected to a server without a quorum, which refuses writes and `sync`; the first
 * transaction is applied before, and with `losesReply` its reply is lost.
 *
 * @param meets the first request that reaches the server
 * @returns a function that ends this
 */
function loseQuorum(client: Client, losesReply: boolean, meets: 'the look' | 'the claim' = 'the claim'): () => void {
  const { transaction: begin, get, set, children } = client;
  client.set = (path: string) => Promise.reject(new NotReadOnlyError({ operation: 'set', path }));
  let hasLost = !losesReply;
  client.transaction = () => {
    const made = begin.call(client);
    const commit = made.commit.bind(made);
    made.commit = async (options) => {
      if (hasLost) throw new NotReadOnlyError({ operation: 'transaction', path: null });
      hasLost = true;
      await commit(options);
      throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
    };
    return made;
  };
  client.get = ((path: string, options: { readonly read?: string }) =>
    hasLost && options.read === 'linearizable'
      ? Promise.reject(new NotReadOnlyError({ operation: 'get', path }))
      : get.call(client, path, options as never)) as typeof client.get;
  client.children = ((path: string, options: { readonly read?: string }) =>
    hasLost && meets === 'the look' && options.read === 'linearizable'
      ? Promise.reject(new NotReadOnlyError({ operation: 'children', path }))
      : children.call(client, path, options as never)) as typeof client.children;
  return () => {
    client.transaction = begin;
    client.get = get;
    client.set = set;
    client.children = children;
  };
}

describe('a claim on a server without a quorum', () => {
  test.each([
    [true, 'the look'],
    [true, 'the claim'],
    [false, 'the look'],
    [false, 'the claim'],
  ] as const)('waits until there is one (leases: %s, met by %s)', (leases, meets) =>
    withClients(async (fleet, client) => {
      const queue = new IdQueue(client, '/jobs', { codec: text, leases });
      for (const value of ['a', 'b', 'c']) await queue.put('7', value);
      const restore = loseQuorum(client, false, meets);
      const taking = queue.take({ timeoutMs: 10_000 });
      await fleet.world.sleep(1000);
      restore();
      const item = await taking;
      expect(item.value).toBe('a');
      await item.done();
      const again = loseQuorum(client, false, meets);
      const trying = queue.tryTake({ timeoutMs: 10_000 });
      await fleet.world.sleep(1000);
      again();
      await (await trying)?.done();
      const last = loseQuorum(client, false, meets);
      const removing = queue.remove('7', { timeoutMs: 10_000 });
      await fleet.world.sleep(1000);
      last();
      expect([(await trying)?.value, await removing, await queue.size()]).toEqual(['b', 1, 0]);
    })(),
  );

  test(
    'waits also for the clock reading',
    withClients(async (fleet, client) => {
      const queue = new DelayQueue(client, '/later', { codec: text });
      await queue.put('a', { delayMs: 1 });
      // The last clock reading is too old by then.
      await fleet.world.sleep(15_000);
      const restore = loseQuorum(client, false);
      const taking = queue.take({ timeoutMs: 10_000 });
      await fleet.world.sleep(1000);
      restore();
      expect((await taking).value).toBe('a');
    }),
  );

  test.each(['waits on', 'gives up'])(
    'leaves no lease behind whose reply was lost before, when its caller %s',
    (what) =>
      withClients(async (fleet, client) => {
        const queue = new Queue(client, '/jobs', { codec: text });
        await queue.put('a');
        await client.ensurePath('/jobs-leases');
        const restore = loseQuorum(client, true);
        const taking = queue.take({ timeoutMs: what === 'gives up' ? 500 : 10_000 });
        const taken = taking.then(
          (item) => item.release().then(() => item.value),
          (error: { readonly code?: string }) => error.code,
        );
        await fleet.world.sleep(1000);
        restore();
        expect(await taken).toBe(what === 'gives up' ? 'TIMEOUT' : 'a');
        await fleet.world.sleep(3000);
        expect((await client.children('/jobs-leases')).children).toEqual([]);
        expect(await drain(queue)).toEqual(['a']);
      })(),
  );
});
