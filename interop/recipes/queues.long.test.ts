import { text } from '@meerkat/client';
import { DelayQueue, IdQueue, type ItemQueue, PriorityQueue, Queue } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { expectNames } from './names.ts';
import { describeShared } from './shared.ts';

/** Takes `count` items in sequence. */
async function takeAll(queue: ItemQueue<string>, count: number): Promise<string[]> {
  const values: string[] = [];
  for (let i = 0; i < count; i++) {
    await using item = await queue.take();
    values.push(...item.values);
    await item.done();
  }
  return values;
}

describeShared({ library: 'kazoo', program: 'queues', what: 'queues' }, (shared) => {
  test('items that kazoo puts into a Queue are taken here in order, and vice versa', async () => {
    const { client, foreign: kazoo } = shared;
    const path = '/kazoo-queue';
    const queue = new PriorityQueue(client, path, { codec: text, layout: 'kazoo', leases: false });
    await kazoo.ask('put', path, 'late', 200);
    await kazoo.ask('put', path, 'first', 7);
    await kazoo.ask('put', path, 'second', 7);
    await queue.put('between', { priority: 100 });
    await expectNames(client, path, 'Queue', 'kazoo');
    expect(await takeAll(queue, 4)).toEqual(['first', 'second', 'between', 'late']);
    await queue.put('b');
    await queue.put('a', { priority: 3 });
    await kazoo.ask('put', path, 'c', 999);
    const taken: string[] = [];
    for (let i = 0; i < 3; i++) taken.push(await kazoo.ask('get', path));
    expect(taken).toEqual(['a', 'b', 'c']);
    expect(await kazoo.ask('get', path)).toBe('');
    expect(await queue.tryTake()).toBeNull();
    // Our own znodes are outside of the queue, so they are not taken as items.
    expect((await client.children(path)).children).toEqual([]);
  });

  test('a LockingQueue gives an item to one client at a time, and a released item to the other', async () => {
    const { client, foreign: kazoo } = shared;
    const path = '/kazoo-locking';
    const queue = new Queue(client, path, { codec: text, layout: 'kazoo-locking' });
    await kazoo.ask('lockingPut', path, 'a', 100);
    await queue.put('b');
    await expectNames(client, `${path}/entries`, 'Queue, simple or locking', 'kazoo');
    expect(await kazoo.ask('lockingGet', path, 10)).toBe('a');
    await using b = await queue.take();
    expect(b.value).toBe('b');
    expect(await queue.tryTake()).toBeNull();
    expect(await kazoo.ask('lockingRelease', path)).toBe('True');
    const a = await queue.take();
    expect(a.value).toBe('a');
    const waiting = kazoo.ask('lockingGet', path, 60);
    await a.release();
    expect(await waiting).toBe('a');
    expect(await kazoo.ask('lockingConsume', path)).toBe('True');
    await b.done();
    expect(await queue.size()).toBe(0);
    expect((await client.children(`${path}/taken`)).children).toEqual([]);
  });

  test('an item locked by a dead kazoo client is delivered to us', async () => {
    const { client, startForeign } = shared;
    const path = '/kazoo-killed';
    const queue = new Queue(client, path, { codec: text, layout: 'kazoo-locking' });
    await queue.put('a');
    await using doomed = await startForeign();
    expect(await doomed.ask('lockingGet', path, 30)).toBe('a');
    expect(await queue.tryTake()).toBeNull();
    const taking = queue.take();
    // Gracefully, so that its session ends at once.
    await doomed.end();
    const item = await taking;
    expect(item.value).toBe('a');
    await item.done();
  });
});

