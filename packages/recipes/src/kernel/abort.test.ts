import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { onAbort, text } from '@meerkat/client';
import { expect, test, vi } from 'vitest';
import { NodeCache } from '../caches/node-cache.ts';
import { Queue } from '../queues/queue.ts';
import { Fleet } from '../testing/fleet.ts';
import { firstAbortOf } from './abort.ts';

/** The Node.js warnings emitted while a program runs. */
async function warningsOf(program: () => Promise<void>): Promise<string[]> {
  const warnings: string[] = [];
  const note = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', note);
  await program();
  await setImmediate();
  process.off('warning', note);
  return warnings;
}

test('many holdings, and many waits with one signal, cause no leak warning', async () => {
  const warnings = await warningsOf(async () => {
    const fleet = new Fleet(1, { servers: 1 });
    await fleet.run(async () => {
      const client = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.putAll(Array.from({ length: 12 }, (_, i) => `${i}`));
      const items = await Promise.all(Array.from({ length: 12 }, () => queue.take()));
      const controller = new AbortController();
      const waits = Array.from({ length: 12 }, () => queue.take({ signal: controller.signal }));
      const ends = Promise.allSettled(waits);
      await fleet.world.sleep(1000);
      controller.abort();
      expect((await ends).map(({ status }) => status)).toEqual(Array(12).fill('rejected'));
      await Promise.all(items.map((item) => item.done()));
    });
  });
  expect(warnings).toEqual([]);
});

test('a signal that aborts with the first of several leaves no listeners on the others', () => {
  const controllers = Array.from({ length: 3 }, () => new AbortController());
  const signals = controllers.map(({ signal }) => signal);
  const first = firstAbortOf(signals);
  const calls = vi.fn<() => void>();
  first.addEventListener('abort', calls);
  controllers[1]!.abort('enough');
  expect([first.aborted, first.reason]).toEqual([true, 'enough']);
  expect(signals.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]);
  controllers[0]!.abort();
  expect(calls).toHaveBeenCalledOnce();
  expect(firstAbortOf([signals[2]!, signals[1]!]).reason).toBe('enough');
});

test('an abort listener may remove others', () => {
  const controller = new AbortController();
  const calls: string[] = [];
  const release = onAbort(controller.signal, () => calls.push('early'));
  onAbort(controller.signal, () => {
    calls.push('first');
    releaseSecond();
  });
  const releaseSecond = onAbort(controller.signal, () => calls.push('second'));
  release();
  onAbort(controller.signal, () => calls.push('third'));
  controller.abort();
  expect(calls).toEqual(['first', 'third']);
});

test('many caches with one signal cause no leak warning', async () => {
  const warnings = await warningsOf(async () => {
    const fleet = new Fleet(1, { servers: 1 });
    await fleet.run(async () => {
      const client = await fleet.connect();
      const { signal } = new AbortController();
      const caches = Array.from({ length: 12 }, () => new NodeCache(client, '/config', { signal }));
      for (const cache of caches) await cache.ready;
      for (const cache of caches) await cache.close();
    });
  });
  expect(warnings).toEqual([]);
});
