/** `npm run simulate:campaign`: thousands of seeds, split over the processors, and a table of what they did. */
import { type ChildProcess, fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { commandOf, type Shape } from '../repeat-command.ts';
import type { SimulateOptions } from '../simulate.ts';
import { PAIRS, pairOf } from './pairs.ts';
import { CAMPAIGN_SHAPES, shapeOf } from './shapes.ts';
import { type SeedOutcome, Tally } from './tally.ts';

const USAGE = `npm run simulate:campaign -- [options]

  --seeds N           seeds 1 to N, or A..B; default 1000
  --minutes N         virtual minutes of faults for each seed; default 1
  --workers N         processes; default: as many as there are processors
  --failures N        stop after so many seeds that violated an invariant; default 10
  --pairs             a pair of traits in each world; ${10 * PAIRS.length} seeds in a row run every pair in all ensembles
  --summary FILE      write the table there too
  --help

The last digit of a seed says what it runs in:
${CAMPAIGN_SHAPES.map(({ name, share }) => `  ${share} of 10: ${name}`).join('\n')}

Ctrl-C ends it with what was done. Exit code 1: an invariant was violated; or of 100 seeds and more (with --pairs, of
all of them), too few operations succeeded, too few faults were carried out, or a checker was never fed with one of its
inputs.
`;

interface CampaignOptions {
  readonly first: number;
  readonly last: number;
  readonly minutes: number;
  readonly workers: number;
  readonly failuresMax: number;
  readonly hasPairs: boolean;
  readonly summaryFile: string | null;
}

class UsageError extends Error {}

function readOptions(args: readonly string[]): CampaignOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '1000' },
      minutes: { type: 'string', default: '1' },
      workers: { type: 'string', default: String(availableParallelism()) },
      failures: { type: 'string', default: '10' },
      pairs: { type: 'boolean', default: false },
      summary: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const [from = '', to] = values.seeds.split('..');
  return {
    first: to === undefined ? 1 : readCount('seeds', from),
    last: readCount('seeds', to ?? from),
    minutes: readPositive('minutes', values.minutes),
    workers: readCount('workers', values.workers),
    failuresMax: readCount('failures', values.failures),
    hasPairs: values.pairs,
    summaryFile: values.summary ?? null,
  };
}

function readPositive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0 && number < Number.POSITIVE_INFINITY)) throw new UsageError(`--${name} ${text}: a number above 0`);
  return number;
}

function readCount(name: string, text: string): number {
  const number = readPositive(name, text);
  if (!Number.isSafeInteger(number)) throw new UsageError(`--${name} ${text}: a whole number`);
  return number;
}

/** Hands out seeds to worker processes, one at a time, and adds up what comes back. */
class Campaign {
  readonly #options: CampaignOptions;
  readonly #tally = new Tally();
  readonly #workers: Set<ChildProcess> = new Set();
  readonly #began = performance.now();
  #next: number;
  #lastProgress = 0;
  #isOver = false;
  #onOver: () => void = () => {};

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.#next = options.first;
  }

  /** @returns the exit code */
  async run(): Promise<number> {
    const { first, last, workers, hasPairs, summaryFile } = this.#options;
    let isCancelled = false;
    process.on('SIGINT', () => {
      isCancelled = true;
      this.#end();
    });
    await new Promise<void>((resolve) => {
      this.#onOver = resolve;
      for (let i = 0; i < Math.min(workers, last - first + 1); i++) this.#startWorker();
    });
    const summary = `${isCancelled ? 'cancelled after ' : ''}${this.#progress()}\n\n${this.#tally.format()}\n`;
    process.stdout.write(`\n${summary}`);
    if (summaryFile !== null) writeFileSync(summaryFile, summary);
    if (this.#tally.failures > 0) return 1;
    const seedsForFloors = hasPairs ? 10 * PAIRS.length : SEEDS_FOR_FLOORS;
    if (this.#tally.seeds >= seedsForFloors && this.#tally.lacks.length > 0) return 1;
    return isCancelled ? 130 : 0;
  }

  #startWorker(): void {
    const worker = fork(fileURLToPath(new URL('worker.js', import.meta.url)), {
      serialization: 'advanced',
      // Worlds are made and thrown away: the young generation holds more of one before it is looked through.
      execArgv: ['--max-semi-space-size=64'],
    });
    this.#workers.add(worker);
    let running: number | null = null;
    const startNext = (): void => {
      running = this.#next <= this.#options.last ? this.#next++ : null;
      if (running !== null) worker.send(this.#optionsOf(running));
      else this.#retire(worker);
    };
    worker.on('message', (outcome: SeedOutcome) => {
      if (this.#isOver) return;
      this.#onOutcome(outcome);
      if (!this.#isOver) startNext();
    });
    worker.on('exit', (code, signal) => {
      if (this.#isOver || !this.#workers.has(worker)) return;
      process.stdout.write(`a worker has died (${signal ?? code}) in seed ${running}\n`);
      process.exitCode = 1;
      this.#retire(worker);
    });
    startNext();
  }

  #optionsOf(seed: number): SimulateOptions {
    return { ...this.#shapeOf(seed), seed };
  }

  #shapeOf(seed: number): Shape {
    const { minutes, hasPairs } = this.#options;
    return { ...shapeOf(seed).shape, minutes, ...(hasPairs ? { traits: pairOf(seed) } : {}) };
  }

  #onOutcome(outcome: SeedOutcome): void {
    const { seed, violations } = outcome;
    this.#tally.add(shapeOf(seed), outcome);
    if (violations.length > 0) {
      const lines = violations.map(
        ({ invariant, atMs, message }) => `  ${invariant} at ${atMs.toFixed(3)}: ${message}`,
      );
      const command = commandOf(this.#shapeOf(seed), seed, null);
      process.stdout.write(`seed ${seed} fails\n${lines.join('\n')}\n  to repeat it: ${command}\n`);
      if (this.#tally.failures >= this.#options.failuresMax) this.#end();
    }
    if (performance.now() - this.#lastProgress > PROGRESS_EVERY_MS) {
      this.#lastProgress = performance.now();
      process.stderr.write(`${this.#progress()}\n`);
    }
  }

  #progress(): string {
    const { first, last } = this.#options;
    const { seeds, failures, virtualMs } = this.#tally;
    const seconds = (performance.now() - this.#began) / 1000;
    const faster = Math.round(virtualMs / 1000 / seconds);
    return (
      `${seeds} of ${last - first + 1} seeds, ${failures} with violations, in ${Math.round(seconds)} s: ` +
      `${faster} times as fast as time`
    );
  }

  #retire(worker: ChildProcess): void {
    this.#workers.delete(worker);
    worker.kill('SIGTERM');
    if (this.#workers.size === 0) this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const worker of this.#workers) worker.kill('SIGTERM');
    this.#onOver();
  }
}

/** From so many seeds on every kind of fault and every input of a checker has been there, and progress has its floor. */
const SEEDS_FOR_FLOORS = 100;
const PROGRESS_EVERY_MS = 10_000;

async function main(): Promise<number> {
  let options: CampaignOptions | null;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (options === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  return new Campaign(options).run();
}

const code = await main();
process.exitCode = Math.max(code, Number(process.exitCode ?? 0));
