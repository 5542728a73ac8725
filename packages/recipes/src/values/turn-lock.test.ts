import { type Client, SessionLostError, TimeoutError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { AtomicLong } from './counters.ts';

async function bytesAt(client: Client, path: string): Promise<number[]> {
  return [...(await client.get(path)).data];
}

test('an update continues when the session is lost while it waits for the lock', () =>
  inWorld(2, async ([{ client }, { client: other }]) => {
    let asked = 0;
    const acquire = async (): Promise<AsyncDisposable> => {
      if (++asked === 1) throw new SessionLostError({ operation: 'acquire', path: '/lock', outcome: 'not-applied' });
      return { async [Symbol.asyncDispose]() {} };
    };
    const counter = new AtomicLong(client, '/hits', { lock: { acquire }, attemptsBeforeLock: 1 });
    let isFirst = true;
    const update = await counter.update(async (current) => {
      if (isFirst) await other.create('/hits', new Uint8Array(8));
      isFirst = false;
      return current + 1n;
    });
    expect([asked, update.after]).toEqual([2, 1n]);
  }));

test('an update that is cancelled while it acquires the lock reports that nothing was written', () =>
  inWorld(2, async ([{ client }, { client: other }]) => {
    // It was creating its znode.
    const acquire = async (): Promise<never> => {
      throw new TimeoutError({ operation: 'createProtected', path: '/lock', outcome: 'unknown' });
    };
    const counter = new AtomicLong(client, '/hits', { lock: { acquire }, attemptsBeforeLock: 1 });
    const update = counter.update(async (current) => {
      await other.create('/hits', new Uint8Array(8));
      return current + 1n;
    });
    await expect(update).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect(await bytesAt(other, '/hits')).toEqual(Array(8).fill(0));
  }));

test('the fate of the lock does not affect the result of the update', () =>
  inWorld(2, async ([{ client }, { client: other }]) => {
    const release = async (): Promise<void> => {
      throw new Error('the lock is broken');
    };
    const lock = { acquire: async () => ({ [Symbol.asyncDispose]: release }) };
    const counter = new AtomicLong(client, '/hits', { lock, attemptsBeforeLock: 1 });
    let isFirst = true;
    const update = await counter.update(async (current) => {
      if (isFirst) await other.create('/hits', new Uint8Array(8));
      isFirst = false;
      return current + 1n;
    });
    expect(update).toMatchObject({ after: 1n, version: 1 });
  }));
