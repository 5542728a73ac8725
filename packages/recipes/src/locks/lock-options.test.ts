/** Every lock honours every option that all locks have. An option that is new does not compile until it is tested here. */
import { type Client, OPEN } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import type { LockOptions } from '../kernel/options.ts';
import { inWorld } from '../testing/in-world.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

/** Something that is held under the znode at `path`. */
type Acquire = (client: Client, options: LockOptions) => Promise<Held & { readonly path: string }>;

const LOCKS: Readonly<Record<string, Acquire>> = {
  Mutex: (client, options) => new Mutex(client, '/x', options).acquire(),
  'Mutex with a lock delay': (client, options) => new Mutex(client, '/x', { ...options, lockDelayMs: 1000 }).acquire(),
  'ReadWriteLock for reading': (client, options) => new ReadWriteLock(client, '/x', options).acquireRead(),
  'ReadWriteLock for writing': (client, options) => new ReadWriteLock(client, '/x', options).acquireWrite(),
  'ReadWriteLock, downgraded': async (client, options) => {
    const writing = await new ReadWriteLock(client, '/x').acquireWrite();
    return new ReadWriteLock(client, '/x', options).downgrade(writing);
  },
  Semaphore: (client, options) => new Semaphore(client, '/x', { ...options, leasesMax: 1 }).acquire(),
  "Semaphore in kazoo's layout": (client, options) =>
    new Semaphore(client, '/x', { ...options, leasesMax: 1, layout: 'kazoo' }).acquire(),
  PriorityLock: (client, options) => new PriorityLock(client, '/x', options).acquire(),
};

const CHECKS: { readonly [Name in keyof LockOptions]-?: (client: Client, acquire: Acquire) => Promise<void> } = {
  acl: async (client, acquire) => {
    const [everything] = OPEN;
    const acl = [everything!, { ...everything!, scheme: 'ip', id: '10.0.0.1' }];
    const { path } = await acquire(client, { acl });
    expect((await client.getAcl(path)).acl).toEqual(acl);
  },
  data: async (client, acquire) => {
    const { path } = await acquire(client, { data: 'host-1' });
    expect(new TextDecoder().decode((await client.get(path)).data)).toBe('host-1');
  },
  marginMs: async (client, acquire) => {
    const { timeoutMs } = client.session!;
    const sure = await acquire(client, { marginMs: timeoutMs / 2 });
    expect(sure.isHeld).toBe(true);
    await sure.release();
    expect((await acquire(client, { marginMs: timeoutMs })).isHeld).toBe(false);
  },
};

test.each(
  Object.entries(LOCKS).flatMap(([lock, acquire]) =>
    Object.entries(CHECKS).map(([option, check]) => ({ lock, acquire, option, check })),
  ),
)('$lock honours $option', ({ acquire, check }) => inWorld(1, ([{ client }]) => check(client, acquire)));
