/**
 * A server without a quorum answers pings without a limit, while for the ensemble the session is silent and expires.
 */
import { type CallOptions, type Client, connect, text } from '@meerkat/client';
import { type ClientTap, makeClientClock, VirtualTransport } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { Election } from '../election/election.ts';
import { NameService } from '../groups/name-service.ts';
import type { Held } from '../kernel/holding.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { IdQueue } from '../queues/id-queue.ts';
import { Queue } from '../queues/queue.ts';
import { Fleet } from '../testing/fleet.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

interface Place {
  readonly client: Client;
  readonly sleep: (ms: number) => Promise<void>;
  /** Bytes that the client has sent so far. */
  readonly sentBytes: () => number;
  /** Breaks the connection; the next server has a quorum, or none. */
  readonly goTo: (quorum: 'with a quorum' | 'without a quorum') => Promise<void>;
}

/** A client whose server may report that it is read-only. It otherwise behaves as a normal server. */
async function onServers(program: (place: Place) => Promise<void>): Promise<void> {
  const { world, ensemble } = new Fleet(1, { servers: 1 });
  let isReadOnly = false;
  let sentBytes = 0;
  /** The last byte of a ConnectResponse is the flag: 4 bytes of length, and 37. */
  const makeTap = (): ClientTap => {
    let receivedBytes = 0;
    return {
      onSent(bytes) {
        sentBytes += bytes.length;
      },
      onReceived(bytes) {
        const index = 40 - receivedBytes;
        if (isReadOnly && index >= 0 && index < bytes.length) bytes[index] = 1;
        receivedBytes += bytes.length;
      },
      onClosed() {},
    };
  };
  await world.run(async () => {
    const client = await connect({
      servers: ensemble.connectString,
      sessionTimeoutMs: 4000,
      canBeReadOnly: true,
      transport: new VirtualTransport(world.network, world.timeline, 'one', makeTap),
      clock: makeClientClock(world.timeline, world.clockOf('one')),
      random: world.random.fork('client'),
    });
    await program({
      client,
      sleep: (ms) => world.sleep(ms),
      sentBytes: () => sentBytes,
      goTo: async (quorum) => {
        isReadOnly = quorum === 'without a quorum';
        for (const end of world.network.openEnds) end.breakStream();
        while (client.state !== (isReadOnly ? 'read-only' : 'connected')) await world.sleep(10);
      },
    });
  });
}

type Take = (client: Client) => Promise<Held>;

test.each<[string, Take]>([
  ['a mutex', (client) => new Mutex(client, '/it').acquire()],
  ['a mutex with a margin', (client) => new Mutex(client, '/it', { marginMs: 500 }).acquire()],
  ['a lock with priorities', (client) => new PriorityLock(client, '/it').acquire()],
  ['a lease', (client) => new Semaphore(client, '/it', { leasesMax: 1 }).acquire()],
  ['a leadership', (client) => new Election(client, '/it').campaign()],
])('%s ends when a server without a quorum answers, and does not begin again', (_what, take) =>
  onServers(async ({ client, sleep, goTo }) => {
    const held = await take(client);
    const { lostSignal } = client;
    await goTo('without a quorum');
    expect(held.isHeld).toBe(false);
    await sleep(1);
    expect(held.signal.aborted).toBe(true);
    expect(String(held.signal.reason)).toContain('has no quorum');
    await goTo('with a quorum');
    expect(lostSignal.aborted).toBe(false);
    expect(held.isHeld).toBe(false);
    // The same session no longer holds it, so that others can acquire it, for instance this client.
    expect((await take(client)).isHeld).toBe(true);
  }),
);

test('a waiter acquires nothing from a server without a quorum, whatever that one knows', () =>
  onServers(async ({ client, sleep, goTo }) => {
    const before = await new Mutex(client, '/lock').acquire();
    let isThere = false;
    const acquired = new Mutex(client, '/lock').acquire().then((lock) => {
      isThere = true;
      return lock;
    });
    while ((await new Mutex(client, '/lock').contenders()).length < 2) await sleep(10);
    await goTo('without a quorum');
    // Its own znode is deleted in the background.
    await sleep(2000);
    expect(before.isHeld).toBe(false);
    expect(isThere).toBe(false);
    await goTo('with a quorum');
    expect((await acquired).isHeld).toBe(true);
  }));

test.each<[string, (client: Client) => Promise<Held>]>([
  ['a mutex', (client) => new Mutex(client, '/it').acquire()],
  ['a lock with priorities', (client) => new PriorityLock(client, '/it').acquire()],
])('%s that is free is asked for now and then at a server without a quorum', (_what, take) =>
  onServers(async ({ client, sleep, sentBytes, goTo }) => {
    await goTo('without a quorum');
    const before = sentBytes();
    const taken = take(client);
    await sleep(3000);
    // Three kilobytes are about twenty requests.
    expect(sentBytes() - before).toBeLessThan(3000);
    await goTo('with a quorum');
    expect((await taken).isHeld).toBe(true);
  }),
);

