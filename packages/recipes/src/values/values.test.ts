import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  AbortedError,
  type Client,
  type Codec,
  ConnectionLossError,
  DecodeError,
  json,
  NotReadOnlyError,
  SessionLostError,
  TimeoutError,
  text,
} from '@meerkat/client';
import { expect, test } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { bytesAt, onStage } from '../testing/stage.ts';
import { AtomicValue } from './atomic-value.ts';
import { Configuration } from './configuration.ts';
import { AtomicLong, Counter, FloatCounter } from './counters.ts';
import { PublishedSet } from './published-set.ts';

/** `--expose-gc`, without a separate process. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

test('a long is stored as in Curator, 8 bytes big-endian', () =>
  onStage(async ({ client }) => {
    const counter = new AtomicLong(client, '/deep/in/the/tree/hits');
    expect(await counter.get()).toBe(0n);
    expect(await counter.add(258)).toMatchObject({ before: 0n, after: 258n, version: 0 });
    expect(await bytesAt(client, counter.path)).toEqual([0, 0, 0, 0, 0, 0, 1, 2]);
    expect(await counter.add(-259n)).toMatchObject({ after: -1n, version: 1 });
    expect(await bytesAt(client, counter.path)).toEqual([255, 255, 255, 255, 255, 255, 255, 255]);
    await counter.set(2n ** 63n - 1n);
    await expect(counter.increment()).rejects.toThrow(RangeError);
    expect(await counter.get()).toBe(2n ** 63n - 1n);
  }));

test('a counter is stored as in kazoo, in decimal digits, and an empty one has the initial value', () =>
  onStage(async ({ client }) => {
    const counter = new Counter(client, '/visits', { initial: 7n });
    await client.create('/visits', '');
    await counter.add(10);
    expect((await client.get('/visits', { codec: text })).data).toBe('17');
    await counter.add(10n ** 30n);
    expect((await client.get('/visits', { codec: text })).data).toBe('1000000000000000000000000000017');

    const sum = new FloatCounter(client, '/sum');
    await sum.add(2.5);
    await sum.add(0.5);
    expect((await client.get('/sum', { codec: text })).data).toBe('3.0');
    await client.set('/sum', 'three');
    await expect(sum.add(1)).rejects.toThrow(DecodeError);
  }));

test('an amount that is not an integer rejects, like any other failure', () =>
  onStage(async ({ client }) => {
    for (const counter of [new Counter(client, '/visits'), new AtomicLong(client, '/hits')]) {
      const adding: unknown[] = [];
      expect(() => adding.push(counter.add(0.5))).not.toThrow();
      await expect(adding[0]).rejects.toThrow(RangeError);
      expect(await counter.get()).toBe(0n);
    }
  }));

test('a change that takes too long is cancelled in time, and its result is not written', () =>
  onStage(async ({ world, client }) => {
    const value = new AtomicValue(client, '/a', { codec: text, initial: 'x' });
    const slowly = async (): Promise<string> => {
      await world.sleep(60_000);
      return 'late';
    };
    const startMs = client.surroundings.clock.monotonicMs();
    const failure = await value.update(slowly, { timeoutMs: 1000 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TimeoutError);
    expect(failure).toMatchObject({ outcome: 'not-applied' });
    expect(client.surroundings.clock.monotonicMs() - startMs).toBeLessThan(2000);
    await value.update((current) => `${current}y`);
    await world.sleep(100_000);
    expect(await value.get()).toBe('xy');

    const settings = new Configuration(client, '/config', { codec: text });
    const controller = new AbortController();
    const updating = settings.update(slowly, { signal: controller.signal }).catch((error: unknown) => error);
    await world.sleep(1000);
    const abortedMs = client.surroundings.clock.monotonicMs();
    controller.abort();
    expect(await updating).toBeInstanceOf(AbortedError);
    expect(client.surroundings.clock.monotonicMs() - abortedMs).toBeLessThan(1000);
    await world.sleep(100_000);
    expect(await settings.get()).toBeNull();
  }));

test('a change that fails after its caller has cancelled does not end the process', () =>
  onStage(async ({ world, client }) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    try {
      for (const recipe of [
        new AtomicValue(client, '/a', { codec: text, initial: 'x' }),
        new Configuration(client, '/config', { codec: text }),
      ]) {
        const controller = new AbortController();
        const change = async (): Promise<string> => {
          controller.abort();
          await world.sleep(10);
          throw new Error('too late');
        };
        await expect(recipe.update(change, { signal: controller.signal })).rejects.toThrow(AbortedError);
      }
      await world.sleep(100);
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  }));

test('many concurrent additions are all counted, with and without a lock', () =>
  onStage(async ({ client, other }) => {
    const counters = [client, other].flatMap((each) => [
      new AtomicLong(each, '/hits'),
      new AtomicLong(each, '/hits', { lock: new Mutex(each, '/locks/hits'), attemptsBeforeLock: 1 }),
    ]);
    const updates = await Promise.all(counters.flatMap((counter) => Array.from({ length: 25 }, () => counter.add(1))));
    expect(await counters[0]!.get({ read: 'linearizable' })).toBe(100n);
    expect(new Set(updates.map(({ after }) => after)).size).toBe(100);
    const [stat] = await Promise.all([client.exists('/hits')]);
    expect(stat?.version).toBe(99);
  }));

test('a value is compared, set once, and left unchanged', () =>
  onStage(async ({ client }) => {
    const value = new AtomicValue(client, '/v', { codec: json<{ n: number }>(), initial: { n: 0 } });
    expect(await value.initialize({ n: 1 })).toBe(true);
    expect(await value.initialize({ n: 2 })).toBe(false);
    expect(await value.compareAndSet({ n: 2 }, { n: 3 })).toBe(false);
    expect(await value.compareAndSet({ n: 1 }, { n: 3 })).toBe(true);
    expect(await value.update(() => undefined)).toEqual({ before: { n: 3 }, after: { n: 3 }, version: 1 });
    expect((await client.exists('/v'))?.version).toBe(1);
  }));

test('the witnesses of a writer are removed with it', () =>
  onStage(async ({ client, other }) => {
    const counter = new AtomicLong(client, '/hits');
    await counter.increment();
    expect((await other.children('/hits.witnesses')).children.length).toBe(1);
    await counter.increment();
    expect((await other.children('/hits.witnesses')).children.length).toBe(1);
    await counter.close();
    expect((await other.exists('/hits.witnesses'))?.numChildren).toBe(0);
    await counter.increment();
    expect(await counter.get()).toBe(3n);
    expect((await other.children('/hits')).children).toEqual([]);
  }));

test('a writer whose session counts as lost and comes back still has one witness', () =>
  onStage(async ({ client, other }) => {
    const counter = new AtomicLong(client, '/hits');
    await counter.increment();
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = transaction;
      Object.defineProperty(client, 'session', { get: () => null, configurable: true });
      const made = transaction();
      made.commit = async () => {
        Reflect.deleteProperty(client, 'session');
        throw new SessionLostError({ operation: 'transaction', path: null, outcome: 'not-applied' });
      };
      return made;
    };
    expect(await counter.increment()).toMatchObject({ after: 2n });
    expect((await other.children('/hits.witnesses')).children.length).toBe(1);
  }));

test('a witness that cannot be reached is removed later, while its session lives on', () =>
  onStage(async ({ world, other }) => {
    const servers = 'zk1:2181';
    await using writer = await world.connect('writer', { servers, sessionTimeoutMs: 40_000 });
    const counter = new AtomicLong(writer, '/hits');
    await counter.increment();
    const sessionId = writer.session?.id;
    world.network.block('writer', 'zk1');
    world.network.block('zk1', 'writer');
    for (const end of world.network.openEnds) end.breakStream();
    await counter.close();
    expect((await other.exists('/hits.witnesses'))?.numChildren).toBe(1);
    world.network.heal();
    await writer.whenConnected();
    await world.sleep(5000);
    expect(writer.session?.id).toBe(sessionId);
    expect((await other.exists('/hits.witnesses'))?.numChildren).toBe(0);
  }));

test('an update that does not get its turn in time changes nothing', () =>
  onStage(async ({ client, other }) => {
    await using _ = await new Mutex(other, '/locks/hits').acquire();
    const counter = new AtomicLong(client, '/hits', { lock: new Mutex(client, '/locks/hits'), attemptsBeforeLock: 1 });
    let races = 0;
    const update = counter.update(
      async (current) => {
        // Another client is faster, each time.
        await other.set('/hits', new Uint8Array(8)).catch(() => other.create('/hits', new Uint8Array(8)));
        races++;
        return current + 1n;
      },
      { timeoutMs: 2000 },
    );
    await expect(update).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect(races).toBe(1);
    expect(await counter.get()).toBe(0n);
  }));

test('updates wait for earlier ones, also behind one that was cancelled', () =>
  onStage(async ({ world, client }) => {
    const counter = new AtomicLong(client, '/hits');
    await counter.increment();
    const steps: string[] = [];
    let endWork = (): void => {};
    const work = new Promise<void>((resolve) => {
      endWork = resolve;
    });
    const first = counter.update(async (current) => {
      await work;
      steps.push('first');
      return current + 1n;
    });
    await expect(counter.add(1, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    const third = counter.update((current) => {
      steps.push('third');
      return current + 1n;
    });
    const closing = counter.close();
    await world.sleep(1000);
    endWork();
    await Promise.all([first, third, closing]);
    expect(steps).toEqual(['first', 'third']);
    expect(await counter.get()).toBe(3n);
    expect((await client.exists('/hits.witnesses'))?.numChildren).toBe(0);
  }));

test('nothing is kept of completed updates', () =>
  onStage(async ({ client }) => {
    const decoded: WeakRef<object>[] = [];
    const digits: Codec<{ readonly count: number }> = {
      encode: ({ count }) => text.encode(`${count}`),
      decode: (bytes) => {
        const value = { count: Number(text.decode(bytes)) };
        decoded.push(new WeakRef(value));
        return value;
      },
    };
    const value = new AtomicValue(client, '/a', { codec: digits, initial: { count: 0 } });
    for (let i = 0; i < 20; i++) await value.update(({ count }) => ({ count: count + 1 }));
    expect(decoded.length).toBeGreaterThanOrEqual(19);
    // A dereferenced WeakRef keeps its target alive until the end of the turn.
    await new Promise(setImmediate);
    collectGarbage();
    expect(decoded.filter((reference) => reference.deref() !== undefined).length).toBeLessThan(3);
    await value.close();
    expect((await value.get()).count).toBe(20);
  }));

test('a write that is applied after its witness was read counts once', () =>
  onStage(async ({ client }) => {
    const counter = new AtomicLong(client, '/hits');
    await counter.increment();
    const [transaction, get] = [client.transaction.bind(client), client.get.bind(client)];
    let comeThrough = async (): Promise<void> => {};
    client.transaction = () => {
      client.transaction = transaction;
      const made = transaction();
      const commit = made.commit.bind(made);
      made.commit = async () => {
        comeThrough = async () => void (await commit());
        throw new ConnectionLossError({ operation: 'transaction', path: null });
      };
      return made;
    };
    client.get = (async (path: string, options: object) => {
      const found = await get(path, options);
      // The witness has shown that it was not applied so far.
      if (path.startsWith('/hits.witnesses')) {
        await comeThrough();
        comeThrough = async () => {};
      }
      return found;
    }) as typeof client.get;
    expect(await counter.increment()).toMatchObject({ before: 1n, after: 2n, version: 1 });
    expect(await counter.get()).toBe(2n);
  }));

test('a write in doubt is not repeated on a znode that was deleted and created again, whatever its version', () =>
  onStage(async ({ client }) => {
    const value = new AtomicValue(client, '/price', { codec: json<number>(), initial: 0 });
    await value.set(5);
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = transaction;
      const made = transaction();
      made.commit = async () => {
        // It never reaches the service.
        await client.delete('/price');
        await client.create('/price', '100');
        throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
      };
      return made;
    };
    expect(await value.update((current) => current + 1)).toMatchObject({ before: 100, after: 101, version: 1 });
  }));

test('an update whose reply was lost in two sessions is recognized by the witness of the second', () =>
  onStage(async ({ client }) => {
    const counter = new AtomicLong(client, '/hits');
    await client.create('/hits', new Uint8Array(8));
    await client.create('/hits.witnesses');
    const transaction = client.transaction.bind(client);
    const { session } = client;
    let commits = 0;
    client.transaction = () => {
      const made = transaction();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        // The first never reaches the service, and its session ends; the second is applied.
        if (++commits === 1) Object.defineProperty(client, 'session', { get: () => ({ ...session, id: 7n }) });
        else await commit(options);
        throw new SessionLostError({ operation: 'transaction', path: null, outcome: 'unknown' });
      };
      return made;
    };
    expect(await counter.increment()).toMatchObject({ before: 0n, after: 1n, version: 1 });
    expect([commits, await counter.get()]).toEqual([2, 1n]);
  }));

test.each([
  ['holds something else', 'nonsense', (current: string) => `${current}!`],
  [
    'makes the change throw',
    '9',
    (current: string) => {
      if (current === '9') throw new RangeError('enough');
      return `${current}!`;
    },
  ],
] as const)('an update does not fail by what a server shows that lags behind: it %s', (_, former, change) =>
  onStage(async ({ client }) => {
    const short: Codec<string> = {
      encode: text.encode,
      decode(data) {
        if (data !== null && data.length > 5) throw new SyntaxError('too long');
        return text.decode(data);
      },
    };
    const value = new AtomicValue(client, '/v', { codec: short, initial: '' });
    await client.create('/v', 'now');
    const get = client.get.bind(client);
    client.get = (async (path: string, options: { readonly read?: string }) => {
      const found = await get(path, options as object);
      return options.read === 'local' ? { ...found, data: new TextEncoder().encode(former) } : found;
    }) as typeof client.get;
    expect(await value.update(change)).toMatchObject({ before: 'now', after: 'now!' });
  }),
);

test('an update that is cancelled while the parents of its znode are created changes nothing', () =>
  onStage(async ({ client }) => {
    const give = async (path: string): Promise<never> => {
      throw new AbortedError({ operation: 'ensurePath', path });
    };
    client.ensurePath = give;
    const values = [
      new AtomicLong(client, '/deep/hits'),
      new Configuration(client, '/deep/config', { codec: text }),
    ] as const;
    const updates = [values[0].increment(), values[1].set('x')];
    for (const update of updates)
      await expect(update).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied' });
  }));

test.each([
  ['an atomic value', (client: Client) => new AtomicValue(client, '/v', { codec: text, initial: '' }).set('x')],
  ['a configuration', (client: Client) => new Configuration(client, '/v', { codec: text }).set('x')],
  ['a published set', (client: Client) => new PublishedSet(client, '/v', { codec: text }).publish({ a: 'x' })],
] as const)('%s in doubt does not take the word of a server without a quorum for a refusal', (_, write) =>
  onStage(async ({ client }) => {
    await client.create('/v', 'before');
    const get = client.get.bind(client);
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      const made = transaction();
      made.commit = async () => {
        // From now on it answers.
        client.get = (async (path: string, options: { readonly read?: string }) => {
          if (options.read === 'linearizable') throw new NotReadOnlyError({ operation: 'get', path });
          return get(path, options as object);
        }) as typeof client.get;
        throw new ConnectionLossError({ operation: 'transaction', path: null });
      };
      return made;
    };
    await expect(write(client)).rejects.toMatchObject({ code: 'NOTREADONLY', outcome: 'unknown' });
  }),
);
