/** A client that may create znodes but not delete them blocks the others, and is notified. */
import { type Acl, acl, type Client, NoAuthError } from '@meerkat/client';
import { afterEach, expect, test } from 'vitest';
import { Election } from '../election/election.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { watchUnhandledRejections } from '../testing/unhandled-rejections.ts';
import { MultiLock } from './multi-lock.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

const NO_DELETE = [acl.world('crwa')];

const unhandledRejections = watchUnhandledRejections();

afterEach(async () => {
  expect(await unhandledRejections()).toEqual([]);
});

test.each<[string, (client: Client, options: { acl: Acl[] }) => Promise<unknown>]>([
  ['Mutex', (client, options) => new Mutex(client, '/lock', options).tryAcquire()],
  ['ReadWriteLock', (client, options) => new ReadWriteLock(client, '/lock', options).tryAcquireWrite()],
  ['PriorityLock', (client, options) => new PriorityLock(client, '/lock', options).tryAcquire()],
  ['Semaphore', (client, options) => new Semaphore(client, '/lock', { ...options, leasesMax: 1 }).tryAcquire()],
])('a try that may not leave the line says so, and does not say null (%s)', (_what, tryIt) =>
  inWorld(2, async ([one, two]) => {
    const options = { acl: NO_DELETE };
    await two.client.create('/lock', '', options);
    await two.client.create('/lock/leases', '', options);
    // A holder that makes the try fail, in each of the layouts.
    await two.client.create('/lock/held', '', { mode: 'ephemeral' });
    for (const name of ['lock-', '__WRIT__']) {
      await two.client.create(`/lock/${name}`, '', { mode: 'ephemeral', sequential: true });
    }
    await two.client.create('/lock/leases/lease-', '', { mode: 'ephemeral', sequential: true });
    await expect(tryIt(one.client, options)).rejects.toBeInstanceOf(NoAuthError);
  }),
);

test('a try for several locks rejects, instead of returning null, when it may not release one that it got', () =>
  inWorld(2, async ([one, two]) => {
    await one.client.create('/a', '', { acl: NO_DELETE });
    await using _held = await new Mutex(two.client, '/b').acquire();
    await expect(new MultiLock(one.client, ['/a', '/b']).tryAcquire()).rejects.toBeInstanceOf(NoAuthError);
  }));

test('a holding that has ended and may not be deleted can be released once that is allowed', () =>
  inWorld(1, async ([one], { sleep, cut, heal }) => {
    const { client } = one;
    const lock = await new Mutex(client, '/lock', { acl: NO_DELETE, marginMs: 2000 }).acquire();
    cut('host1');
    while (!lock.signal.aborted) await sleep(10);
    heal();
    await client.whenConnected();
    await sleep(1000);
    await expect(lock.release()).rejects.toBeInstanceOf(NoAuthError);
    await client.setAcl('/lock', [acl.world('cdrwa')]);
    await lock.release();
    expect(await names(one)).toEqual([]);
  }));

test('a multi-lock rejects a refused release once the others are released, but only for callers that await it', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    await two.client.create('/a', '', { acl: NO_DELETE });
    const { client, beforeRequest } = stepClient(one.client);
    const lock = await new MultiLock(client, ['/a', '/b']).acquire();
    await sleep(100);
    // The second one takes longer to be deleted than the first takes to be refused.
    beforeRequest(2, () => sleep(500));
    void lock.release();
    await expect(lock.release()).rejects.toMatchObject({ code: 'NOAUTH', path: expect.stringMatching('^/a/') });
    expect([await names(two, '/a'), await names(two, '/b')]).toEqual([[expect.any(String)], []]);
    await two.client.setAcl('/a', [acl.world('cdrwa')]);
    await lock.release();
    expect(await names(two, '/a')).toEqual([]);
  }));

test('a leader that may not resign gets that error, unless its work failed before', () =>
  inWorld(1, async ([one]) => {
    const election = new Election(one.client, '/lock', { acl: NO_DELETE });
    await expect(election.run(() => Promise.resolve('done'))).rejects.toBeInstanceOf(NoAuthError);
    await one.client.setAcl('/lock', [acl.world('cdrwa')]);
    await one.client.deleteRecursive('/lock');
    await expect(election.run(() => Promise.reject(new Error('the work failed')))).rejects.toThrow('the work failed');
  }));
