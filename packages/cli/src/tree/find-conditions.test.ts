import type { Stat } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { type FindWords, makeCondition } from './find-conditions.ts';
import type { Visited } from './tree-walk.ts';

const NOW_MS = 1_700_000_000_000;

/** A znode with what the tests look at. */
function znode(path: string, stat: Partial<Stat> = {}): Visited {
  const ephemeralOwner = stat.ephemeralOwner ?? 0n;
  const whole = { mtime: NOW_MS, dataLength: 0, numChildren: 0, ...stat, isEphemeral: ephemeralOwner !== 0n } as Stat;
  return { path, depth: 1, stat: whole, children: [], data: null };
}

const ZNODES: readonly Visited[] = [
  znode('/app', { numChildren: 3, mtime: NOW_MS - 7_200_000 }),
  znode('/app/lock-1', { ephemeralOwner: 0x100abcn, dataLength: 10, mtime: NOW_MS - 59_000 }),
  // A server whose id is 255 makes session ids that are negative as signed numbers.
  znode('/app/lock-2', { ephemeralOwner: -1n, dataLength: 1024, mtime: NOW_MS - 60_000 }),
  znode('/app/Config', { dataLength: 1025 }),
];

describe('a condition of find', () => {
  const found = (words: FindWords): string[] => {
    const holds = makeCondition(words, NOW_MS);
    return ZNODES.filter(holds).map(({ path }) => path);
  };

  test('holds for all when nothing is asked for', () => {
    expect(found({})).toHaveLength(4);
  });

  test('is about names and paths', () => {
    expect(found({ name: ['lock-*'] })).toEqual(['/app/lock-1', '/app/lock-2']);
    expect(found({ name: ['lock-1', 'app'] })).toEqual(['/app', '/app/lock-1']);
    expect(found({ name: ['config'], ignoreCase: true })).toEqual(['/app/Config']);
    expect(found({ path: ['/app/*2'] })).toEqual(['/app/lock-2']);
    expect(found({ regex: '-[12]$' })).toEqual(['/app/lock-1', '/app/lock-2']);
  });

  test('is about sessions', () => {
    expect(found({ ephemeral: true })).toEqual(['/app/lock-1', '/app/lock-2']);
    expect(found({ persistent: true })).toEqual(['/app', '/app/Config']);
    expect(found({ owner: '0x100ABC' })).toEqual(['/app/lock-1']);
    expect(found({ owner: 'ffffffffffffffff' })).toEqual(['/app/lock-2']);
    expect(() => found({ owner: 'ann' })).toThrow('--owner: expected the id of a session');
  });

  test('is about times, where the limit itself is older', () => {
    expect(found({ newer: '1m' })).toEqual(['/app/lock-1', '/app/Config']);
    expect(found({ older: '1m' })).toEqual(['/app', '/app/lock-2']);
    expect(found({ older: '1m', newer: '1h' })).toEqual(['/app/lock-2']);
  });

  test('is about data and children', () => {
    expect(found({ larger: '1k' })).toEqual(['/app/Config']);
    expect(found({ smaller: '1k' })).toEqual(['/app', '/app/lock-1']);
    expect(found({ empty: true })).toEqual(['/app']);
    expect(found({ leaf: true, larger: '10' })).toEqual(['/app/lock-2', '/app/Config']);
  });
});
