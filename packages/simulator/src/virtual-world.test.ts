import { ConnectionLossError, SessionLostError, type WatchStreamEvent } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { VirtualWorld } from './virtual-world.ts';

/** A client works while the network breaks and the server crashes; its results are checked at the end. */
async function liveThrough(seed: number): Promise<{ readonly hash: string; readonly lines: readonly string[] }> {
  const lines: string[] = [];
  const world = new VirtualWorld({ seed, onLine: (line) => lines.push(line) });
  const chance = world.random.fork('program');
  const server = world.startServer({ host: 'zk' });
  await world.run(async () => {
    const options = { servers: 'zk:2181', sessionTimeoutMs: 6000, connectTimeoutMs: 60_000 };
    const client = await world.connect('app', options);
    const other = await world.connect('other', options);
    await client.create('/counter', '0');
    const watch = other.watch('/counter');
    await watch.ready;
    const events: WatchStreamEvent[] = [];
    const watching = (async () => {
      for await (const event of watch) events.push(event);
    })();
    let acknowledged = 0;
    let doubtful = 0;
    for (let i = 0; i < 60; i++) {
      const fault = chance.between(0, 9);
      if (fault === 0) for (const end of world.network.openEnds) if (chance.chance(0.5)) end.breakStream();
      if (fault === 1) world.network.partition(['app', 'other'], ['zk']);
      if (fault === 2 && server.isRunning) server.crash({ losesPower: chance.chance(0.5) });
      if (fault >= 7) {
        world.network.heal();
        server.start();
      }
      try {
        await client.set('/counter', String(i), { timeoutMs: 2000 });
        acknowledged++;
      } catch (error) {
        if (!(error instanceof Error) || !('outcome' in error)) throw error;
        if (error.outcome === 'unknown') doubtful++;
        world.record('app', `${error.name} ${String(error.outcome)}`);
      }
      await world.sleep(chance.between(1, 500));
    }
    world.network.heal();
    server.start();
    await client.whenConnected();
    await other.whenConnected();
    const { stat } = await other.get('/counter', { read: 'linearizable' });
    // Every acknowledged write is there, and nothing that was certainly refused.
    expect(stat.version).toBeGreaterThanOrEqual(acknowledged);
    expect(stat.version).toBeLessThanOrEqual(acknowledged + doubtful);
    const changedCount = events.filter(({ type }) => type === 'changed').length;
    const gaps = events.filter(({ type }) => type === 'gap').length;
    expect(changedCount + gaps === 0 && stat.version > 0).toBe(false);
    world.record(
      'end',
      `version ${stat.version}, ${acknowledged} acknowledged, ${doubtful} in doubt, ${changedCount} told`,
    );
    await client.close();
    await other.close();
    await watching;
    expect(server.failure).toBeNull();
  });
  return { hash: world.traceHash, lines };
}

test('a world whose time stands still fails before it exhausts memory', async () => {
  const world = new VirtualWorld({ seed: 1 });
  const again = (): void => void world.timeline.plan(0, again);
  await expect(
    world.run(async () => {
      await world.sleep(5);
      again();
      await world.sleep(5);
    }),
  ).rejects.toThrow('time stands still at 5 ms');
});

describe('a virtual world', () => {
  test('is the same, event by event, for the same seed, and another one for another', async () => {
    const first = await liveThrough(1);
    const second = await liveThrough(1);
    const other = await liveThrough(2);
    expect(second.lines).toEqual(first.lines);
    expect(second.hash).toBe(first.hash);
    expect(other.hash).not.toBe(first.hash);
    expect(first.lines.length).toBeGreaterThan(100);
  });

  test('loses no acknowledged write of a real client through cuts, partitions and crashes, in fifty seeds', async () => {
    for (let seed = 100; seed < 150; seed++) {
      await liveThrough(seed).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
    }
  });

  test('passes an hour without events in no time', async () => {
    const world = new VirtualWorld({ seed: 3 });
    world.startServer({ host: 'zk' });
    await world.run(async () => {
      const client = await world.connect('app', { servers: 'zk', sessionTimeoutMs: 60_000 });
      const { id } = client.session ?? { id: 0n };
      await world.sleep(3_000_000);
      expect(client.state).toBe('connected');
      expect(client.session?.id).toBe(id);
      await client.close();
    });
    expect(world.timeline.nowMs).toBeGreaterThan(3_000_000);
  });

  test('shows a client behind a partition that its session is lost one timeout after its last answered request', async () => {
    const world = new VirtualWorld({ seed: 4 });
    world.startServer({ host: 'zk' });
    await world.run(async () => {
      const client = await world.connect('app', { servers: 'zk', sessionTimeoutMs: 6000 });
      await client.create('/me', null, { mode: 'ephemeral' });
      const askedMs = world.timeline.nowMs;
      await client.exists('/me');
      world.network.partition(['app'], ['zk']);
      const states: string[] = [];
      for await (const { state } of client.states()) {
        states.push(`${state} at ${Math.floor(world.timeline.nowMs - askedMs)}`);
        if (state === 'lost') break;
      }
      expect(states.at(-1)).toBe('lost at 6000');
      await expect(client.get('/me')).rejects.toThrow(SessionLostError);
      world.network.heal();
      // The server may have expired the session meanwhile or not: the client says which, and the ephemeral znode agrees.
      for await (const { state, sameSession } of client.states()) {
        if (state !== 'connected') continue;
        expect((await client.exists('/me')) !== null).toBe(sameSession);
        break;
      }
      await client.close();
    });
  });

  test('a watch that begins while another one on the same znode ends is notified of changes', async () => {
    const world = new VirtualWorld({ seed: 6 });
    world.startServer({ host: 'zk' });
    await world.run(async () => {
      const client = await world.connect('app', { servers: 'zk', sessionTimeoutMs: 6000 });
      await client.create('/a');
      for (const recursive of [false, true]) {
        const first = client.watch('/a', { recursive });
        await first.ready;
        const second = client.watch('/a', { recursive });
        await first.close();
        await second.ready;
        await client.set('/a', 'new');
        const events = second[Symbol.asyncIterator]();
        expect((await events.next()).value).toMatchObject({ type: 'changed', path: '/a' });
        await second.close();
        expect(await client.checkWatches('/a', recursive ? 'recursive' : 'persistent')).toBe(false);
      }
      await client.close();
    });
  });

  test('a write whose connection breaks in flight rejects with the outcome unknown', async () => {
    const world = new VirtualWorld({ seed: 5 });
    world.startServer({ host: 'zk' });
    await world.run(async () => {
      const client = await world.connect('app', { servers: 'zk', sessionTimeoutMs: 6000 });
      const write = client.create('/a');
      // It leaves, and nothing comes back before the connection breaks.
      world.network.block('zk', 'app');
      await world.sleep(5);
      for (const end of world.network.openEnds) end.breakStream();
      world.network.heal();
      const error: unknown = await write.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(ConnectionLossError);
      expect((error as ConnectionLossError).outcome).toBe('unknown');
      expect(await client.exists('/a', { read: 'linearizable' })).not.toBeNull();
      await client.close();
    });
  });
});
