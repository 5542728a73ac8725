import { text } from '@meerkat/client';
import { AtomicLong, AtomicValue, Counter, FloatCounter, int32, Mutex, SharedCount } from '@meerkat/recipes';
import { expect, test } from 'vitest';
import { describeShared } from './shared.ts';

describeShared({ library: 'kazoo', program: 'values', what: 'counters' }, (shared) => {
  test('an integer Counter created by either is incremented by both', async () => {
    const { client, foreign: kazoo } = shared;
    const ours = new Counter(client, '/counters/ours');
    await ours.add(5);
    expect(await kazoo.ask('add', '/counters/ours', 2)).toBe('7');
    expect((await ours.add(-8)).after).toBe(-1n);
    expect(await kazoo.ask('add', '/counters/ours', 1)).toBe('0');

    expect(await kazoo.ask('add', '/counters/theirs', '100000000000000000000')).toBe('100000000000000000000');
    const theirs = new Counter(client, '/counters/theirs');
    expect((await theirs.add(1)).after).toBe(100000000000000000001n);
  });

  test('a float Counter is incremented by both', async () => {
    const { client, foreign: kazoo } = shared;
    const sum = new FloatCounter(client, '/counters/float');
    await sum.add(2);
    expect((await client.get('/counters/float', { codec: text })).data).toBe('2.0');
    expect(await kazoo.ask('addFloat', '/counters/float', '1e21')).toBe('1e+21');
    expect((await sum.add(0.5)).after).toBe(1e21);
    expect(await kazoo.ask('addFloat', '/counters/float', '-1e21')).toBe('0.0');
  });

  test('concurrent additions by both are all counted', async () => {
    const { client, foreign: kazoo } = shared;
    const counter = new Counter(client, '/counters/busy');
    const theirs = kazoo.ask('addMany', '/counters/busy', 60);
    await Promise.all([theirs, ...Array.from({ length: 60 }, () => counter.add(1))]);
    expect(await counter.get({ read: 'linearizable' })).toBe(120n);
  });

  test("a count in Curator's layout is incremented by both", async () => {
    const { client, foreign: kazoo } = shared;
    const count = new AtomicValue(client, '/counters/count', { codec: int32, initial: 0 });
    await count.update((current) => current + 300);
    expect(await kazoo.ask('addCount', '/counters/count', -301)).toBe('-1');
    expect(await count.get({ read: 'linearizable' })).toBe(-1);
  });
});

describeShared({ library: 'curator', program: 'values', what: 'counters' }, (shared) => {
  test('a DistributedAtomicLong created by either is incremented by both', async () => {
    const { client, foreign: curator } = shared;
    const ours = new AtomicLong(client, '/numbers/ours');
    await ours.add(2n ** 40n);
    expect(await curator.ask('add', '/numbers/ours', -1)).toBe(`${2n ** 40n - 1n}`);
    expect((await ours.decrement()).after).toBe(2n ** 40n - 2n);
    expect(await curator.ask('add', '/numbers/theirs', -7)).toBe('-7');
    expect((await new AtomicLong(client, '/numbers/theirs').increment()).after).toBe(-6n);
  });

  test('concurrent additions by both under one lock are all counted', async () => {
    const { client, foreign: curator } = shared;
    const path = '/numbers/busy';
    const lock = new Mutex(client, `/locks${path}`);
    const counter = new AtomicLong(client, path, { lock, attemptsBeforeLock: 2 });
    const theirs = curator.ask('addMany', path, 60);
    await Promise.all([theirs, ...Array.from({ length: 60 }, () => counter.increment())]);
    expect(await counter.get({ read: 'linearizable' })).toBe(120n);
    expect(await curator.ask('get', path)).toBe('120');
  });

  test('a SharedCount is set by both, and by only one of two with the same version', async () => {
    const { client, foreign: curator } = shared;
    const count = new SharedCount(client, '/numbers/shared', 4);
    expect((await count.get()).value).toBe(4);
    expect(await curator.ask('openCount', '/numbers/shared', 9)).toBe('4');
    const seen = await count.get();
    expect(await curator.ask('trySetCount', '/numbers/shared', 5)).toBe('true');
    expect(await count.trySet(seen, 6)).toBe(false);
    await using observation = count.observe();
    expect((await observation.ready).data).toBe(5);
    const changed = observation.changed();
    await curator.ask('setCount', '/numbers/shared', -6);
    expect((await changed).data).toBe(-6);
    expect(await count.trySet(await count.get({ read: 'linearizable' }), 7)).toBe(true);
    // Curator is notified by its watch.
    while ((await curator.ask('getCount', '/numbers/shared')) !== '7') await client.sync();
  });
});
