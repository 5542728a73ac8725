import { type CallOptions, type Client, text } from '@meerkat/client';
import { Barrier } from '../barriers/barrier.ts';
import { Condition } from '../barriers/condition.ts';
import { CountDownLatch } from '../barriers/count-down-latch.ts';
import { DoubleBarrier } from '../barriers/double-barrier.ts';
import { Rendezvous } from '../barriers/rendezvous.ts';
import { Mutex } from '../locks/mutex.ts';
import { ReadWriteLock } from '../locks/read-write-lock.ts';
import { Queue } from '../queues/queue.ts';
import { TAKES, type Take } from './takes.ts';

/** Has another client set up a blocked call. @returns the call, which waits without success */
export type Wait = (client: Client, other: Client) => Promise<(call: CallOptions) => Promise<unknown>>;

/** All calls of `TAKES` that wait while another client holds it: without the tries and a reader beside another one. */
export const WAITING_TAKES: readonly (readonly [string, Take])[] = TAKES.filter(([title]) =>
  /\.(acquire|acquireWrite|campaign)\b/.test(title),
);

/** All waiting calls, by name. */
export const WAITS: readonly (readonly [string, Wait])[] = [
  ...WAITING_TAKES.map(([title, take]) => [title, whileHeld(take)] as const),
  [
    'ReadWriteLock.acquireRead',
    async (client, other) => {
      await new ReadWriteLock(other, '/it').acquireWrite();
      return (call) => new ReadWriteLock(client, '/it').acquireRead(call);
    },
  ],
  [
    'Condition.wait',
    (client) => {
      const mutex = new Mutex(client, '/it');
      return Promise.resolve(async (call) =>
        new Condition(client, '/changed', mutex).wait(await mutex.acquire(), call),
      );
    },
  ],
  ['Queue.take', (client) => Promise.resolve((call) => new Queue(client, '/it').take(call))],
  [
    'Queue.put into a full one',
    async (client, other) => {
      await new Queue(other, '/it', { codec: text, itemsMax: 1 }).put('one');
      const queue = new Queue(client, '/it', { codec: text, itemsMax: 1 });
      return (call) => queue.put('two', call);
    },
  ],
  [
    'Barrier.wait',
    async (client, other) => {
      await new Barrier(other, '/it').set();
      return (call) => new Barrier(client, '/it').wait(call);
    },
  ],
  ['CountDownLatch.wait', (client) => Promise.resolve((call) => new CountDownLatch(client, '/it', 1).wait(call))],
  [
    'DoubleBarrier.enter',
    (client) => {
      const barrier = new DoubleBarrier(client, '/it', 2);
      return Promise.resolve((call) => barrier.enter(call));
    },
  ],
  [
    'Rendezvous.meet',
    (client) => {
      const rendezvous = new Rendezvous(client, '/it', 2);
      return Promise.resolve((call) => rendezvous.meet(new Uint8Array(1), call));
    },
  ],
];

function whileHeld(take: Take): Wait {
  return async (client, other) => {
    await take(other, {});
    return (call) => take(client, call);
  };
}