test('the signal of the session ends a timeout after the last server with a quorum, and the client continues reading', () =>
  onServers(async ({ client, sleep, goTo }) => {
    const claimed = await new NameService(client, '/names').claim('worker-');
    const queue = new Queue(client, '/queue');
    expect(await queue.tryTake()).toBeNull();
    const full = new Queue(client, '/full');
    await full.put(new Uint8Array([1]));
    const { lostSignal } = client;
    await goTo('without a quorum');
    await sleep(3000);
    expect(lostSignal.aborted).toBe(false);
    await sleep(7000);
    expect(client.state).toBe('read-only');
    expect(lostSignal.aborted).toBe(true);
    expect(client.lostSignal.aborted).toBe(true);
    expect(await client.exists('/names')).not.toBeNull();
    expect(await queue.tryTake({ timeoutMs: 1000 })).toBeNull();
    await expect(full.tryTake({ timeoutMs: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    // Nor does it become certain by losing that server, too.
    const stops = client.onState(({ state }) => {
      if (state === 'suspended') suspended.push(claimed.isHeld, client.lostAtMs);
    });
    const suspended: unknown[] = [];
    await goTo('with a quorum');
    stops[Symbol.dispose]();
    expect(suspended).toEqual([false, Number.NEGATIVE_INFINITY]);
    expect(client.lostSignal.aborted).toBe(false);
    expect(claimed.isHeld).toBe(false);
    expect(await full.tryTake()).not.toBeNull();
  }));

/** null when it reports that it is no longer held. */
async function downgraded(client: Client, call: CallOptions): Promise<Held | null> {
  const lock = new ReadWriteLock(client, '/it');
  try {
    return await lock.downgrade(await lock.acquireWrite(call), call);
  } catch (error) {
    if (error instanceof NotHeldError) return null;
    throw error;
  }
}

test('nothing is deleted, taken or leased for a queue consumer after a long time without a server with a quorum', () =>
  onServers(async ({ client, sleep, goTo }) => {
    // The server of this test would apply it.
    const plain = new IdQueue(client, '/plain', { codec: text, leases: false });
    const leased = new IdQueue(client, '/leased', { codec: text });
    for (const queue of [plain, leased]) await queue.put('7', 'a');
    await goTo('without a quorum');
    await sleep(10_000);
    expect(client.lostSignal.aborted).toBe(true);
    const waiting = { timeoutMs: 1000 };
    for (const queue of [plain, leased]) {
      await expect(queue.remove('7', waiting)).rejects.toMatchObject({ code: 'TIMEOUT' });
      await expect(queue.tryTake(waiting)).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await expect(queue.take(waiting)).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      expect(await queue.size()).toBe(1);
    }
    expect(await client.exists('/leased-leases')).toBeNull();
    await goTo('with a quorum');
    expect(await plain.remove('7')).toBe(1);
    expect((await leased.take()).value).toBe('a');
  }));

test.each<[string, (client: Client, call: CallOptions) => Promise<Held | null>]>([
  ['a mutex', (client, call) => new Mutex(client, '/it').acquire(call)],
  ['a mutex that is tried', (client, call) => new Mutex(client, '/it').tryAcquire(call)],
  ['a mutex with a delay', (client, call) => new Mutex(client, '/it', { lockDelayMs: 100 }).acquire(call)],
  ['a lock for reading', (client, call) => new ReadWriteLock(client, '/it').acquireRead(call)],
  ['a lock that becomes one for reading', downgraded],
  ['a lock with priorities', (client, call) => new PriorityLock(client, '/it').acquire(call)],
  ['a lock with priorities that is tried', (client, call) => new PriorityLock(client, '/it').tryAcquire(call)],
  ['a lease', (client, call) => new Semaphore(client, '/it', { leasesMax: 1 }).acquire(call)],
  ['a lease that is tried', (client, call) => new Semaphore(client, '/it', { leasesMax: 1 }).tryAcquire(call)],
  ['a leadership', (client, call) => new Election(client, '/it').campaign(call)],
])('%s is had when it is got, whenever the quorum is lost', (_what, take) =>
  onServers(async ({ client, sleep, goTo }) => {
    for (let step = 0; step < 48; step++) {
      const taken = take(client, { timeoutMs: 30_000 }).then((held) => ({ held, isHeld: held?.isHeld }));
      await sleep(step / 4);
      await goTo('without a quorum');
      await sleep(1000);
      await goTo('with a quorum');
      const { held, isHeld } = await taken;
      expect(isHeld, `after ${step} steps`).not.toBe(false);
      await held?.release();
    }
  }),
);
