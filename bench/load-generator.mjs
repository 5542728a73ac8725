// Builds the load generator zkload once and runs it. See zkload.cc for its modes and the rules that it checks.
import { mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './processes.mjs';

/** Directory for binaries and, in a folder per run, data. The scripts in this folder use the same one. */
export const BENCH_DIRECTORY = process.env.ZKBENCH_DIR ?? join(tmpdir(), 'meerkat-bench');

const SOURCE = fileURLToPath(new URL('zkload.cc', import.meta.url));
const BINARY = join(BENCH_DIRECTORY, 'bin', 'zkload');
/** Additional compiler flags, as for `make`. */
const FLAGS = (process.env.CXXFLAGS ?? '').split(' ').filter((flag) => flag !== '');

export async function buildLoadGenerator(progress) {
  const isCurrent = (statSync(BINARY, { throwIfNoEntry: false })?.mtimeMs ?? 0) > statSync(SOURCE).mtimeMs;
  if (isCurrent) return;
  progress('building the load generator');
  mkdirSync(join(BENCH_DIRECTORY, 'bin'), { recursive: true });
  try {
    await run('g++', ['-O2', '-std=c++17', '-Wall', ...FLAGS, '-o', BINARY, SOURCE]);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error('the benchmark needs a C++ compiler for its load generator: apt-get install g++');
  }
}

/**
 * One run against a server, `{ port, pid }`, or several, `{ hosts, pids }` in the format of the options of that name.
 * `scheduler` is a command prefix to run it with. A reply that violates the protocol is an error: the speed of an
 * incorrect server means nothing.
 */
export async function zkload(mode, target, options = {}) {
  const [program, ...args] = [...(target.scheduler ?? []), BINARY, ...argumentsOf(mode, target, options)];
  return JSON.parse(await run(program, args));
}

/**
 * A run in the background.
 *
 * @returns `end`, which ends the measured window now (modes load and failover) and returns the result
 */
export function startZkload(mode, target, options = {}) {
  let child;
  const output = run(BINARY, argumentsOf(mode, target, options), { onStart: (started) => (child = started) });
  // Errors are reported by `end`.
  output.catch(() => {});
  const end = async () => {
    child.kill('SIGTERM');
    return JSON.parse(await output);
  };
  return { end };
}

function argumentsOf(mode, target, options) {
  const args = [mode, '--hosts', target.hosts ?? `127.0.0.1:${target.port}`];
  const pids = target.pids ?? target.pid;
  if (pids !== undefined) args.push('--pids', String(pids));
  for (const [name, value] of Object.entries(options)) args.push(`--${name}`, String(value));
  return args;
}
