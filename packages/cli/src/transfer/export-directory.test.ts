import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { arbitraryTree, collect, makeEntry, ODD_LETTERS } from '../copy/testing/arbitrary-tree.ts';
import { DirectoryWriter, readDirectory } from './export-directory.ts';
import { fileNameOf, znodeNameOf } from './file-name.ts';

const directories: string[] = [];

function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'export-'));
  directories.push(directory);
  return directory;
}

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

test('every name of a znode has a name of a file that is its own and means nothing else', () => {
  const name = fc
    .array(fc.oneof(fc.constantFrom(...ODD_LETTERS), fc.constantFrom('%', '<', '_', 'é', '?')), { minLength: 1 })
    .map((letters) => letters.join(''));
  fc.assert(
    fc.property(name, (text) => {
      expect(znodeNameOf(fileNameOf(text))).toBe(text);
      expect(fileNameOf(text)).not.toMatch(/^_|[<>:"\\|?*]|[. ]$/);
    }),
  );
  expect(fileNameOf('_znode')).toBe('%5Fznode');
  expect(znodeNameOf('%zz')).toBe(null);
});

test('a tree that is written to a directory is read again from it', async () => {
  const options = { letters: ODD_LETTERS, kinds: ['persistent', 'ephemeral', 'container'] } as const;
  await fc.assert(
    fc.asyncProperty(arbitraryTree(options), async (entries) => {
      const directory = makeDirectory();
      const writer = new DirectoryWriter(directory, '/app', null, true);
      for (const entry of entries) writer.add(entry);
      writer.end(null);
      const read = await collect(readDirectory(directory));
      const expected = entries.map((entry) => ({
        ...entry,
        mtime: null,
        data: entry.data === null ? null : Buffer.from(entry.data),
      }));
      expect(read).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test('the bytes of a znode are the bytes of a file, and only what is unusual stands beside them', () => {
  const directory = makeDirectory();
  const writer = new DirectoryWriter(directory, '/', null, true);
  writer.add(makeEntry('/', { data: null }));
  writer.add(makeEntry('/a:b', { data: Uint8Array.of(0, 255) }));
  writer.add(makeEntry('/c', { kind: 'container' }));
  writer.end(null);
  expect(readdirSync(directory).toSorted()).toEqual(['_meerkat.json', 'a%3Ab', 'c']);
  expect(readFileSync(join(directory, 'a%3Ab', '_znode'))).toEqual(Buffer.of(0, 255));
  expect(readdirSync(join(directory, 'a%3Ab'))).toEqual(['_znode']);
  expect(JSON.parse(readFileSync(join(directory, 'c', '_znode.json'), 'utf8'))).toEqual({ kind: 'container' });
});

test('a directory made by hand is a tree, of which files are the leaves', async () => {
  const directory = makeDirectory();
  mkdirSync(join(directory, 'app'));
  writeFileSync(join(directory, 'app', 'config.json'), '{}');
  expect(await collect(readDirectory(directory))).toMatchObject([
    { path: '/', data: null, acl: null },
    { path: '/app', data: null },
    { path: '/app/config.json', data: Buffer.from('{}'), kind: 'persistent' },
  ]);
});

test('what is wrong is reported with the name of the file', async () => {
  const fault = async (name: string, text: string) => {
    const directory = makeDirectory();
    writeFileSync(join(directory, name), text);
    const error = await collect(readDirectory(directory)).catch((reason: Error) => reason);
    return error instanceof Error ? error.message.slice(directory.length + 1) : 'nothing';
  };
  expect(await fault('_znode.json', '{')).toMatch(/^_znode\.json: it is no JSON: /);
  expect(await fault('_znode.json', '{"kind":"odd"}')).toMatch(/^_znode\.json: kind: expected /);
  expect(await fault('_other', '')).toMatch(/^_other: names that begin with "_" mean something/);
  expect(await fault('%zz', '')).toBe('%zz: it is no name of a znode');
  expect(await fault('a%2Fb', '')).toBe('a%2Fb: it is no name of a znode');
  expect(await fault('_meerkat.json', '{"meerkatExport":1,"root":"/"}')).toBe(
    '_meerkat.json: it counts no znodes: the export was cut off',
  );
  expect(await fault('_meerkat.json', '{"meerkatExport":1,"root":"/","znodes":5}')).toMatch(
    /^_meerkat\.json: it counts 5 znodes, and the directory has 1/,
  );
});

test('an export goes to no directory that has something in it', () => {
  const directory = makeDirectory();
  writeFileSync(join(directory, 'notes'), '');
  expect(() => new DirectoryWriter(directory, '/', null, true)).toThrow('has something in it');
});
