import { TestServer } from '@meerkat/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { json } from './codec/json.ts';
import { text } from './codec/text.ts';
import { connect } from './connect.ts';
import {
  AbortedError,
  AuthFailedError,
  ClosedError,
  NoAuthError,
  NoNodeError,
  SessionLostError,
  ThrottledError,
} from './errors.ts';
import type { Stat } from './machine/stat.ts';
import { Observation, type Observed } from './observe.ts';
import { FakeWatchPorts } from './testing/fake-watch-ports.ts';
import { OldServer } from './testing/old-server.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';

describe('on a scripted session', () => {
  test('the first value is the current one', async () => {
    const { observation } = await makeObservation({ data: 'one', mzxid: 1n });

    expect(await observation.ready).toMatchObject({ exists: true, data: 'one', error: null });
    expect(observation.current).toMatchObject({ data: 'one' });
  });

  test('each change is read and reported', async () => {
    const { ports, znode, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;

    Object.assign(znode, { data: 'two', mzxid: 2n });
    ports.fire('changed', '/a');
    expect(await observation.changed()).toMatchObject({ data: 'two' });

    znode.exists = false;
    ports.fire('deleted', '/a');
    expect(await observation.changed()).toEqual({ exists: false, data: undefined, stat: null, error: null });
  });

  test('children of the znode do not matter', async () => {
    const { ports, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;
    const reads = ports.reads;

    ports.fire('children', '/a');
    await drainMicrotasks();

    expect(ports.reads).toBe(reads);
  });

  test('the same value does not come twice, whatever the connection did', async () => {
    const { ports, znode, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    const seen: (string | undefined)[] = [];
    const done = (async () => {
      for await (const { data } of observation) seen.push(data);
    })();
    await observation.ready;

    ports.reconnect();
    await drainMicrotasks();
    ports.reconnect(false);
    await drainMicrotasks();
    Object.assign(znode, { data: 'two', mzxid: 2n });
    ports.fire('changed', '/a');
    await observation.changed();
    await observation.close();
    await done;

    expect(seen).toEqual(['one', 'two']);
  });

  test('writing the same bytes again is a change', async () => {
    const { ports, znode, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;

    znode.mzxid = 2n;
    ports.fire('changed', '/a');

    expect(await observation.changed()).toMatchObject({ data: 'one', stat: { mzxid: 2n } });
  });

  test('a slow loop gets the newest value', async () => {
    const { ports, znode, observation } = await makeObservation({ data: '0', mzxid: 1n });
    await observation.ready;
    for (const number of [1, 2, 3]) {
      Object.assign(znode, { data: `${number}`, mzxid: BigInt(number + 1) });
      ports.fire('changed', '/a');
      await observation.changed();
    }
    const loop = observation[Symbol.asyncIterator]();

    expect((await loop.next()).value?.data).toBe('3');
    const next = loop.next();
    Object.assign(znode, { data: '4', mzxid: 5n });
    ports.fire('changed', '/a');
    expect((await next).value?.data).toBe('4');
  });

  test('many events during a read cause one more read', async () => {
    const { ports, znode, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;
    const reads = ports.reads;

    Object.assign(znode, { data: 'two', mzxid: 2n });
    for (let i = 0; i < 100; i++) ports.fire('changed', '/a');
    await observation.changed();
    await drainMicrotasks();

    expect(ports.reads - reads).toBeLessThanOrEqual(2);
  });

  test('an event that arrives together with the reply of a read causes another read', async () => {
    const { ports, znode, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;
    const { answer } = ports;
    ports.answer = (request) => {
      ports.answer = answer;
      const reply = answer(request);
      // Before the code that waits for the reply continues.
      Object.assign(znode, { data: 'three', mzxid: 3n });
      return Promise.resolve().then(() => {
        ports.fire('changed', '/a');
        return reply;
      });
    };

    Object.assign(znode, { data: 'two', mzxid: 2n });
    ports.fire('changed', '/a');
    await drainMicrotasks();
    expect(observation.current?.data).toBe('three');
  });

  test('data that the codec refuses is reported, and the next value is read nevertheless', async () => {
    const ports = new ReadablePorts({ data: '{"a":', mzxid: 1n });
    const observation = new Observation(ports, '/a', json<{ a: number }>());
    ports.watch.arm();

    expect(await observation.ready).toMatchObject({
      exists: true,
      data: undefined,
      error: { code: 'DECODEFAILED', path: '/a', operation: 'observe' },
    });
    Object.assign(ports.znode, { data: '{"a":1}', mzxid: 2n });
    ports.fire('changed', '/a');
    expect(await observation.changed()).toMatchObject({ data: { a: 1 }, error: null });
  });

  test('a read that a lost session has refused is retried on the next connection', async () => {
    const ports = new ReadablePorts({ data: 'one', mzxid: 1n });
    ports.failures.push(new SessionLostError({ operation: 'observe', path: '/a' }));
    const observation = new Observation(ports, '/a', text);
    ports.watch.arm();

    expect(await observation.ready).toMatchObject({ data: 'one' });
  });

  test('a read that an overloaded server has refused is retried after a delay', async () => {
    const ports = new ReadablePorts({ data: 'one', mzxid: 1n });
    ports.failures.push(new ThrottledError({ operation: 'observe', path: '/a' }));
    const observation = new Observation(ports, '/a', text);
    ports.watch.arm();
    await drainMicrotasks();
    expect(observation.current).toBeNull();

    ports.timers[0]?.();

    expect(await observation.ready).toMatchObject({ data: 'one' });
  });

  test('a znode that may not be read ends it with the error', async () => {
    const ports = new ReadablePorts({ data: 'one', mzxid: 1n });
    ports.failures.push(new NoAuthError({ operation: 'observe', path: '/a' }));
    const observation = new Observation(ports, '/a', text);
    ports.watch.arm();

    await expect(takeAll(observation)).rejects.toBeInstanceOf(NoAuthError);
    await expect(observation.changed()).rejects.toBeInstanceOf(NoAuthError);
    await drainMicrotasks();
    expect(ports.watch.isClosed).toBe(true);
  });

  test.each([
    ['closed', ClosedError, false],
    ['auth-failed', AuthFailedError, true],
  ] as const)('a client that is %s ends the loop, and changed() rejects', async (reason, type, throws) => {
    const { ports, observation } = await makeObservation({ data: 'one', mzxid: 1n });
    await observation.ready;
    const loop = takeAll(observation);

    ports.end(reason);

    if (throws) await expect(loop).rejects.toBeInstanceOf(type);
    else expect(await loop).toHaveLength(1);
    await expect(observation.changed()).rejects.toBeInstanceOf(type);
  });

  test('leaving a loop ends the observation and removes the watch; the current value stays', async () => {
    const { ports, observation } = await makeObservation({ data: 'one', mzxid: 1n });

    for await (const { data } of observation) {
      expect(data).toBe('one');
      break;
    }

    expect(ports.watch.isClosed).toBe(true);
    expect(observation.current).toMatchObject({ data: 'one' });
    await expect(observation.changed()).rejects.toBeInstanceOf(AbortedError);
    expect(await takeAll(observation)).toEqual([]);
  });

  test('an aborted signal ends the observation', async () => {
    const controller = new AbortController();
    const ports = new ReadablePorts({ data: 'one', mzxid: 1n });
    const observation = new Observation(ports, '/a', text, { signal: controller.signal });
    ports.watch.arm();
    await observation.ready;
    const loop = takeAll(observation);

    controller.abort();

    expect(await loop).toHaveLength(1);
    await drainMicrotasks();
    expect(ports.watch.isClosed).toBe(true);
  });

  test('an observation that ends before there was a value rejects ready', async () => {
    const ports = new ReadablePorts({ data: 'one', mzxid: 1n });
    const observation = new Observation(ports, '/a', text, { signal: AbortSignal.abort() });

    await expect(observation.ready).rejects.toBeInstanceOf(AbortedError);
    expect(await takeAll(observation)).toEqual([]);
  });

  test('the types distinguish a value, no value and an unreadable one', () => {
    expectTypeOf<Extract<Observed<number>, { exists: true; error: null }>['data']>().toEqualTypeOf<number>();
    expectTypeOf<Observed<number>['data']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Extract<Observed<number>, { exists: false }>['stat']>().toEqualTypeOf<null>();
  });
});

describe.each([
  ['a server with persistent watches', false],
  ['a server without', true],
])('on %s', (_name, isOld) => {
  test('the final value is the newest, across restarts and expiries', async () => {
    await using server = await TestServer.start();
    await using old = await OldServer.start(server.port);
    await using writer = await connect(server.connectString);
    await using client = await connect(isOld ? old.connectString : server.connectString);
    await using observation = client.observe('/a', text);
    expect((await observation.ready).exists).toBe(false);

    await writer.create('/a', 'one');
    await becomes(observation, 'one');
    await server.restart();
    await writer.set('/a', 'two');
    await becomes(observation, 'two');
    await server.expireSession(client.session?.id ?? 0n);
    await writer.set('/a', 'three');
    await becomes(observation, 'three');
    await writer.delete('/a');
    while (observation.current?.exists !== false) await observation.changed();
  });
});

test('without a codec the value is bytes', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  await client.create('/a', Uint8Array.of(1, 2));
  await using observation = client.observe('/a');

  expectTypeOf(observation).toEqualTypeOf<Observation<Uint8Array>>();
  expect((await observation.ready).data).toEqual(Uint8Array.of(1, 2));
});

interface FakeValue {
  exists: boolean;
  data: string;
  mzxid: bigint;
}

/** A session on which one znode can be read. */
class ReadablePorts extends FakeWatchPorts {
  readonly znode: FakeValue;
  /** The errors of the next reads. */
  readonly failures: Error[] = [];
  reads = 0;

  constructor({ data, mzxid }: Omit<FakeValue, 'exists'>) {
    super();
    this.znode = { exists: true, data, mzxid };
    this.answer = () => {
      this.reads++;
      const failure = this.failures.shift();
      if (failure !== undefined) throw failure;
      if (!this.znode.exists) throw new NoNodeError({ operation: 'observe', path: '/a' });
      const stat = { czxid: 1n, mzxid: this.znode.mzxid } as Stat;
      return { data: Uint8Array.from(Buffer.from(this.znode.data)), stat };
    };
  }
}

interface Made {
  readonly ports: ReadablePorts;
  readonly znode: FakeValue;
  readonly observation: Observation<string>;
}

async function makeObservation(value: Omit<FakeValue, 'exists'>): Promise<Made> {
  const ports = new ReadablePorts(value);
  const observation = new Observation(ports, '/a', text);
  ports.watch.arm();
  return { ports, znode: ports.znode, observation };
}

async function takeAll<T>(observation: Observation<T>): Promise<Observed<T>[]> {
  const taken: Observed<T>[] = [];
  for await (const value of observation) taken.push(value);
  return taken;
}

async function becomes(observation: Observation<string>, data: string): Promise<void> {
  while (observation.current?.data !== data) await observation.changed();
}
