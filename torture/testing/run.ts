import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** A run heals within two minutes or reports that it cannot. */
export const RUN_MS = 280_000;

/** Directory for the files of the runs of a test. */
export let temporary = '';
const running: ChildProcess[] = [];

/** Builds the program before the tests of a file; after each test, stops leftover processes and removes files. */
export function prepareRuns(): void {
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
      // The first signal lets it stop its servers.
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    rmSync(temporary, { recursive: true, force: true });
  });
}

export interface Run {
  readonly child: ChildProcess;
  /** Its output so far. */
  text(): string;
  /** Resolves once its output contains `part`. */
  printed(part: string): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** Starts it like `npm run torture`, with all its files in a directory of the test. */
export function start(args: readonly string[]): Run {
  const child = spawn(process.execPath, [join(ROOT, 'torture/dist/main.js'), ...args], {
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

/** The value of a label in the table. */
export function figure(text: string, label: string): number {
  const found = new RegExp(`^${label} +([\\d,]+)`, 'm').exec(text);
  if (found === null) throw new Error(`there is no "${label}" in\n${text}`);
  return Number(found[1]!.replaceAll(',', ''));
}
