import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { HistoryFile } from './history-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'history-'));
afterAll(() => rmSync(directory, { recursive: true }));

test('commands come back in their order, those of several lines as they were', () => {
  const file = HistoryFile.of({ XDG_STATE_HOME: directory });
  expect(file.read()).toEqual([]);
  for (const command of ['ls /', 'set /a <<END\n{}\nEND', '"quoted"', 'get /ä']) file.append(command);
  expect(file.read()).toEqual(['ls /', 'set /a <<END\n{}\nEND', '"quoted"', 'get /ä']);
  expect(file.path).toBe(join(directory, 'meerkat', 'history'));
  expect(readFileSync(file.path, 'utf8').split('\n')).toHaveLength(5);
  expect(statSync(file.path).mode & 0o777).toBe(0o600);
});

test('credentials are never kept, nor is what begins with a blank', () => {
  const file = new HistoryFile(join(directory, 'secrets'));
  for (const command of [
    'addauth digest ann:secret',
    'ls /; addauth digest ann:secret',
    'ls --auth digest:ann:secret /',
    'setAcl /a password:ann:secret:cdrwa',
    'setAcl /a world:anyone:r,password:ann:secret:cdrwa',
    ' get /private',
  ]) {
    file.append(command);
  }
  expect(file.read()).toEqual([]);
  file.append('setAcl /a auth::cdrwa');
  expect(file.read()).toEqual(['setAcl /a auth::cdrwa']);
});

test('the file is made shorter once it has become long', () => {
  const file = new HistoryFile(join(directory, 'long'));
  writeFileSync(file.path, Array.from({ length: 5000 }, (_, i) => `get /${i}\n`).join(''));
  expect(file.read()).toHaveLength(2000);
  expect(readFileSync(file.path, 'utf8').split('\n')).toHaveLength(2001);
  expect(file.read().at(-1)).toBe('get /4999');
  expect(statSync(file.path).mode & 0o777).toBe(0o600);
});

test('a file that cannot be used is ignored', () => {
  const file = HistoryFile.of({ XDG_STATE_HOME: '/dev/null' });
  file.append('ls');
  expect(file.read()).toEqual([]);
});
