/** Any request may fail transiently, applied or not: the lock is acquired nevertheless, once. */
import {
  ConnectionLossError,
  NotReadOnlyError,
  OperationTimeoutError,
  SessionMovedError,
  ThrottledError,
} from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { inWorld } from '../testing/in-world.ts';
import { type SteppedClient, stepClient } from '../testing/stepped-client.ts';
import { TAKES, type Take } from '../testing/takes.ts';
import { ReadWriteLock } from './read-write-lock.ts';

const ABOUT = { operation: 'request', path: null };
const LOST = { ...ABOUT, outcome: 'unknown' } as const;

const FAILURES: readonly (readonly [string, keyof SteppedClient & `${string}Request`, () => Error])[] = [
  ['is throttled', 'beforeRequest', () => new ThrottledError(ABOUT)],
  ['comes to a server without a quorum', 'beforeRequest', () => new NotReadOnlyError(ABOUT)],
  ['comes to a server that the session has left', 'beforeRequest', () => new SessionMovedError(ABOUT)],
  ['is lost', 'beforeRequest', () => new ConnectionLossError(LOST)],
  ['has its answer lost', 'afterRequest', () => new ConnectionLossError(LOST)],
  ['takes the service too long', 'afterRequest', () => new OperationTimeoutError(ABOUT)],
];

const downgrade: Take = async (client, call) => {
  const lock = new ReadWriteLock(client, '/it');
  return lock.downgrade(await lock.acquireWrite(call), call);
};

describe.each([...TAKES, ['ReadWriteLock.downgrade', downgrade] as const])('%s', (_title, take) => {
  test.each(FAILURES)('succeeds when any of its requests %s, and leaves nothing behind', (_how, when, makeError) =>
    inWorld(2, async ([one, two], { sleep }) => {
      const stepped = stepClient(one.client);
      for (const isHeld of [false, true]) {
        let hasFailed = true;
        for (let nth = 1; hasFailed; nth++) {
          hasFailed = false;
          const before = isHeld ? await take(two.client, {}) : null;
          stepped[when](nth, () => {
            hasFailed = true;
            return Promise.reject(makeError());
          });
          const taking = take(stepped.client, { timeoutMs: 20_000 });
          await sleep(200);
          await before?.[Symbol.asyncDispose]();
          const taken = await taking.catch((cause: unknown) => {
            throw new Error(`request ${nth}, ${isHeld ? 'held' : 'free'}`, { cause });
          });
          await taken?.[Symbol.asyncDispose]();
          await sleep(3000);
          await one.client.sync('/');
          expect(await one.client.ephemerals('/'), `request ${nth}, ${isHeld ? 'held' : 'free'}`).toEqual([]);
          expect(nth).toBeLessThan(40);
        }
      }
    }),
  );
});
