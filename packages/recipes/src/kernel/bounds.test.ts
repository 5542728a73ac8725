/** Invalid numbers are refused where they are passed, and change nothing silently. */
import { readdirSync, readFileSync } from 'node:fs';
import { type Client, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Barrier } from '../barriers/barrier.ts';
import { CountDownLatch } from '../barriers/count-down-latch.ts';
import { TreeCache } from '../caches/tree-cache.ts';
import { Election } from '../election/election.ts';
import { PersistentEphemeral } from '../groups/persistent-ephemeral.ts';
import { PersistentTtl } from '../groups/persistent-ttl.ts';
import { DownInstances } from '../groups/service-strategies.ts';
import { SetPartitioner } from '../groups/set-partitioner.ts';
import { Mutex } from '../locks/mutex.ts';
import { PriorityLock } from '../locks/priority-lock.ts';
import { ReadWriteLock } from '../locks/read-write-lock.ts';
import { Semaphore } from '../locks/semaphore.ts';
import { Queue } from '../queues/queue.ts';
import { inWorld } from '../testing/in-world.ts';
import { AtomicValue } from '../values/atomic-value.ts';
import { Configuration } from '../values/configuration.ts';
import { PublishedSet } from '../values/published-set.ts';

const { NaN: NONE, POSITIVE_INFINITY: INFINITE } = Number;
const MS = [-1, NONE];
const ENDING_MS = [-1, NONE, INFINITE];
const COUNTS = [0, -1, 1.5, NONE, INFINITE];
const LIMITS = [0, -1, 1.5, NONE];

type Make = (client: Client, options: Record<string, number>) => unknown;

const CASES: readonly (readonly [string, Readonly<Record<string, readonly number[]>>, Make])[] = [
  ['Mutex', { marginMs: MS, lockDelayMs: ENDING_MS }, (client, options) => new Mutex(client, '/x', options)],
  [
    'PriorityLock',
    { marginMs: MS, lockDelayMs: ENDING_MS },
    (client, options) => new PriorityLock(client, '/x', options),
  ],
  ['ReadWriteLock', { marginMs: MS }, (client, options) => new ReadWriteLock(client, '/x', options)],
  ['Semaphore', { marginMs: MS }, (client, options) => new Semaphore(client, '/x', { ...options, leasesMax: 1 })],
  ['Election', { marginMs: MS }, (client, options) => new Election(client, '/x', options)],
  ['Queue', { marginMs: MS, itemsMax: LIMITS }, (client, options) => new Queue(client, '/x', options)],
  ['PersistentEphemeral', { marginMs: MS }, (client, options) => new PersistentEphemeral(client, '/x', options)],
  [
    'PersistentTtl',
    { touchesPerTtl: COUNTS },
    (client, options) => new PersistentTtl(client, '/x', { ...options, ttlMs: 1000 }),
  ],
  [
    'SetPartitioner',
    { quietMs: ENDING_MS, marginMs: MS },
    (client, options) => new SetPartitioner(client, '/x', [], { ...options, identifier: 'x' }),
  ],
  [
    'DownPolicy',
    { errorsMax: LIMITS, timeoutMs: MS },
    (client, options) => new DownInstances(client.surroundings.clock, options),
  ],
  [
    'TreeCache',
    { refreshSpreadMs: ENDING_MS, requestsMax: LIMITS, depthMax: LIMITS },
    (client, options) => new TreeCache(client, '/x', options),
  ],
  [
    'Configuration',
    { keep: LIMITS },
    (client, options) => new Configuration(client, '/x', { codec: text, ...options }),
  ],
  [
    'PublishedSet',
    { keep: LIMITS, transactionBytesMax: LIMITS, transactionZnodesMax: LIMITS },
    (client, options) => new PublishedSet(client, '/x', { codec: text, ...options }),
  ],
  [
    'AtomicValue',
    { attemptsBeforeLock: LIMITS },
    (client, options) => new AtomicValue(client, '/x', { codec: text, initial: '', ...options }),
  ],
];

test.each(CASES)('%s refuses invalid numbers', (_what, refused, make) =>
  inWorld(1, ([one]) => {
    for (const [name, numbers] of Object.entries(refused)) {
      for (const number of numbers) {
        const attempt = (): unknown => make(one.client, { [name]: number });
        expect(attempt, `${name}: ${number}`).toThrow(RangeError);
        expect(attempt).toThrow(name);
        expect(attempt).toThrow(String(number));
      }
    }
    return Promise.resolve();
  }),
);

/**
 * Options of calls, or with checks described elsewhere: `delay-queue.ts`, `semaphore.ts`, `priority-lock.ts`, the page
 * of PersistentTtl.
 */
const ELSEWHERE = ['delayMs', 'leasesMax', 'priority', 'ttlMs'];

test('each number among the options of a recipe is in CASES', () => {
  const sources = new URL('..', import.meta.url);
  const declared = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.startsWith('testing'))
    .map((path) => readFileSync(new URL(path, sources), 'utf8'))
    .flatMap((text) => [...text.matchAll(/export interface \w+(?:Options|Policy)\b[^{]*\{\n([\s\S]*?)\n\}/g)])
    .flatMap(([, fields = '']) => [...fields.matchAll(/readonly (\w+)\??: number/g)])
    .map(([, name = '']) => name);
  const tried = CASES.flatMap(([, refused]) => Object.keys(refused));
  expect([...new Set(declared)].filter((name) => !tried.includes(name)).toSorted()).toEqual(ELSEWHERE);
});

test('a wait whose timeout is not a number is refused at once', () =>
  inWorld(2, async ([one, two]) => {
    const { client } = one;
    const call = { timeoutMs: Number.NaN };
    await new Barrier(client, '/barrier').set();
    await using _lock = await new Mutex(two.client, '/lock').acquire();
    const waits: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['Barrier', () => new Barrier(client, '/barrier').wait(call)],
      ['CountDownLatch', () => new CountDownLatch(client, '/latch', 2).wait(call)],
      ['Mutex', () => new Mutex(client, '/lock').acquire(call)],
      ['Semaphore', () => new Semaphore(client, '/limit', { leasesMax: 1 }).tryAcquire(call)],
      ['PriorityLock', () => new PriorityLock(client, '/first').acquire(call)],
      ['Election', () => new Election(client, '/election').campaign(call)],
      ['Queue', () => new Queue(client, '/queue').take(call)],
      ['AtomicValue', () => new AtomicValue(client, '/value', { codec: text, initial: '' }).set('', call)],
      ['Configuration', () => new Configuration(client, '/config', { codec: text }).set('', call)],
    ];
    for (const [what, wait] of waits) {
      const limit = new RangeError('timeoutMs is a number of milliseconds, not NaN');
      await expect(wait(), what).rejects.toThrow(limit);
    }
    expect(await client.ephemerals('/')).toEqual([]);
  }));
