import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryTree, ODD_LETTERS } from '../copy/testing/arbitrary-tree.ts';
import { endLine, headerLine, parseExportLine, znodeLine } from './export-line.ts';
import { TreeOrder } from './tree-order.ts';

function faultOf(line: string | object): string | null {
  const parsed = parseExportLine(typeof line === 'string' ? line : JSON.stringify(line));
  return parsed.kind === 'fault' ? parsed.fault : null;
}

test('an exported znode is parsed back to the same znode', () => {
  const options = { letters: ODD_LETTERS, kinds: ['persistent', 'ephemeral', 'container'] } as const;
  fc.assert(
    fc.property(arbitraryTree(options), (entries) => {
      const order = new TreeOrder();
      for (const entry of entries) {
        const line = znodeLine(entry, true);
        expect(line).not.toContain('\n');
        const parsed = parseExportLine(line);
        expect(parsed).toEqual({
          kind: 'znode',
          entry: { ...entry, mtime: null, data: entry.data === null ? null : Buffer.from(entry.data) },
        });
        expect(order.check(entry.path)).toBe(null);
      }
    }),
  );
});

test('lines that others have written are understood', () => {
  expect(parseExportLine('{"path":"/a","data":"on"}')).toMatchObject({
    kind: 'znode',
    entry: { path: '/a', data: Buffer.from('on'), acl: null, kind: 'persistent' },
  });
  const acl = [
    { perms: 'rw', scheme: 'ip', id: '::1' },
    { perms: 65, scheme: 'world', id: 'anyone' },
  ];
  expect(parseExportLine(JSON.stringify({ path: '/', data: null, acl, kind: 'ttl', ttlMs: 5000 }))).toMatchObject({
    entry: { data: null, acl: [{ perms: 3, scheme: 'ip', id: '::1' }, { perms: 65 }], kind: 'ttl', ttlMs: 5000 },
  });
  expect(parseExportLine('{"path":"/","data":"AAH+/w==","encoding":"base64"}')).toMatchObject({
    entry: { data: Buffer.of(0, 1, 254, 255) },
  });
  expect(parseExportLine(headerLine('/app', null))).toEqual({ kind: 'header', header: { root: '/app', source: null } });
  expect(parseExportLine(endLine(3, 0x1_0000_0005n))).toEqual({ kind: 'end', znodes: 3 });
});

test('every mistake has its words', () => {
  expect(faultOf('{"path":"/a",')).toMatch(/^it is no JSON: /);
  expect(faultOf('[1]')).toBe('it is no JSON object');
  expect(faultOf({ path: '/a' })).toMatch(/^data: expected /);
  expect(faultOf({ path: '/a', data: 'x', encoding: 'hex' })).toMatch(/^encoding: expected .*utf8.*found "hex"/);
  expect(faultOf({ path: '/a', data: '$', encoding: 'base64' })).toBe('data: it is no base64');
  expect(faultOf({ path: 'a', data: '' })).toBe('path: "a" does not begin with "/"');
  expect(faultOf({ path: '/a/', data: '' })).toBe('path: "/a/" has an empty name');
  expect(faultOf({ path: '/a/..', data: '' })).toBe('path: "/a/.." has a relative name');
  expect(faultOf({ path: '/a\u0001', data: '' })).toMatch(/has a character that no znode has/);
  expect(faultOf({ path: '/a', data: '', kind: 'ttl' })).toMatch(/^ttlMs goes with/);
  expect(faultOf({ path: '/a', data: '', dta: 1 })).toMatch(/dta/);
  expect(faultOf({ path: '/a', data: '', stat: { mtime: 'yesterday' } })).toBe('stat.mtime: it is no time');
  expect(faultOf({ path: '/a', data: '', acl: [{ perms: 'x', scheme: 'world', id: 'anyone' }] })).toMatch(
    /^acl\.0\.perms/,
  );
  expect(faultOf({ meerkatExport: 2, root: '/' })).toMatch(/^meerkatExport: expected 1, found 2/);
  expect(faultOf({ end: true })).toMatch(/^znodes: expected /);
});

test('znodes stand in tree order, each once and behind its parent', () => {
  const faults = (...paths: string[]) => {
    const order = new TreeOrder();
    return paths.map((path) => order.check(path)).filter((fault) => fault !== null);
  };
  expect(faults('/', '/a', '/a/b', '/a-b', '/b')).toEqual([]);
  expect(faults('/a')).toEqual(['the first znode is the root of the tree, "/", not "/a"']);
  expect(faults('/', '/a', '/a')).toEqual(['"/a" comes twice']);
  expect(faults('/', '/b', '/a')).toEqual([
    '"/a" belongs before "/b": parents come first, siblings in the order of their names',
  ]);
  expect(faults('/', '/a', '/b/c')).toEqual(['"/b/c" has no parent: "/b" is missing before it']);
  expect(faults('/', '/a/b', '/a/b/c')).toEqual(['"/a/b" has no parent: "/a" is missing before it']);
});
