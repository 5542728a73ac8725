import type { Hierarchy } from '@meerkat/protocol';
import type { Violation } from './checkers/violation.ts';
import { FAULT_KINDS, type Fault, type FaultKind, planFaults } from './fault.ts';
import { drawHierarchy, makeGroups } from './hierarchy.ts';
import { History } from './history.ts';
import { Judges } from './judges.ts';
import { Nemesis } from './nemesis.ts';
import { SeededRandom } from './seeded-random.ts';
import { TraceTail } from './trace-tail.ts';
import type { VirtualEnsemble } from './virtual-ensemble.ts';
import { VirtualWorld } from './virtual-world.ts';
import { Workload, type WorkloadOptions } from './workload.ts';
import { hostWorkload } from './workload-host.ts';

export interface SimulateOptions {
  /** A whole number, at most 2**53 − 1. */
  readonly seed: number;
  /** Participants. Default 3. */
  readonly servers?: number | undefined;
  readonly observers?: number | undefined;
  /**
   * A quorum is a majority of groups: of so many with the same weights, or as the seed draws them with `drawn`.
   * Default: it is a majority of the participants.
   */
  readonly groups?: number | 'drawn' | undefined;
  /** Virtual minutes during which things go wrong. Default 1. */
  readonly minutes?: number | undefined;
  /** Default: all kinds. */
  readonly faults?: readonly FaultKind[] | undefined;
  /** Instead of a plan that the seed makes. */
  readonly plan?: readonly Fault[] | undefined;
  readonly workload?: Partial<WorkloadOptions> | undefined;
  /** Hears of everything that happens. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** Looked at every virtual second: the run ends early, without a verdict on progress. */
  readonly isCancelled?: (() => boolean) | undefined;
}

export interface SimulateStats {
  /** Virtual milliseconds. */
  readonly virtualMs: number;
  /** Steps of the world. */
  readonly events: number;
  readonly operations: number;
  readonly succeeded: number;
  /** In doubt, because of a lost connection. */
  readonly inDoubt: number;
  /** Watch events that clients were told. */
  readonly watchEvents: number;
  readonly faults: number;
  /** Epochs that were established. */
  readonly epochs: number;
  readonly serverStarts: number;
  /** Milliseconds from the healing to the moment from which everything works; null when it never came. */
  readonly recoveredMs: number | null;
}

export interface SimulateResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly traceHash: string;
  readonly stats: SimulateStats;
  readonly plan: readonly Fault[];
  /** The last lines of the trace. */
  readonly tail: readonly string[];
}

/**
 * Lets an ensemble and its clients live through faults for a while, heals everything, demands that all of it works again
 * within a bound, and judges what was done and seen.
 *
 * The same options give the same result, but for nothing.
 */
export async function simulate(options: SimulateOptions): Promise<SimulateResult> {
  return new Simulation(options).run();
}

class Simulation {
  readonly #options: SimulateOptions;
  readonly #durationMs: number;
  readonly #tail = new TraceTail(TAIL_LINES);
  readonly #world: VirtualWorld;
  readonly #history: History;
  readonly #ensemble: VirtualEnsemble;
  readonly #judges: Judges;
  readonly #workload: Workload;
  readonly #nemesis: Nemesis;
  readonly #plan: readonly Fault[];
  #serverStarts = 0;
  #recoveredMs: number | null = null;
  readonly #epochs: Set<number> = new Set();

