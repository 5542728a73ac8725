// Tracks the processes that the benchmark starts, so that none outlives it after an error or Ctrl-C.
import { spawn } from 'node:child_process';

const running = new Set();

/** Starts a program, which gets SIGKILL when the benchmark exits before it. */
export function start(command, args, options) {
  const child = spawn(command, args, options);
  running.add(child);
  child.once('error', () => running.delete(child));
  child.once('exit', () => running.delete(child));
  return child;
}

/**
 * Runs a program to completion and returns its output; a non-zero exit is an error that quotes the output.
 *
 * @param options those of `spawn`, and `onStart`, called with the process
 */
export function run(command, args, { onStart, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = start(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    onStart?.(child);
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (complaint += chunk));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ${args.join(' ')}\nended with ${signal ?? code}: ${complaint}${output}`));
    });
  });
}

export const exited = (child) =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', resolve));

export function killAll() {
  for (const child of running) child.kill('SIGKILL');
}
