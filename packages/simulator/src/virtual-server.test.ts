import { describe, expect, test } from 'vitest';
import { VirtualWorld } from './virtual-world.ts';

const OPTIONS = { servers: 'zk1', sessionTimeoutMs: 6000, connectTimeoutMs: 60_000 };

describe('a virtual server', () => {
  test('does nothing while it is paused, and everything that has waited when it is resumed', async () => {
    const world = new VirtualWorld({ seed: 1 });
    const server = world.startServer({ host: 'zk1' });
    await world.run(async () => {
      const client = await world.connect('app', OPTIONS);
      server.pause();
      const pausedMs = world.nowMs;
      const created = client.create('/a').then(() => world.nowMs);
      await world.sleep(1500);
      server.resume();
      expect((await created) - pausedMs).toBeGreaterThanOrEqual(1500);
      await client.close();
    });
  });

  test('accepts connections in its kernel while it is paused, and answers none', async () => {
    const world = new VirtualWorld({ seed: 2 });
    const server = world.startServer({ host: 'zk1' });
    await world.run(async () => {
      await world.sleep(100);
      server.pause();
      const connecting = world.connect('app', OPTIONS);
      await world.sleep(500);
      expect(world.network.openEnds.filter(({ host }) => host === 'app')).toHaveLength(1);
      server.resume();
      const client = await connecting;
      expect(client.state).toBe('connected');
      await client.close();
    });
  });

  test('loses the connections of an I/O thread that dies, and its clients come back with their sessions', async () => {
    const world = new VirtualWorld({ seed: 4 });
    const server = world.addServer({ host: 'zk1', clientThreads: 1 });
    server.start();
    await world.run(async () => {
      const client = await world.connect('app', OPTIONS);
      const states: string[] = [];
      client.onState(({ state, sameSession }) => states.push(`${state} ${sameSession}`));
      await client.create('/me', null, { mode: 'ephemeral' });
      expect(server.killThread()).toBe(true);
      // The only thread: until it is replaced, no client is accepted, and it cannot die again.
      expect(server.killThread()).toBe(false);
      expect(await client.exists('/me')).not.toBeNull();
      expect(states.at(-1)).toBe('connected true');
      expect(server.core?.view.sessions()).toHaveLength(1);
      await client.close();
    });
  });

  test('expires sessions by its own clock, fast or slow as it is', async () => {
    const lifetimes: number[] = [];
    for (const drift of [-200_000, 0, 200_000]) {
      const world = new VirtualWorld({ seed: 3 });
      world.startServer({ host: 'zk1' });
      world.clockOf('zk1').setDrift(drift);
      await world.run(async () => {
        const one = await world.connect('one', OPTIONS);
        const two = await world.connect('two', OPTIONS);
        await one.create('/me', null, { mode: 'ephemeral' });
        const { changed } = await two.exists('/me', { watch: true });
        world.network.partition(['one'], ['zk1']);
        const startMs = world.nowMs;
        await changed;
        lifetimes.push(world.nowMs - startMs);
        await two.close();
      });
    }
    const [slow = 0, right = 0, fast = 0] = lifetimes;
    expect(slow).toBeGreaterThan(right);
    expect(right).toBeGreaterThan(fast);
  });

  test('has a monotonic clock that never goes back when its wall clock jumps', async () => {
    const world = new VirtualWorld({ seed: 4 });
    const clock = world.clockOf('zk1');
    let previous = clock.monotonicMs();
    for (let i = 0; i < 100; i++) {
      clock.setDrift(world.random.between(-900_000, 900_000));
      clock.jumpWall(-1000);
      await world.advance(10);
      expect(clock.monotonicMs()).toBeGreaterThan(previous);
      previous = clock.monotonicMs();
    }
    expect(clock.wallMs()).toBeLessThan(1_700_000_000_000);
  });

  test('loses everything when its disk is wiped', async () => {
    const world = new VirtualWorld({ seed: 5 });
    const server = world.startServer({ host: 'zk1' });
    await world.run(async () => {
      const client = await world.connect('app', OPTIONS);
      await client.create('/a');
      await client.close();
      server.wipe();
      server.start();
      const other = await world.connect('other', OPTIONS);
      expect(await other.exists('/a')).toBeNull();
      await other.close();
    });
  });

  test('ends when a sync of its log fails, acknowledges nothing of it, and comes back with what was acknowledged', async () => {
    const world = new VirtualWorld({ seed: 6 });
    const server = world.startServer({ host: 'zk1', restartDelayMs: 500 });
    await world.run(async () => {
      const client = await world.connect('app', OPTIONS);
      await client.create('/a');
      server.failDisk({ operation: 'sync', code: 'EIO' });
      await expect(client.create('/b')).rejects.toMatchObject({ outcome: 'unknown' });
      expect(server.failure?.message).toContain('EIO');
      await client.whenConnected();
      expect(await client.exists('/a')).not.toBeNull();
      await client.close();
    });
  });

  test('ends again and again on a full disk, and serves once there is room', async () => {
    const world = new VirtualWorld({ seed: 7 });
    const server = world.startServer({ host: 'zk1', restartDelayMs: 200 });
    await world.run(async () => {
      const client = await world.connect('app', { ...OPTIONS, sessionTimeoutMs: 60_000 });
      await client.create('/a');
      server.disk.fill();
      await expect(client.create('/b')).rejects.toThrow();
      await world.sleep(3000);
      expect(server.life).toBeGreaterThan(1);
      server.healDisk();
      await client.whenConnected();
      await client.create('/c');
      expect(await client.exists('/a')).not.toBeNull();
      await client.close();
    });
  });
});
