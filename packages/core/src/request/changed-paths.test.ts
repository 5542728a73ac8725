import { OPEN_ACL, OpCode, type Txn } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { ChangedPaths } from './changed-paths.ts';

const create = (path: string) => ({
  type: OpCode.create,
  path,
  data: null,
  acl: OPEN_ACL,
  isEphemeral: false,
  parentCversion: 1,
});

describe('the paths that a txn changes', () => {
  test('include those of its parts, and the parents of created and deleted znodes', () => {
    const txns = [
      create('/a/b'),
      { type: OpCode.delete, path: '/c/d' },
      { type: OpCode.setData, path: '/e/f', data: null, version: 1 },
      { type: OpCode.check, path: '/g', version: 1 },
      create('/h'),
    ];
    const changed = new ChangedPaths({ type: OpCode.multi, txns } as Txn, txns.length);
    for (const path of ['/a/b', '/a', '/c/d', '/c', '/e/f', '/h', '/', '']) expect(changed.has(path), path).toBe(true);
    for (const path of ['/e', '/g', '/a/c', '/x', '/zookeeper']) expect(changed.has(path), path).toBe(false);
  });

  test('include the ephemerals that a closeSession lists, or any path when it does not list all', () => {
    const txn: Txn = { type: OpCode.closeSession, paths: ['/a/b'] };
    const changed = new ChangedPaths(txn, 1);
    expect(['/a/b', '/a', '/c'].map((path) => changed.has(path))).toEqual([true, true, false]);
    expect(new ChangedPaths(txn, 2).has('/c')).toBe(true);
  });

  test('include the parents of siblings and of paths with a common prefix', () => {
    const paths = ['/a/b', '/a/c', '/ab/c', '/a/c/d', '/e', '/f'];
    const changed = new ChangedPaths({ type: OpCode.closeSession, paths }, paths.length);
    for (const path of [...paths, '/a', '/ab', '/']) expect(changed.has(path), path).toBe(true);
  });

  test('include the parents of paths that lie deeper below the parent of the last one', () => {
    const paths = ['/a/b', '/a/c/d', '/a/c/e/f', '/g', '/g/h'];
    const changed = new ChangedPaths({ type: OpCode.closeSession, paths }, paths.length);
    for (const path of ['/a', '/a/c', '/a/c/e', '/', '/g']) expect(changed.has(path), path).toBe(true);
  });

  test('include quota usage', () => {
    const changed = new ChangedPaths({ type: OpCode.multi, txns: [create('/a/b')] } as Txn, 1);
    expect(changed.has('/zookeeper/quota/a/zookeeper_stats')).toBe(true);
  });

  test('have few false positives', () => {
    const txns = Array.from({ length: 20_000 }, (_, i) => create(`/many/n${i}`));
    const changed = new ChangedPaths({ type: OpCode.multi, txns } as Txn, txns.length);
    const others = Array.from({ length: 20_000 }, (_, i) => `/others/n${i}`);
    expect(txns.every(({ path }) => changed.has(path))).toBe(true);
    expect(others.filter((path) => changed.has(path)).length).toBeLessThan(1000);
  });
});
