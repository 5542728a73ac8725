/** Whoever may create znodes and not delete them keeps the others waiting, and is told. */
import { type Acl, acl, type Client, NoAuthError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

test.each<[string, (client: Client, options: { acl: Acl[] }) => Promise<unknown>]>([
  ['Mutex', (client, options) => new Mutex(client, '/lock', options).tryAcquire()],
  ['ReadWriteLock', (client, options) => new ReadWriteLock(client, '/lock', options).tryAcquireWrite()],
  ['PriorityLock', (client, options) => new PriorityLock(client, '/lock', options).tryAcquire()],
  ['Semaphore', (client, options) => new Semaphore(client, '/lock', { ...options, leasesMax: 1 }).tryAcquire()],
])('a try that may not leave the line says so, and does not say null (%s)', (_what, tryIt) =>
  inWorld(2, async ([one, two]) => {
    const options = { acl: [acl.world('crwa')] };
    await two!.client.create('/lock', '', options);
    await two!.client.create('/lock/leases', '', options);
    // A holder that the try comes to nothing for, in each of the layouts.
    await two!.client.create('/lock/held', '', { mode: 'ephemeral' });
    for (const name of ['lock-', '__WRIT__']) {
      await two!.client.create(`/lock/${name}`, '', { mode: 'ephemeral', sequential: true });
    }
    await two!.client.create('/lock/leases/lease-', '', { mode: 'ephemeral', sequential: true });
    await expect(tryIt(one!.client, options)).rejects.toBeInstanceOf(NoAuthError);
  }),
);
