/** No other library has this lock, but servers differ: up to 3.8.1 they do not report what a transaction created. */
import { connect, text } from '@meerkat/client';
import { PriorityLock } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';

const CLIENTS = 4;
const ROUNDS = 10;

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `a lock with priorities (${kind})`, () => {
    test('loses no increment of a counter, and goes to the waiter with the best priority', async () => {
      const server = await ServerProcess.start(kind);
      try {
        const connectString = `127.0.0.1:${server.port}`;
        await using client = await connect(connectString, { sessionTimeoutMs: 30_000, connectTimeoutMs: 60_000 });
        await client.create('/counter', '0');
        const lock = new PriorityLock(client, '/lock');
        const first = await lock.acquire();
        const order: number[] = [];
        const fleet = Array.from({ length: CLIENTS }, async (_, i) => {
          await using own = await connect(connectString, { sessionTimeoutMs: 30_000, connectTimeoutMs: 60_000 });
          for (let round = 0; round < ROUNDS; round++) {
            await using held = await new PriorityLock(own, '/lock').acquire({ priority: -i });
            if (round === 0) order.push(-i);
            const { data } = await own.get('/counter', { codec: text });
            await held.guarded.set('/counter', `${Number(data) + 1}`);
          }
        });
        while ((await lock.contenders()).length <= CLIENTS) await new Promise((resolve) => setTimeout(resolve, 20));
        await first.release();
        await Promise.all(fleet);
        // The best one queues again at once, or a little too late.
        expect(order[0]).toBe(1 - CLIENTS);
        expect(order).toHaveLength(CLIENTS);
        const { data } = await client.get('/counter', { codec: text, read: 'linearizable' });
        expect(Number(data)).toBe(CLIENTS * ROUNDS);
        expect(await lock.contenders()).toEqual([]);
      } finally {
        await server.dispose();
      }
    });
  });
}
