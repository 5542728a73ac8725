import { describe, expect, test } from 'vitest';
import type { ContenderInfo, LineInfo } from '../api/messages.ts';
import { blockers, classify, findDeadlocks, findLines } from './lines.ts';

const UUID = '0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f';
const HEX = UUID.replaceAll('-', '');

/** Names as returned by `findLines`, in order. */
function named(...names: readonly string[]) {
  return names.map((name) => ({
    name,
    sequence: Number(name.slice(-10)),
    marker: name
      .slice(0, -10)
      .replace(/^_c_[0-9a-f-]{36}-/, '')
      .replace(/^[0-9a-f]{32}(?=__)/, ''),
  }));
}

describe('lines of contenders', () => {
  test('are the parents of znodes that end in ten digits', () => {
    const lines = findLines(['/', '/a', '/a/x-0000000001', '/a/x-0000000002', '/b/12345', '/a/x-000000001a']);
    expect([...lines]).toEqual([['/a', ['x-0000000001', 'x-0000000002']]]);
  });

  test('do not include UUIDs that happen to end in ten digits', () => {
    expect(findLines(['/b/0a1b2c3d-0a1b-2c3d-4e5f-0a1234567890', '/b/0a1b2c3d0a1b2c3d4e5f0a1234567890']).size).toBe(0);
    expect(findLines([`/l/${HEX}__lock__0000000001`]).size).toBe(1);
  });

  test.each([
    [`_c_${UUID}-lock-0000000001`, '/l', 'lock', 'curator'],
    [`_c_${UUID}-__WRIT__0000000001`, '/l', 'read-write lock', 'curator'],
    [`_c_${UUID}-latch-0000000001`, '/l', 'election', 'curator'],
    [`_c_${UUID}-lease-0000000001`, '/l/leases', 'semaphore', 'curator'],
    ['queue-0000000001', '/q', 'queue', 'curator'],
    [`${HEX}__lock__0000000001`, '/l', 'lock', 'kazoo'],
    [`${HEX}__lock__0000000001`, '/leader-election', 'election', 'kazoo'],
    [`${HEX}__rlock__0000000001`, '/l', 'read-write lock', 'kazoo'],
    [`_c_${UUID}-arrival-0000000001`, '/r', 'rendezvous', 'meerkat'],
    ['entry-100-0000000001', '/q', 'queue', 'kazoo'],
    ['anything-0000000001', '/x', 'line', 'unknown'],
  ])('%s at %s is one of a %s of %s', (name, path, kind, layout) => {
    expect(classify(path, named(name))).toEqual({ kind, layout });
  });

  test('a reader waits for writers ahead, a writer for all contenders ahead', () => {
    const names = named('__READ__0000000001', '__READ__0000000002', '__WRIT__0000000003', '__READ__0000000004');
    expect(blockers('read-write lock', names)).toEqual([
      [],
      [],
      ['__READ__0000000001', '__READ__0000000002'],
      ['__WRIT__0000000003'],
    ]);
  });
});

describe('deadlocks', () => {
  const line = (path: string, ...sessions: readonly string[]): LineInfo => ({
    path,
    kind: 'lock',
    layout: 'curator',
    total: sessions.length,
    places: null,
    contenders: sessions.map((session, i): ContenderInfo => {
      const waitsFor = i === 0 ? [] : ['0'];
      return { name: `${i}`, session, client: null, sinceMs: 0, token: '0x1', data: '', isHolder: i === 0, waitsFor };
    }),
  });

  test('are cycles of sessions, over any number of locks', () => {
    expect(findDeadlocks([line('/a', 'ann', 'bob'), line('/b', 'bob', 'cid')])).toEqual([]);
    const circle = findDeadlocks([line('/a', 'ann', 'bob'), line('/b', 'bob', 'cid'), line('/c', 'cid', 'ann')]);
    expect(circle).toHaveLength(1);
    expect(circle[0]?.toSorted()).toEqual(['ann', 'bob', 'cid']);
  });

  test('do not include a session that waits for a cycle', () => {
    const circle = findDeadlocks([line('/a', 'ann', 'bob', 'dan'), line('/b', 'bob', 'ann')]);
    expect(circle.map((one) => one.toSorted())).toEqual([['ann', 'bob']]);
  });

  test('do not include a session that waits only for itself, by entering twice', () => {
    expect(findDeadlocks([line('/a', 'ann', 'ann')])).toEqual([]);
  });
});
