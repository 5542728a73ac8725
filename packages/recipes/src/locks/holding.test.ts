/** What is held says one thing at a time. */
import { connect } from '@meerkat/client';
import { makeClientClock, VirtualTransport } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { makeWorld, openStation } from '../testing/line-world.ts';
import { Mutex } from './mutex.ts';

test('what the clock has ended is over for its signal and for others, too, although an answer comes late', async () => {
  const { world, ensemble } = makeWorld();
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
    // The process stands still here, past the deadline of the last answer, and not past that of the one that is under way.
    stoodStillMs = 3700;
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.aborted).toBe(true);
    expect(String(lock.signal.reason)).toContain('no answer of the service came for too long');
    await answered;
    expect([client.state, client.lostSignal.aborted, lock.isHeld]).toEqual(['connected', false, false]);
    expect((await new Mutex(other, '/lock').acquire({ timeoutMs: 1000 })).isHeld).toBe(true);
  });
});
