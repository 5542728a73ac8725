import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TestServer } from '@meerkat/testing';
import { afterEach, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'meerkat-install-'));
  directories.push(directory);
  return directory;
}

/** @returns what it printed on standard output. Rejects when it fails, with what it printed in the message */
async function run(cwd: string, command: string, args: readonly string[], env: Record<string, string> = {}) {
  // Vitest's own variables are none of their business; NODE_OPTIONS may carry its loader.
  const kept = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
  const { stdout } = await promisify(execFile)(command, args, { cwd, env: { ...kept, ...env } });
  return stdout;
}

test('all programs, one after the other, run and let their process end', async () => {
  await run(ROOT, 'npx', ['tsc', '-b', 'examples']);
  const names = readdirSync(import.meta.dirname)
    .filter((name) => /\.ts$/.test(name) && !/^(run|tls|sasl)\.|\.test\./.test(name))
    .map((name) => name.slice(0, -'.ts'.length));
  const printed = await run(ROOT, process.execPath, ['examples/dist/run.js', ...names]);
  expect(printed).toContain('hello, version 0\nchanged\n');
});

test('the client and the recipes that npm packs are installed without a registry, compile with programs and run them', async () => {
  const packed = makeDirectory();
  const project = makeDirectory();
  const names = ['protocol', 'client', 'recipes'];
  await run(ROOT, 'npm', [
    'pack',
    '--pack-destination',
    packed,
    ...names.flatMap((name) => ['-w', `packages/${name}`]),
  ]);
  const tarballs = readdirSync(packed).map((name) => join(packed, name));
  expect(tarballs).toHaveLength(names.length);

  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'newcomer', private: true, type: 'module' }));
  await run(project, 'npm', ['install', '--offline', '--no-audit', '--no-fund', ...tarballs]);
  expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['@meerkat']);

  // What the README asks for besides.
  mkdirSync(join(project, 'node_modules/@types'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'));
  const compilerOptions = { strict: true, module: 'nodenext', target: 'es2023', types: ['node'], outDir: 'dist' };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  copyFileSync(join(import.meta.dirname, 'first-steps.ts'), join(project, 'first-steps.ts'));
  writeFileSync(join(project, 'lock.ts'), LOCK_PROGRAM);
  await run(project, process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')]);

  await using server = await TestServer.start();
  const printed = await run(project, process.execPath, ['dist/first-steps.js'], { ZOOKEEPER: server.connectString });
  expect(printed).toBe('hello, version 0\nchanged\n');
  const locked = await run(project, process.execPath, ['dist/lock.js'], { ZOOKEEPER: server.connectString });
  expect(locked).toBe('true\n');
});

const LOCK_PROGRAM = `
import { connect } from '@meerkat/client';
import { Mutex } from '@meerkat/recipes';

await using client = await connect(process.env['ZOOKEEPER'] ?? '');
await using lock = await new Mutex(client, '/locks/orders').acquire();
console.log(lock.isHeld);
`;
