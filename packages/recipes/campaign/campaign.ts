import { type ChildProcess, fork } from 'node:child_process';
import { type Bundle, commandOf } from './bundle.ts';
import type { FromWorker, ToWorker } from './messages.ts';
import type { SeedOutcome } from './seed-outcome.ts';
import { countSeeds, type Slice } from './slices.ts';
import type { Totals } from './totals.ts';

export interface CampaignEvents {
  /** Called with each violation as it is found, as text for people. */
  onViolation(text: string): void;
  onProgress(line: string): void;
  onSliceDone(slice: Slice, outcomes: readonly SeedOutcome[]): void;
}

/** The slice that a worker is running. */
interface Work {
  readonly slice: Slice;
  /** The seed that is running, or is next. */
  seed: number;
  readonly outcomes: SeedOutcome[];
}

/** Distributes slices to worker processes, one at a time, and adds up the results. */
export class Campaign {
  readonly #bundle: Bundle;
  readonly #slices: readonly Slice[];
  readonly #totals: Totals;
  readonly #events: CampaignEvents;
  /** Slices left unfinished by a worker; they are run before the others. */
  readonly #left: Slice[] = [];
  readonly #workers: Set<ChildProcess> = new Set();
  readonly #began = performance.now();
  readonly #seedCount: number;
  readonly #before: Pick<Totals, 'seeds' | 'virtualMs'>;
  #next = 0;
  #deaths = 0;
  #isOver = false;
  #onOver: () => void = () => {};

  /** @param totals may already hold the results of earlier slices */
  constructor(bundle: Bundle, slices: readonly Slice[], totals: Totals, events: CampaignEvents) {
    this.#bundle = bundle;
    this.#slices = slices;
    this.#totals = totals;
    this.#events = events;
    this.#seedCount = countSeeds(slices);
    this.#before = { seeds: totals.seeds, virtualMs: totals.virtualMs };
  }

  /** Resolves when everything is done, or after `end`. */
  async run(jobs: number): Promise<void> {
    if (this.#slices.length === 0) return;
    const progressTimer = setInterval(() => this.#events.onProgress(this.progress), PROGRESS_EVERY_MS);
    await new Promise<void>((resolve) => {
      this.#onOver = resolve;
      for (let i = 0; i < Math.min(jobs, this.#slices.length); i++) this.#startWorker();
    });
    clearInterval(progressTimer);
  }

  /** Stops without waiting for running slices. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const worker of this.#workers) worker.kill('SIGTERM');
    this.#onOver();
  }

  get progress(): string {
    const seeds = this.#totals.seeds - this.#before.seeds;
    const seconds = (performance.now() - this.#began) / 1000;
    const hours = (this.#totals.virtualMs - this.#before.virtualMs) / 3_600_000;
    const left = seeds === 0 ? '' : `, ${formatSpan(((this.#seedCount - seeds) * seconds) / seeds)} left`;
    return (
      `${seeds} of ${this.#seedCount} seeds, ${(seeds / seconds).toFixed(1)} a second, ${hours.toFixed(1)} virtual hours, ` +
      `${this.#totals.violations} violations, in ${formatSpan(seconds)}${left}`
    );
  }

  #startWorker(): void {
    const worker = fork(this.#bundle.workerFile, {
      serialization: 'advanced',
      // Worlds are created and dropped: a large young generation is collected less often. Parallel GC threads would
      // take more from the other workers than they give to this one.
      execArgv: ['--max-semi-space-size=64', '--single-threaded-gc'],
    });
    this.#workers.add(worker);
    let work: Work | null = null;
    /** No seed takes this long on any machine. */
    let watchdog: NodeJS.Timeout | undefined;
    const startNext = (): void => {
      const slice = this.#left.pop() ?? this.#slices[this.#next++];
      work = slice === undefined ? null : { slice, seed: slice.first, outcomes: [] };
      if (work === null) this.#retire(worker);
      else worker.send({ file: this.#bundle.fileOf(work.slice.name), ...work.slice } satisfies ToWorker);
    };
    worker.on('message', (message: FromWorker) => {
      if (this.#isOver || work === null) return;
      if (message.kind === 'begin') {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => worker.kill('SIGKILL'), SEED_MAX_MS);
      } else if (message.kind === 'seed') this.#onOutcome(work, message.outcome);
      else {
        clearTimeout(watchdog);
        this.#events.onSliceDone(work.slice, work.outcomes);
        startNext();
      }
    });
    worker.on('exit', (code, signal) => {
      clearTimeout(watchdog);
      if (this.#isOver || !this.#workers.delete(worker)) return;
      if (work !== null) this.#onDeath(work, `its process has ended by itself (${signal ?? `exit code ${code}`})`);
      if (++this.#deaths < DEATHS_MAX) this.#startWorker();
      else this.end();
    });
    startNext();
  }

  #onOutcome(work: Work, outcome: SeedOutcome): void {
    const { slice, outcomes } = work;
    const { seed, runs } = outcome;
    outcomes.push(outcome);
    work.seed = seed + 1;
    this.#totals.add(slice.name, outcome);
    for (const { title, violation } of runs) {
      if (violation === null) continue;
      const text = violation.replaceAll('\n', '\n  ');
      this.#events.onViolation(
        `${slice.name}, seed ${seed}: ${title}\n  ${text}\n  to repeat it: ${commandOf(slice.name, seed)}`,
      );
    }
  }

  /** The seed that was running counts as a violation; another worker runs the remaining seeds. */
  #onDeath(work: Work, reason: string): void {
    const { slice, seed, outcomes } = work;
    if (seed <= slice.last) {
      const run = { title: 'runs to its end', virtualMs: 0, traces: [], cpuMs: 0, violation: reason };
      this.#onOutcome(work, { seed, runs: [run] });
    }
    this.#events.onSliceDone({ ...slice, last: work.seed - 1 }, outcomes);
    if (work.seed <= slice.last) this.#left.push({ ...slice, first: work.seed });
  }

  #retire(worker: ChildProcess): void {
    this.#workers.delete(worker);
    worker.kill('SIGTERM');
    if (this.#workers.size === 0) this.end();
  }
}

const PROGRESS_EVERY_MS = 10_000;
/** Most take a second. */
const SEED_MAX_MS = 600_000;
/** Workers that died; when there are more, the seeds are not the cause. */
const DEATHS_MAX = 20;

function formatSpan(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${Math.round(seconds)} s` : `${minutes} min`;
}
