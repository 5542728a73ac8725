import type { CallOptions, Client } from '@meerkat/client';
import { Election } from '../election/election.ts';
import { MultiLock } from '../locks/multi-lock.ts';
import { Mutex } from '../locks/mutex.ts';
import { PriorityLock } from '../locks/priority-lock.ts';
import { ReadWriteLock } from '../locks/read-write-lock.ts';
import { Semaphore } from '../locks/semaphore.ts';

export type Take = (client: Client, options: CallOptions) => Promise<AsyncDisposable | null>;

const LAYOUTS = ['curator', 'kazoo'] as const;
/** All acquiring calls, by name. The path is `/it`, and where the layout requires it, `/it-__lock__`. */
export const TAKES: readonly (readonly [string, Take])[] = [
  ...LAYOUTS.flatMap((layout): (readonly [string, Take])[] => [
    [`Mutex.acquire (${layout})`, (client, call) => new Mutex(client, '/it', { layout }).acquire(call)],
    [
      `Semaphore.acquire (${layout})`,
      (client, call) => new Semaphore(client, '/it', { layout, leasesMax: 1 }).acquire(call),
    ],
    [
      `Semaphore.tryAcquire (${layout})`,
      (client, call) => new Semaphore(client, '/it', { layout, leasesMax: 1 }).tryAcquire(call),
    ],
  ]),
  ['Mutex.tryAcquire', (client, call) => new Mutex(client, '/it').tryAcquire(call)],
  ['Mutex.acquire with a delay', (client, call) => new Mutex(client, '/it', { lockDelayMs: 20 }).acquire(call)],
  ['Mutex.tryAcquire with a delay', (client, call) => new Mutex(client, '/it', { lockDelayMs: 20 }).tryAcquire(call)],
  ['ReadWriteLock.acquireRead', (client, call) => new ReadWriteLock(client, '/it').acquireRead(call)],
  ['ReadWriteLock.acquireWrite', (client, call) => new ReadWriteLock(client, '/it').acquireWrite(call)],
  ['PriorityLock.tryAcquire', (client, call) => new PriorityLock(client, '/it').tryAcquire(call)],
  ['PriorityLock.acquire', (client, call) => new PriorityLock(client, '/it').acquire(call)],
  [
    'PriorityLock.acquire with a delay',
    (client, call) => new PriorityLock(client, '/it', { lockDelayMs: 20 }).acquire(call),
  ],
  ['MultiLock.acquire', (client, call) => new MultiLock(client, ['/it', '/it-__lock__']).acquire(call)],
  ['Election.campaign', (client, call) => new Election(client, '/it').campaign(call)],
];
