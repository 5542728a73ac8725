import { acl, OPEN } from '@meerkat/client';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryTree, makeEntry } from './testing/arbitrary-tree.ts';
import { absolutePath, aclEntryText, compareInTreeOrder, differencesOf, isBelow } from './tree-entry.ts';

test('parents come before what is below them, and that before siblings with longer names', () => {
  const paths = ['/', '/a', '/a/b', '/a/b/c', '/a!', '/a-b', '/a-b/c', '/aa', '/b'];
  expect(paths.toReversed().toSorted(compareInTreeOrder)).toEqual(paths);
});

test('tree order is that of a walk through sorted children', () => {
  fc.assert(
    fc.property(arbitraryTree(), (entries) => {
      const paths = entries.map(({ path }) => path);
      const walk = (parent: string): string[] => {
        const children = paths.filter((path) => path !== '/' && (path.replace(/\/[^/]*$/, '') || '/') === parent);
        return [parent, ...children.toSorted().flatMap(walk)];
      };
      expect(walk('/')).toEqual(paths);
    }),
  );
});

test('a path is below its ancestors, and not below names that begin as its own', () => {
  expect(isBelow('/a/b', '/a')).toBe(true);
  expect(isBelow('/ab', '/a')).toBe(false);
  expect(isBelow('/a', '/a')).toBe(false);
  expect(isBelow('/a', '/')).toBe(true);
  expect(isBelow('/', '/')).toBe(false);
  expect([absolutePath('/app', '/'), absolutePath('/app', '/a'), absolutePath('/', '/a')]).toEqual([
    '/app',
    '/app/a',
    '/a',
  ]);
});

test('znodes differ in data, ACL and kind; nothing differs from empty, and the order of an ACL means nothing', () => {
  const entry = makeEntry('/a', { acl: [acl.world('r'), acl.ip('127.0.0.1', 'w')] });
  expect(differencesOf(entry, { ...entry, data: null })).toEqual(['data']);
  expect(differencesOf(entry, { ...entry, acl: [acl.ip('127.0.0.1', 'w'), acl.world('r')] })).toEqual([]);
  expect(differencesOf(entry, { ...entry, acl: [acl.world('r')] })).toEqual(['acl']);
  expect(differencesOf(entry, { ...entry, acl: null, kind: 'ephemeral' })).toEqual(['kind']);
  // Servers show neither of them: a difference cannot be found.
  expect(differencesOf(entry, { ...entry, kind: 'container' })).toEqual([]);
  // The server has put identities in its place.
  expect(differencesOf({ ...entry, acl: [acl.auth()] }, entry)).toEqual([]);
});

test('permissions that have no letter are reported as a number', () => {
  expect(OPEN.map(aclEntryText)).toEqual(['world:anyone:cdrwa']);
  expect(aclEntryText({ scheme: 'world', id: 'anyone', perms: 64 + 1 })).toBe('world:anyone:r+64');
});
