import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** @returns its standard output. Rejects when it fails, with the output in the message */
async function run(command: string, args: readonly string[]): Promise<string> {
  // Vitest's environment must not leak into the programs: NODE_OPTIONS may contain its loader.
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
  const { stdout } = await promisify(execFile)(command, args, { cwd: ROOT, env });
  return stdout;
}

test('all programs run in sequence, and their process exits', async () => {
  await run('npx', ['tsc', '-b', 'examples']);
  const names = readdirSync(import.meta.dirname)
    .filter((name) => /\.ts$/.test(name) && !/^(run|tls|sasl)\.|\.test\./.test(name))
    .map((name) => name.slice(0, -'.ts'.length));
  const printed = await run(process.execPath, ['examples/dist/run.js', ...names]);
  expect(printed).toContain('hello, version 0\nchanged\n');
});
