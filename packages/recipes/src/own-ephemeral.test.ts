import { ClosedError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { createOwn } from './own-ephemeral.ts';
import { inWorld } from './testing/in-world.ts';
import { stepClient } from './testing/stepped-client.ts';
import { Wait } from './wait.ts';

test('a znode that was made while the client was being closed is not told of as of a session that was lost', () =>
  inWorld(1, async ([one]) => {
    const { client, afterRequest } = stepClient(one!.client);
    let closed: Promise<void> | null = null;
    afterRequest(1, () => {
      closed = one!.client.close();
      return Promise.resolve();
    });
    const wait = new Wait(client, {}, { operation: 'createOwn', path: '/x' });
    const error: unknown = await createOwn(client, '/x', '', false, wait).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ClosedError);
    expect(error).toMatchObject({ outcome: 'unknown' });
    await closed;
  }));
