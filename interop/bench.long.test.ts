import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { SHORT_JAVA } from './harness/java.ts';
import { describeWith } from './harness/peers.ts';

const ROOT = join(import.meta.dirname, '..');
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** @returns the cells of the rows of its table */
async function bench(args: readonly string[]): Promise<readonly (readonly string[])[]> {
  const directory = mkdtempSync(join(tmpdir(), 'meerkat-bench-'));
  directories.push(directory);
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'bench/main.mjs'), ...args], {
    // Reduces the load by Apache's servers and the compiler; nothing is measured here.
    env: { ...process.env, ZKBENCH_DIR: directory, JAVA_TOOL_OPTIONS: SHORT_JAVA.join(' '), CXXFLAGS: '-O0' },
    timeout: 890_000,
  });
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(2).map((row) => row.split('|').map((cell) => cell.trim()));
}

/** Times are ignored, because other tests run on the machine. The load generator checks every reply. */
describeWith(['apache', 'compiler'], 'the benchmark of ensembles, in its short form', () => {
  it('measures both engines under load, and finds every acknowledged write after the death of a leader', async () => {
    const amounts = ['--quick', '--pairs', '1', '--warm-up', '0.5'];
    const table = await bench(['ensemble', ...amounts, '--only', '^leader killed']);
    expect(table.length).toBeGreaterThanOrEqual(1);
    for (const [, title, apache, meerkat] of table) {
      expect(Number.parseFloat(apache!.replaceAll(',', '')), title).toBeGreaterThan(0);
      expect(Number.parseFloat(meerkat!.replaceAll(',', '')), title).toBeGreaterThan(0);
    }
  }, 900_000);
});
