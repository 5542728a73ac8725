/** A holding is consistent, and does not affect callers that have stopped listening. */
import { AbortedError, acl, connect, NoAuthError, TimeoutError } from '@meerkat/client';
import { makeClientClock, VirtualTransport } from '@meerkat/simulator';
import { describe, expect, test, vi } from 'vitest';
import { Mutex } from '../locks/mutex.ts';
import { Fleet } from '../testing/fleet.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { openStation } from '../testing/station.ts';
import { watchUnhandledRejections } from '../testing/unhandled-rejections.ts';

test('a holding that the clock has ended stays over for all, although a late reply arrives', async () => {
  const { world, ensemble } = new Fleet(1, { servers: 1 });
  await world.run(async () => {
    const clock = makeClientClock(world.timeline, world.clockOf('one'));
    let stoodStillMs = 0;
    const client = await connect({
      servers: ensemble.connectString,
      sessionTimeoutMs: 4000,
      transport: new VirtualTransport(world.network, world.timeline, 'one'),
      clock: {
        monotonicMs: () => clock.monotonicMs() + stoodStillMs,
        schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
        defer: (callback) => clock.defer(callback),
      },
      random: world.random.fork('client'),
    });
    const { client: other } = await openStation(world, ensemble, 'two');
    const lock = await new Mutex(client, '/lock').acquire();
    await world.sleep(500);
    const answered = client.exists('/');
    await world.sleep(0.1);
    // The process is paused here, past the deadline of the last reply, but not past that of the one in flight.
    stoodStillMs = 3700;
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.aborted).toBe(true);
    expect(String(lock.signal.reason)).toContain('no answer of the service came for too long');
    await answered;
    expect([client.state, client.lostSignal.aborted, lock.isHeld]).toEqual(['connected', false, false]);
    expect((await new Mutex(other, '/lock').acquire({ timeoutMs: 1000 })).isHeld).toBe(true);
  });
});

test('a holding that is released in its abort listener is deleted once', () =>
  inWorld(1, async ([one], { sleep, cut, heal }) => {
    const { client } = one;
    const lock = await new Mutex(client, '/lock', { marginMs: 2000 }).acquire();
    const deletions = vi.spyOn(client, 'delete');
    let released: Promise<void> | null = null;
    lock.signal.addEventListener('abort', () => {
      released = lock.release();
    });
    cut('host1');
    while (!lock.signal.aborted) await sleep(10);
    heal();
    await released;
    await sleep(1000);
    // Of two concurrent deletions, the second might hit the next holder's znode, if it has the same path.
    expect(deletions).toHaveBeenCalledOnce();
    expect(await names(one)).toEqual([]);
  }));

describe('a release that is not awaited', () => {
  const unhandledRejections = watchUnhandledRejections();

  test.each([
    ['is refused', NoAuthError],
    ['takes too long', TimeoutError],
    ['is given up', AbortedError],
  ] as const)('does not end the process when it %s', async (how, error) => {
    await inWorld(1, async ([one], { sleep, cut }) => {
      const lock = await new Mutex(one.client, '/lock', { acl: [acl.world('crwa')] }).acquire();
      const controller = new AbortController();
      if (how !== 'is refused') cut('host1');
      const call = { timeoutMs: 1000, signal: controller.signal };
      void lock.release(call);
      const waitedFor = lock.release(call);
      if (how === 'is given up') controller.abort();
      await expect(waitedFor).rejects.toBeInstanceOf(error);
      await sleep(100);
    });
    expect(await unhandledRejections()).toEqual([]);
  });
});
