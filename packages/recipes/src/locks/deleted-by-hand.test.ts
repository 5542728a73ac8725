/** Somebody deletes everything that is there while a lock is being taken: it is taken, later, and nothing fails. */
import { type CallOptions, type Client, NoNodeError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Election } from '../election/election.ts';
import { inWorld } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { MultiLock } from './multi-lock.ts';
import { Mutex } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';

type Take = (client: Client, options: CallOptions) => Promise<AsyncDisposable | null>;

const LAYOUTS = ['curator', 'kazoo'] as const;
const CASES: readonly (readonly [string, Take])[] = [
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
  ['PriorityLock.acquire', (client, call) => new PriorityLock(client, '/it').acquire(call)],
  [
    'PriorityLock.acquire with a delay',
    (client, call) => new PriorityLock(client, '/it', { lockDelayMs: 20 }).acquire(call),
  ],
  ['MultiLock.acquire', (client, call) => new MultiLock(client, ['/it', '/it-__lock__']).acquire(call)],
  ['Election.campaign', (client, call) => new Election(client, '/it').campaign(call)],
];

describe.each(CASES)('%s', (_title, take) => {
  test.each(['free', 'held'] as const)(
    'succeeds whatever is deleted by hand before any of its requests, when %s',
    (how) =>
      inWorld(2, async ([one, two], { sleep }) => {
        const { client, beforeRequest } = stepClient(one!.client);
        const deleteAll = async (): Promise<void> => {
          for (const path of ['/it', '/it-__lock__']) {
            await two!.client.deleteRecursive(path).catch((error: unknown) => {
              if (!(error instanceof NoNodeError)) throw error;
            });
          }
        };
        let hasActed = true;
        for (let nth = 1; hasActed; nth++) {
          hasActed = false;
          if (how === 'held') await take(two!.client, {});
          beforeRequest(nth, () => {
            hasActed = true;
            return deleteAll();
          });
          const taking = take(client, { timeoutMs: 10_000 });
          // Whoever waits for the other one by now gets it.
          void sleep(200).then(how === 'held' ? deleteAll : undefined);
          const taken = await taking.catch((error: unknown) => {
            throw new Error(`request ${nth}`, { cause: error });
          });
          await sleep(300);
          await taken?.[Symbol.asyncDispose]();
          await deleteAll();
          expect(nth).toBeLessThan(40);
        }
      }),
  );
});
