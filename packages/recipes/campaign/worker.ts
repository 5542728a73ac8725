/**
 * A worker process, bundled with the simulations: receives slices and reports the outcome of each seed. Its parent ends
 * it.
 */
import { subscribe } from 'node:diagnostics_channel';
import { pathToFileURL } from 'node:url';
import { type VirtualWorld, WORLD_CHANNEL } from '@meerkat/simulator';
import type { FromWorker, ToWorker } from './messages.ts';
import type { Run } from './seed-outcome.ts';
import { setSeed } from './seeds-stand-in.ts';
import { type SimulationTest, takeTests } from './vitest-stand-in.ts';

const tests: Map<string, SimulationTest[]> = new Map();
/** Of the running test. */
let worlds: VirtualWorld[] = [];
let strayErrors: unknown[] = [];

// Recipes handle many errors, and each would capture a stack. vitest shows the stack when the seed is reproduced.
Error.stackTraceLimit = 0;
subscribe(WORLD_CHANNEL, (world) => worlds.push(world as VirtualWorld));
// Unhandled rejections are attributed to the running test, as in vitest.
process.on('unhandledRejection', (error) => strayErrors.push(error));
process.on('uncaughtException', (error) => strayErrors.push(error));
process.on('message', (message: ToWorker) => {
  work(message).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit());
// Ctrl-C reaches the whole process group: the parent prints the summary.
process.on('SIGINT', () => {});

async function work({ file, first, last }: ToWorker): Promise<void> {
  const found = await load(file);
  for (let seed = first; seed <= last; seed++) {
    send({ kind: 'begin', seed });
    const runs: Run[] = [];
    setSeed(seed);
    for (const test of found) runs.push(await runTest(test));
    send({ kind: 'seed', outcome: { seed, runs } });
  }
  send({ kind: 'end' });
}

async function load(file: string): Promise<readonly SimulationTest[]> {
  let found = tests.get(file);
  if (found === undefined) {
    await import(pathToFileURL(file).href);
    found = takeTests();
    tests.set(file, found);
  }
  return found;
}

async function runTest({ title, run }: SimulationTest): Promise<Run> {
  worlds = [];
  strayErrors = [];
  const before = process.cpuUsage();
  const errors: unknown[] = [];
  try {
    await run();
  } catch (error) {
    errors.push(error);
  }
  // By then, unhandled rejections have been reported.
  await new Promise((resolve) => setImmediate(resolve));
  errors.push(...strayErrors);
  const { user, system } = process.cpuUsage(before);
  return {
    title,
    virtualMs: worlds.reduce((sum, { nowMs }) => sum + nowMs, 0),
    traces: worlds.map(({ traceHash }) => traceHash),
    cpuMs: Math.round((user + system) / 1000),
    violation: errors.length === 0 ? null : errors.map(describeError).join('\n'),
  };
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.stack?.includes(error.message) === true ? error.stack : `${error.name}: ${error.message}`;
}

function send(message: FromWorker): void {
  process.send?.(message);
}