  constructor(options: SimulateOptions) {
    const { seed, servers = 3, observers = 0, groups, minutes = 1, onLine } = options;
    this.#options = options;
    this.#durationMs = minutes * 60_000;
    const world = new VirtualWorld({
      seed,
      onLine: (line) => {
        this.#tail.add(line);
        onLine?.(line);
      },
    });
    this.#world = world;
    this.#history = new History(() => world.nowMs);
    // What is told of the first start belongs to the history too.
    const note = (what: string): void => this.#history.note({ kind: 'fault', what });
    this.#ensemble = world.addEnsemble({
      servers,
      observers,
      hierarchy: chooseHierarchy(seed, servers, groups),
      restartDelayMs: RESTART_DELAY_MS,
      core: { snapCount: 300, syncWarningMs: 10_000 },
    });
    this.#nemesis = new Nemesis(world, this.#ensemble, note);
    this.#judges = new Judges(world, this.#ensemble, this.#history, (server) => this.#nemesis.hasHurtDisk(server));
    world.watch({
      onTrace: (_server, event) => {
        if (event.kind === 'epoch-established') this.#epochs.add(event.epoch);
      },
      onChange: (server, what) => {
        if (what === 'starts') this.#serverStarts++;
        note(`${server.host} ${what}`);
      },
    });
    this.#workload = new Workload(hostWorkload(world, this.#ensemble), this.#history, options.workload);
    // A generator of its own: a plan that is given leaves everything else as the seed has it.
    this.#plan =
      options.plan ??
      planFaults(new SeededRandom(seed, 'nemesis'), {
        kinds: options.faults ?? FAULT_KINDS,
        durationMs: this.#durationMs,
        servers: this.#ensemble.hosts,
        clients: this.#workload.hosts,
      });
  }

  async run(): Promise<SimulateResult> {
    try {
      await this.#world.run(() => this.#live(), this.#durationMs + 20 * PROGRESS_MS);
    } catch (error) {
      this.#judges.report('A1', error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    this.#judges.judgeHistory();
    return {
      seed: this.#options.seed,
      violations: this.#judges.violations,
      traceHash: this.#world.traceHash,
      stats: this.#makeStats(),
      plan: this.#plan,
      tail: this.#tail.lines,
    };
  }

  async #live(): Promise<void> {
    for (const server of this.#ensemble.servers) server.start();
    if (!(await this.#world.until(() => this.#ensemble.leader !== null, PROGRESS_MS))) {
      this.#judges.report('L1', `nobody leads ${PROGRESS_MS} ms after the start, without any fault`);
      return;
    }
    this.#workload.start();
    this.#nemesis.unleash(this.#plan);
    const endMs = this.#world.nowMs + this.#durationMs;
    while (this.#world.nowMs < endMs && this.#judges.violations.length === 0) {
      if (this.#options.isCancelled?.() === true) return;
      await this.#world.sleep(Math.min(1000, endMs - this.#world.nowMs));
      this.#judges.judgeDigests();
    }
    // The first violation is what counts; what follows from it is of no interest.
    if (this.#judges.violations.length > 0) return;
    await this.#recover();
  }

  /** Heals everything, and demands that everything works: a leader, all servers, all clients, a write. */
  async #recover(): Promise<void> {
    const healedMs = this.#world.nowMs;
    this.#nemesis.heal();
    const isLeft = (): number => healedMs + PROGRESS_MS - this.#world.nowMs;
    const holds = (what: () => boolean): Promise<boolean> =>
      this.#world.until(
        () => {
          this.#nemesis.tend();
          return what();
        },
        isLeft(),
        20,
      );
    if (!(await holds(() => this.#ensemble.leader !== null))) {
      this.#judges.report('L1', `nobody leads ${PROGRESS_MS} ms after everything was healed`);
      return;
    }
    if (!(await holds(() => this.#workload.isConnected))) {
      this.#judges.report('L3', `not every client has a connection ${PROGRESS_MS} ms after everything was healed`);
      return;
    }
    await this.#within(this.#workload.stop(), 'L3', 'a request of a client is never answered');
    await this.#within(this.#write(), 'L1', 'a write does not go through');
    if (!(await holds(() => this.#ensemble.isWhole))) {
      this.#judges.report('L2', `not every server has caught up ${PROGRESS_MS} ms after everything was healed`);
      return;
    }
    this.#recoveredMs = this.#world.nowMs - healedMs;
    this.#judges.judgeServers();
  }

  async #write(): Promise<void> {
    const client = await this.#world.connect('probe', {
      servers: this.#ensemble.connectString,
      sessionTimeoutMs: 6000,
      connectTimeoutMs: PROGRESS_MS,
    });
    await client.create('/probe', 'the end', { timeoutMs: PROGRESS_MS });
    await client.close();
  }

  async #within(work: Promise<unknown>, invariant: string, message: string): Promise<void> {
    let isDone = false;
    work.then(
      () => {
        isDone = true;
      },
      (error: unknown) => this.#world.fail(error),
    );
    if (!(await this.#world.until(() => isDone, PROGRESS_MS))) {
      this.#judges.report(invariant, `${message} within ${PROGRESS_MS} ms after everything was healed`);
    }
  }

  #makeStats(): SimulateStats {
    const { operations, entries } = this.#history;
    return {
      virtualMs: this.#world.nowMs,
      events: this.#world.timeline.happenedCount,
      operations: operations.length,
      succeeded: operations.filter(({ result }) => result !== null).length,
      inDoubt: operations.filter(({ error }) => error?.outcome === 'unknown').length,
      watchEvents: entries.filter(({ kind }) => kind === 'told').length,
      faults: this.#plan.length,
      epochs: this.#epochs.size,
      serverStarts: this.#serverStarts,
      recoveredMs: this.#recoveredMs,
    };
  }
}

function chooseHierarchy(seed: number, servers: number, groups: number | 'drawn' | undefined): Hierarchy | undefined {
  if (groups === undefined) return undefined;
  return groups === 'drawn'
    ? drawHierarchy(new SeededRandom(seed, 'hierarchy'), servers)
    : makeGroups(servers, Math.min(groups, servers));
}

const TAIL_LINES = 400;
const RESTART_DELAY_MS = 400;
/**
 * Virtual milliseconds within which everything works again: several elections, each of them with a synchronization that
 * takes its whole limit, and the longest session timeout.
 */
const PROGRESS_MS = 30_000;
