import { ClosedError, NoAuthError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { Attempt } from './attempt.ts';
import { bestEffort, orDisconnected, unlessClientEnds } from './background.ts';

const ABOUT = { operation: 'tidy', path: '/it' };

test('what the service says of tidying up, and a caller who gives up, does not concern other callers; a mistake does', () =>
  inWorld(1, async ([one]) => {
    const attempt = new Attempt(one.client, { timeoutMs: 10 }, ABOUT);
    await bestEffort(attempt, Promise.reject(new NoAuthError(ABOUT)));
    await bestEffort(attempt, new Promise(() => {}));
    await expect(bestEffort(attempt, Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug');
  }));

test('the end of the client is no failure of what continues behind it', async () => {
  await unlessClientEnds(Promise.reject(new ClosedError(ABOUT)));
  await expect(unlessClientEnds(Promise.reject(new NoAuthError(ABOUT)))).rejects.toThrow(NoAuthError);
});

test('what needs a connection is waited for as long as there is one', () =>
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
