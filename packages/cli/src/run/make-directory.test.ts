import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeDirectory } from './make-directory.ts';

const directory = mkdtempSync(join(tmpdir(), 'meerkat-directory-'));
afterAll(() => rmSync(directory, { recursive: true }));

describe('a directory', () => {
  test('is made with those above it, once or twice', () => {
    for (let i = 0; i < 2; i++) makeDirectory(join(directory, 'a', 'b', 'c'));
    expect(statSync(join(directory, 'a', 'b', 'c')).isDirectory()).toBe(true);
    symlinkSync('a', join(directory, 'link'));
    makeDirectory(join(directory, 'link', 'd'));
    expect(statSync(join(directory, 'a', 'd')).isDirectory()).toBe(true);
  });

  test.skipIf(process.platform !== 'linux')('is refused where the kernel makes none', () => {
    for (const path of ['/proc/meerkat', '/proc/meerkat/more']) expect(() => makeDirectory(path)).toThrow('ENOENT');
  });

  test('is refused where a file or a link to nothing is in the way', () => {
    writeFileSync(join(directory, 'file'), '');
    symlinkSync('nowhere', join(directory, 'dangling'));
    expect(() => makeDirectory(join(directory, 'file'))).toThrow('EEXIST');
    expect(() => makeDirectory(join(directory, 'file', 'more'))).toThrow('ENOTDIR');
    expect(() => makeDirectory(join(directory, 'dangling'))).toThrow('EEXIST');
    expect(() => makeDirectory(join(directory, 'dangling', 'more'))).toThrow(/EEXIST|ENOENT/);
  });
});
