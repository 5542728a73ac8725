import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { MEERKAT_IN_SHELL } from '../harness/meerkat-command.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { findSteps, isAsExpected, trimmed } from './console-blocks.ts';

/*
 * Runs the `console` blocks of the pages about the command, from top to bottom, against a fresh server for each page.
 * Each `$` line is run by its own sh, in one empty directory, which is also the home directory; `meerkat` is on the
 * PATH, MEERKAT_SERVER is set, and `$?` is the exit code of the previous line.
 */
const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));

const stepsOf = (page: string) => findSteps(readFileSync(join(DOCS, page), 'utf8'));
const pages = listPages().filter((page) => stepsOf(page).length > 0);

describe.each(pages)('docs/%s', (page) => {
  const steps = stepsOf(page);

  test('shows what the command prints', async () => {
    await using server = await ServerProcess.start('meerkat');
    using home = new Home(`127.0.0.1:${server.port}`);
    let exitCode = 0;
    for (const { line, command, expected } of steps) {
      const ended = await home.run(command, exitCode);
      exitCode = ended.exitCode;
      // All mismatches are reported at once.
      if (isAsExpected(ended.printed, expected)) continue;
      expect.soft(trimmed(ended.printed), `docs/${page}:${line}: $ ${command}`).toBe(trimmed(expected));
    }
  });
});

describe('a console block', () => {
  test('has commands of one or more lines, each with its output', () => {
    const page = 'Text\n\n```console\n$ one\n1\n\n2\n\n$ two <<END\n> a\n> END\n> 3\n```\n\n```\n$ none\n```\n';
    expect(findSteps(page)).toEqual([
      { line: 4, command: 'one', expected: '1\n\n2' },
      { line: 9, command: 'two <<END\na\nEND\n3', expected: '' },
    ]);
    expect(() => findSteps('```console\n1\n$ one\n```')).toThrow('line 1: ');
  });

  test('replaces varying output with …', () => {
    expect(isAsExpected('zxid 0x1f (now)  \n', 'zxid 0x… (now)')).toBe(true);
    expect(isAsExpected('zxid 0x1f\nmore\n', 'zxid 0x…')).toBe(false);
    expect(isAsExpected('a\nb\nc\n', 'a\n…\nc')).toBe(true);
    expect(isAsExpected('a\nc\n', 'a\n…\nc')).toBe(true);
    expect(isAsExpected('a\nb\n', 'a\n…\nc')).toBe(false);
    expect(isAsExpected('a\nb\n', '…')).toBe(true);
    expect(isAsExpected('', '')).toBe(true);
    expect(isAsExpected('a\n', '')).toBe(false);
  });
});

function listPages(): string[] {
  const directory = join(DOCS, 'cli');
  const pages = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith('.md')) : [];
  return ['cli.md', ...pages.sort().map((name) => `cli/${name}`)].filter((page) => existsSync(join(DOCS, page)));
}

/** The environment of the commands of one page. */
class Home implements Disposable {
  readonly #directory: string = mkdtempSync(join(tmpdir(), 'pages-'));
  readonly #env: Readonly<Record<string, string>>;

  constructor(address: string) {
    const bin = join(this.#directory, 'bin');
    const home = join(this.#directory, 'home');
    const tmp = join(this.#directory, 'tmp');
    for (const directory of [bin, home, tmp]) mkdirSync(directory);
    const program = join(bin, 'meerkat');
    writeFileSync(program, `#!/bin/sh\nexec ${MEERKAT_IN_SHELL} "$@"\n`);
    chmodSync(program, 0o755);
    this.#env = {
      PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`,
      HOME: home,
      TMPDIR: tmp,
      LANG: 'C.UTF-8',
      TZ: 'UTC',
      MEERKAT_SERVER: address,
    };
  }

  /** Runs a command to completion, including its background processes. */
  run(command: string, lastExitCode: number): Promise<{ exitCode: number; printed: string }> {
    const child = spawn('sh', ['-c', `exec 2>&1\n(exit ${lastExitCode})\n${command}`], {
      cwd: this.#env['HOME'],
      env: this.#env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (exitCode) => resolve({ exitCode: exitCode ?? 1, printed: Buffer.concat(chunks).toString() }));
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