describeShared({ library: 'curator', program: 'queues', what: 'queues' }, (shared) => {
  test('SimpleDistributedQueue', async () => {
    const { client, foreign: curator } = shared;
    const path = '/simple';
    const queue = new Queue(client, path, { codec: text, layout: 'curator-simple', leases: false });
    await curator.ask('offer', path, 'a');
    await queue.put('b');
    await curator.ask('offer', path, 'c');
    await expectNames(client, path, 'Queue, simple or locking', 'curator');
    expect(await takeAll(queue, 2)).toEqual(['a', 'b']);
    expect(await curator.ask('poll', path, 60_000)).toBe('c');
    const waiting = queue.take();
    await curator.ask('offer', path, 'd');
    expect((await waiting).value).toBe('d');
    const polling = curator.ask('poll', path, 60_000);
    await queue.put('e');
    expect(await polling).toBe('e');
  });

  test('DistributedQueue, with several items in one znode', async () => {
    const { client, foreign: curator } = shared;
    const path = '/distributed';
    const queue = new Queue(client, path, { codec: text, leasesPath: '/distributed-locks' });
    await curator.ask('put', path, 'a');
    await curator.ask('putMulti', path, 'b', 'c', 'd');
    await queue.put('e');
    await expectNames(client, path, 'Queue', 'curator');
    expect(await takeAll(queue, 3)).toEqual(['a', 'b', 'c', 'd', 'e']);
    await queue.putAll(['f', 'g']);
    await curator.ask('consume', path, '-');
    await curator.waitForEvent('item f');
    await curator.waitForEvent('item g');
  });

  test('DistributedQueue with a lock path: each excludes the other from its items', async () => {
    const { client, foreign: curator } = shared;
    const [path, locks] = ['/safe', '/safe-locks'];
    const queue = new Queue(client, path, { codec: text, leasesPath: locks });
    await queue.putAll(['ours', 'slow-1', 'slow-2']);
    const ours = await queue.take();
    await curator.ask('consume', path, locks);
    await curator.waitForEvent('item slow-1');
    // Curator holds it for a second, and continues with the next one; it does not get ours.
    await curator.waitForEvent('item slow-2');
    expect(curator.events).toEqual([]);
    expect(ours.isHeld).toBe(true);
    await ours.release();
    // Curator rescans when the children of the queue change, but not when a lock is released.
    await queue.put('more');
    await curator.waitForEvent('item ours');
    await curator.waitForEvent('item more');
    while ((await queue.size()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  test('DistributedPriorityQueue', async () => {
    const { client, foreign: curator } = shared;
    const path = '/priority';
    const queue = new PriorityQueue(client, path, { codec: text, leases: false });
    await curator.ask('putPriority', path, 'five', 5);
    await queue.put('minus', { priority: -7 });
    await curator.ask('putPriority', path, 'least', -2147483648);
    await queue.put('most', { priority: 2147483647 });
    await expectNames(client, path, 'PriorityQueue', 'curator');
    expect(await takeAll(queue, 4)).toEqual(['least', 'minus', 'five', 'most']);
    await queue.put('second', { priority: 2 });
    await queue.put('first', { priority: -2 });
    await curator.ask('consumePriority', path, '-');
    await curator.waitForEvent('item first');
    await curator.waitForEvent('item second');
  });

  test('DistributedDelayQueue', async () => {
    const { client, foreign: curator } = shared;
    const path = '/delayed';
    const queue = new DelayQueue(client, path, { codec: text, leases: false });
    const startedMs = Date.now();
    await queue.put('now');
    await curator.ask('putDelayed', path, 'later', 5000);
    await curator.ask('putDelayed', path, 'sooner', 500);
    await expectNames(client, path, 'DelayQueue', 'curator');
    expect(await takeAll(queue, 3)).toEqual(['now', 'sooner', 'later']);
    expect(Date.now() - startedMs).toBeGreaterThanOrEqual(5000);
    await queue.put('theirs', { delayMs: 800 });
    const { children } = await client.children(path);
    const dueMs = Number.parseInt(children[0]!.split('|')[1]!, 16);
    await curator.ask('consumeDelayed', path, '-');
    await curator.waitForEvent('item theirs');
    expect(Date.now()).toBeGreaterThanOrEqual(dueMs);
  });

  test('DistributedIdQueue', async () => {
    const { client, foreign: curator } = shared;
    const path = '/ids';
    const queue = new IdQueue(client, path, { codec: text, leasesPath: '/ids-locks' });
    await curator.ask('putId', path, 'a', 'order/7');
    await queue.put('order/7', 'b');
    await queue.put('order/8', 'c');
    await expectNames(client, path, 'IdQueue', 'curator');
    expect(await queue.has('order_7')).toBe(true);
    await using a = await queue.take();
    expect(a.value).toBe('a');
    // One of the two items with this id is locked by us, which Curator respects.
    expect(await curator.ask('removeId', path, 'order_7', '/ids-locks')).toBe('1');
    await a.done();
    expect(await queue.remove('order/8')).toBe(1);
    expect(await queue.size()).toBe(0);
  });
});
