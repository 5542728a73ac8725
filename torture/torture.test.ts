import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { whyNoNamespaces } from './namespaces.ts';

const ROOT = join(import.meta.dirname, '..');
/** A run heals itself within two minutes or says that it cannot. */
const RUN_MS = 280_000;

let temporary = '';
const running: ChildProcess[] = [];

beforeAll(() => {
  const { status, stdout, stderr } = spawnSync('npx', ['tsc', '-b', 'torture'], { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`it does not build:\n${stdout}${stderr}`);
});

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'meerkat-runs-'));
});

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    // The first signal lets it end its servers.
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  rmSync(temporary, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  text(): string;
  /** Resolves once it has printed this. */
  printed(part: string): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** As `npm run torture` does, with everything that it writes in a directory of the test. */
function start(args: readonly string[]): Run {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'dist', 'main.js'), ...args], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let text = '';
  const waiting: { readonly part: string; readonly resolve: () => void }[] = [];
  const onText = (chunk: Buffer): void => {
    text += chunk.toString();
    for (const { part, resolve } of waiting) if (text.includes(part)) resolve();
  };
  child.stdout.on('data', onText);
  child.stderr.on('data', onText);
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    child,
    text: () => text,
    printed: (part) =>
      new Promise((resolve, reject) => {
        if (text.includes(part)) resolve();
        waiting.push({ part, resolve });
        void ended.then(() => reject(new Error(`ended without "${part}":\n${text}`)));
      }),
    ended,
  };
}

/** The figure behind a label of the table. */
function figure(text: string, label: string): number {
  const found = new RegExp(`^${label} +([\\d,]+)`, 'm').exec(text);
  if (found === null) throw new Error(`there is no "${label}" in\n${text}`);
  return Number(found[1]!.replaceAll(',', ''));
}

describe('torture', () => {
  test(
    'three servers and their clients live through faults behind proxies, and keep every promise',
    async () => {
      const summary = join(temporary, 'summary.md');
      const run = start(['--proxies', '--minutes', '0.2', '--clients', '4', '--seed', '3', '--summary', summary]);
      expect(await run.ended, run.text()).toBe(0);
      expect(figure(run.text(), 'violations')).toBe(0);
      expect(figure(run.text(), 'operations')).toBeGreaterThan(0);
      expect(figure(run.text(), 'faults')).toBeGreaterThan(0);
      expect(readFileSync(summary, 'utf8')).toMatch(/^\| network \| proxies \|$/m);
      expect(readdirSync(temporary), 'no data are left').toEqual(['summary.md']);
    },
    RUN_MS,
  );

  test(
    'where they can be had, each server has a network namespace of its own, of which nothing is left',
    async () => {
      const run = start(['--minutes', '0.2', '--clients', '4', '--seed', '4']);
      expect(await run.ended, run.text()).toBe(0);
      expect(figure(run.text(), 'violations')).toBe(0);
      expect(readdirSync(temporary)).toEqual([]);
      if (whyNoNamespaces() !== null) expect(run.text()).toContain('proxies instead of network namespaces: ');
      else
        expect(execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })).not.toContain(`torture-${run.child.pid}-`);
    },
    RUN_MS,
  );

  test(
    'Ctrl-C ends it early, with a verdict about what there is',
    async () => {
      const run = start(['--minutes', '60', '--clients', '2', '--faults', 'none', '--proxies']);
      await run.printed('round 1: ');
      run.child.kill('SIGINT');
      expect(await run.ended, run.text()).toBe(0);
      expect(run.text()).toContain('interrupted');
      expect(figure(run.text(), 'violations')).toBe(0);
    },
    RUN_MS,
  );

  test(
    'a server that ends by itself breaks a promise: it says which, keeps everything and exits with 1',
    async () => {
      const run = start(['--minutes', '60', '--clients', '2', '--faults', 'none', '--proxies']);
      await run.printed('round 1: ');
      const directory = join(temporary, readdirSync(temporary)[0]!);
      process.kill(Number(readFileSync(join(directory, '2', 'pid'), 'utf8')), 'SIGKILL');
      expect(await run.ended, run.text()).toBe(1);
      expect(run.text()).toContain('A2: server 2 ended by SIGKILL');
      expect(run.text()).toContain(`data and logs of the servers: ${directory}`);
      expect(readFileSync(join(directory, 'history.txt'), 'utf8')).toContain('zk2 ended by SIGKILL');
      for (const id of ['1', '2', '3']) {
        expect(existsSync(join(directory, id, 'data', 'version-2'))).toBe(true);
        expect(readFileSync(join(directory, id, 'log'), 'utf8')).not.toBe('');
        expect(existsSync(join(directory, id, 'pid')), 'it does not run any more').toBe(false);
      }
    },
    RUN_MS,
  );
});
