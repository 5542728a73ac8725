/**
 * Every lock supports every common lock option, and ends with its session. A new option does not compile until it is
 * tested here.
 */
import { type Client, OPEN } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import type { LockOptions } from '../kernel/options.ts';
import { inWorld } from '../testing/in-world.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

/** Ownership represented by a znode below `path`. */
type Acquire = (client: Client, options: LockOptions) => Promise<Held & { readonly path: string }>;

interface Case {
  readonly acquire: Acquire;
  /** What another client holds while this one waits; null: it never waits. */
  readonly rival: Acquire | null;
}

const takeMutex: Acquire = (client, options) => new Mutex(client, '/x', options).acquire();
const takeDelayed: Acquire = (client, options) => new Mutex(client, '/x', { ...options, lockDelayMs: 1000 }).acquire();
const takeForReading: Acquire = (client, options) => new ReadWriteLock(client, '/x', options).acquireRead();
const takeForWriting: Acquire = (client, options) => new ReadWriteLock(client, '/x', options).acquireWrite();
const downgrade: Acquire = async (client, options) => {
  const writing = await new ReadWriteLock(client, '/x').acquireWrite();
  return new ReadWriteLock(client, '/x', options).downgrade(writing);
};
const takeLease: Acquire = (client, options) => new Semaphore(client, '/x', { ...options, leasesMax: 1 }).acquire();
const takeKazooLease: Acquire = (client, options) =>
  new Semaphore(client, '/x', { ...options, leasesMax: 1, layout: 'kazoo' }).acquire();
const takeByPriority: Acquire = (client, options) => new PriorityLock(client, '/x', options).acquire();

const LOCKS: Readonly<Record<string, Case>> = {
  Mutex: { acquire: takeMutex, rival: takeMutex },
  'Mutex with a lock delay': { acquire: takeDelayed, rival: takeDelayed },
  'ReadWriteLock for reading': { acquire: takeForReading, rival: takeForWriting },
  'ReadWriteLock for writing': { acquire: takeForWriting, rival: takeForReading },
  'ReadWriteLock, downgraded': { acquire: downgrade, rival: null },
  Semaphore: { acquire: takeLease, rival: takeLease },
  "Semaphore in kazoo's layout": { acquire: takeKazooLease, rival: takeKazooLease },
  PriorityLock: { acquire: takeByPriority, rival: takeByPriority },
};

type Check = (client: Client, lock: Case, other: Client) => Promise<void>;

const CHECKS: { readonly [Name in keyof LockOptions]-?: Check } = {
  acl: async (client, { acquire, rival }, other) => {
    const [everything] = OPEN;
    const acl = [everything!, { ...everything!, scheme: 'ip', id: '10.0.0.1' }];
    const held = await acquire(client, { acl });
    expect((await client.getAcl(held.path)).acl).toEqual(acl);
    await held.release();
    if (rival === null) return;
    const theirs = await rival(other, {});
    const waiting = acquire(client, { acl });
    // Until it is in the line.
    while ((await client.ephemerals()).length === 0);
    for (const path of await client.ephemerals()) expect((await client.getAcl(path)).acl, path).toEqual(acl);
    await theirs.release();
    await (await waiting).release();
  },
  data: async (client, { acquire }) => {
    const { path } = await acquire(client, { data: 'host-1' });
    expect(new TextDecoder().decode((await client.get(path)).data)).toBe('host-1');
  },
  marginMs: async (client, { acquire }) => {
    const { timeoutMs } = client.session!;
    const sure = await acquire(client, { marginMs: timeoutMs / 2 });
    expect(sure.isHeld).toBe(true);
    await sure.release();
    expect((await acquire(client, { marginMs: timeoutMs })).isHeld).toBe(false);
  },
};

test.each(
  Object.entries(LOCKS).flatMap(([name, lock]) =>
    Object.entries(CHECKS).map(([option, check]) => ({ name, lock, option, check })),
  ),
)('$name honours $option', ({ lock, check }) => inWorld(2, ([{ client }, other]) => check(client, lock, other.client)));

test.each(Object.entries(LOCKS).filter(([, { rival }]) => rival !== null))(
  '%s ends one session timeout after the last reply, and before another client can acquire it',
  (_name, { acquire, rival }) =>
    inWorld(2, async ([one, two], { sleep, cut }) => {
      const lock = await acquire(one.client, {});
      let wasHeld = true;
      const next = rival!(two.client, {}).then((got) => {
        wasHeld = lock.isHeld;
        return got;
      });
      cut('host1');
      await sleep(2000);
      expect(lock.isHeld).toBe(true);
      const got = await next;
      expect(wasHeld).toBe(false);
      expect(lock.signal.aborted).toBe(true);
      expect(got.token).toBeGreaterThan(lock.token);
    }),
);
