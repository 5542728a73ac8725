import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

let directory = '';
const entry = (): string => join(directory, 'server/run.js');

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-run-'));
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  write('server/dist/run.js', "console.log('files');", 100);
  copyFileSync(fileURLToPath(new URL('../run.js', import.meta.url)), entry());
});

afterEach(() => rmSync(directory, { recursive: true }));

/** @param changedS its time of change */
function write(path: string, text: string, changedS: number): void {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${text}\n${NAMES.map((name) => `export const ${name} = '${name}';`).join('\n')}\n`);
  utimesSync(file, changedS, changedS);
}

const NAMES = [
  'ConfigurationError',
  'CuttableNetwork',
  'ExitCode',
  'isSingleFile',
  'MEERKAT_VERSION',
  'readJvmFlags',
  'readZooCfg',
  'runServer',
  'ZOOKEEPER_VERSION',
];

/** @returns what was loaded, and the last name that it has handed on */
function load(): string {
  const script = `const { ZOOKEEPER_VERSION } = await import('${pathToFileURL(entry())}'); console.log(ZOOKEEPER_VERSION)`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).stdout;
}

test('the one file is loaded where there is one, unless something was compiled since', () => {
  expect(load()).toBe('files\nZOOKEEPER_VERSION\n');
  write('server/dist/bundle.js', "console.log('bundle');", 200);
  expect(load()).toBe('bundle\nZOOKEEPER_VERSION\n');
  write('core/dist/.tsbuildinfo', '', 200);
  expect(load()).toBe('bundle\nZOOKEEPER_VERSION\n');
  write('core/dist/.tsbuildinfo', '', 201);
  expect(load()).toBe('files\nZOOKEEPER_VERSION\n');
});
