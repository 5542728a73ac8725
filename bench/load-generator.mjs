// zkload, the load generator: builds it once and runs it. See zkload.cc for its modes and the rules it checks.
import { mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './processes.mjs';

/** Binaries and, in a folder for each run, data. The scripts in this folder use the same. */
export const BENCH_DIRECTORY = process.env.ZKBENCH_DIR ?? join(tmpdir(), 'meerkat-bench');

const SOURCE = fileURLToPath(new URL('zkload.cc', import.meta.url));
const BINARY = join(BENCH_DIRECTORY, 'bin', 'zkload');

export async function buildLoadGenerator(progress) {
  const isCurrent = (statSync(BINARY, { throwIfNoEntry: false })?.mtimeMs ?? 0) > statSync(SOURCE).mtimeMs;
  if (isCurrent) return;
  progress('building the load generator');
  mkdirSync(join(BENCH_DIRECTORY, 'bin'), { recursive: true });
  try {
    await run('g++', ['-O2', '-std=c++17', '-Wall', '-o', BINARY, SOURCE]);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error('the benchmark needs a C++ compiler for its load generator: apt-get install g++');
  }
}

/**
 * One run against `server`, `{ port, pid }`. A reply that breaks a rule of the protocol is an error: a server that is
 * wrong has no speed.
 */
export async function zkload(mode, server, options = {}) {
  const args = [mode, '--hosts', `127.0.0.1:${server.port}`];
  if (server.pid !== undefined) args.push('--pids', String(server.pid));
  for (const [name, value] of Object.entries(options)) args.push(`--${name}`, String(value));
  return JSON.parse(await run(BINARY, args));
}
