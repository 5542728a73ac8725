import { ClosedError, NoAuthError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { Attempt } from './attempt.ts';
import { bestEffort, orDisconnected, unlessClientEnds } from './background.ts';

const ABOUT = { operation: 'tidy', path: '/it' };

test('bestEffort ignores errors of the service and cancellation, but not bugs', () =>
  inWorld(1, async ([one]) => {
    const attempt = new Attempt(one.client, { timeoutMs: 10 }, ABOUT);
    await bestEffort(attempt, Promise.reject(new NoAuthError(ABOUT)));
    await bestEffort(attempt, new Promise(() => {}));
    await expect(bestEffort(attempt, Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug');
  }));

test('the end of the client is not a failure of background work', async () => {
  await unlessClientEnds(Promise.reject(new ClosedError(ABOUT)));
  await expect(unlessClientEnds(Promise.reject(new NoAuthError(ABOUT)))).rejects.toThrow(NoAuthError);
});

test('orDisconnected waits as long as there is a connection', () =>
  inWorld(1, async ([one], { cut, heal }) => {
    const { client } = one;
    const never = new Promise<void>(() => {});
    cut(one.host);
    await orDisconnected(client, never);
    expect(client.state).not.toBe('connected');
    await orDisconnected(client, never);
    heal();
    await client.whenConnected();
    await expect(orDisconnected(client, Promise.reject(new NoAuthError(ABOUT)))).rejects.toThrow(NoAuthError);
  }));
