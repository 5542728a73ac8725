import { bytes, NotReadOnlyError, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { bytesAt, loseReply, onStage } from '../testing/stage.ts';
import { SharedCount, SharedValue } from './shared-value.ts';

test('a shared value is its seed until it is set, and is set by one of two clients that saw the same version', () =>
  onStage(async ({ client, other }) => {
    const [mine, theirs] = [client, other].map(
      (each) => new SharedValue(each, '/app/mode', { seed: 'normal', codec: text }),
    );
    const seen = await mine!.get();
    expect(seen).toMatchObject({ value: 'normal', version: 0 });
    expect(await theirs!.trySet(seen, 'theirs')).toBe(true);
    expect(await mine!.trySet(seen, 'mine')).toBe(false);
    await using observation = mine!.observe();
    expect((await observation.ready).data).toBe('theirs');
    await mine!.set('mine');
    expect((await theirs!.get({ read: 'linearizable' })).value).toBe('mine');
  }));

test('a shared value recognizes its own set when the reply is lost, and reports when it cannot', () =>
  onStage(async ({ client, other }) => {
    const [mine, theirs] = [client, other].map((each) => new SharedValue(each, '/mode', { seed: '', codec: text }));
    const seen = await mine!.get();
    loseReply(client);
    expect(await mine!.trySet(seen, 'mine')).toBe(true);
    expect(await mine!.trySet(seen, 'mine again')).toBe(false);

    loseReply(client);
    const whenConnected = client.whenConnected.bind(client);
    client.whenConnected = async () => {
      client.whenConnected = whenConnected;
      await theirs!.set('theirs');
    };
    const trying = mine!.trySet(await mine!.get(), 'mine again');
    await expect(trying).rejects.toMatchObject({ code: 'BADVERSION', outcome: 'unknown' });
  }));

test('a cancelled set reports whether it may have been applied', () =>
  onStage(async ({ client }) => {
    const mode = new SharedValue(client, '/mode', { seed: '', codec: text });
    const seen = await mode.get();
    // The timeout passes in the pause before the retry.
    for (const set of [() => mode.trySet(seen, 'x', { timeoutMs: 15 }), () => mode.set('x', { timeoutMs: 15 })]) {
      loseReply(client);
      await expect(set()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
    }
    await expect(mode.set('x', { timeoutMs: 0 })).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
  }));

test('a set in doubt is not reported as refused because of what is found after it', () =>
  onStage(async ({ client, other }) => {
    const mode = new SharedValue(client, '/mode', { seed: '', codec: text });
    const whenConnected = client.whenConnected.bind(client);
    const deleted = async (): Promise<void> => {
      client.whenConnected = whenConnected;
      await other.delete('/mode');
    };
    const seen = await mode.get();
    loseReply(client);
    client.whenConnected = deleted;
    await expect(mode.trySet(seen, 'x')).rejects.toMatchObject({ code: 'NONODE', outcome: 'unknown' });
    await expect(mode.trySet(seen, 'x')).rejects.toMatchObject({ code: 'NONODE', outcome: 'not-applied' });

    await mode.get();
    loseReply(client);
    client.whenConnected = async () => {
      client.whenConnected = whenConnected;
      const refusal = new NotReadOnlyError({ operation: 'set', path: '/mode' });
      client.set = async () => Promise.reject(refusal);
    };
    await expect(mode.set('x')).rejects.toMatchObject({ code: 'NOTREADONLY', outcome: 'unknown' });
  }));

test('a set continues when the session counts as lost', () =>
  onStage(async ({ world, client }) => {
    const mode = new SharedValue(client, '/mode', { seed: '', codec: text });
    const seen = await mode.get();
    world.network.block('app', 'zk1');
    world.network.block('zk1', 'app');
    const setting = mode.trySet(seen, 'x');
    await new Promise<void>((resolve) => client.onState(({ state }) => state === 'lost' && resolve()));
    world.network.heal();
    expect(await setting).toBe(true);
  }));

test('a shared count is stored as in Curator, 4 bytes big-endian', () =>
  onStage(async ({ client }) => {
    const count = new SharedCount(client, '/replicas', 3);
    const seen = await count.get();
    expect(seen.value).toBe(3);
    expect(await bytesAt(client, '/replicas')).toEqual([0, 0, 0, 3]);
    expect(await count.trySet(seen, -2)).toBe(true);
    expect(await bytesAt(client, '/replicas')).toEqual([255, 255, 255, 254]);
    await expect(count.set(2 ** 31)).rejects.toThrow(RangeError);
    const raw = new SharedValue(client, '/raw', { seed: new Uint8Array([1]), codec: bytes });
    expect([...(await raw.get()).value]).toEqual([1]);
  }));
