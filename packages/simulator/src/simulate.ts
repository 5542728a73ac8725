import type { Hierarchy } from '@meerkat/protocol';
import type { Violation } from './checkers/violation.ts';
import {
  FAULT_KINDS,
  type Fault,
  type FaultKind,
  planBrokenJoins,
  planChanges,
  planFaults,
  planThreadDeaths,
} from './fault.ts';
import { drawHierarchy, makeGroups } from './hierarchy.ts';
import { History } from './history.ts';
import { Nemesis } from './nemesis.ts';
import { endSessionsByHand } from './operator.ts';
import { PROGRESS_MS, Recovery } from './recovery.ts';
import { Checkers } from './run-checkers.ts';
import { SeededRandom } from './seeded-random.ts';
import { TraceTail } from './trace-tail.ts';
import { configurationOf, drawTraits, type Trait } from './traits.ts';
import { portKindOf, type VirtualEnsemble } from './virtual-ensemble.ts';
import { WINDOW_BYTES } from './virtual-network.ts';
import { VirtualWorld } from './virtual-world.ts';
import { Workload } from './workload.ts';
import { hostWorkload } from './workload-host.ts';
import type { WorkloadOptions } from './workload-options.ts';

export interface SimulateOptions {
  /** A whole number, at most 2**53 − 1. */
  readonly seed: number;
  /** Participants. Default 3. */
  readonly servers?: number | undefined;
  readonly observers?: number | undefined;
  /** Servers that are not members at first; membership changes during the faults. Default 0. */
  readonly spares?: number | undefined;
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
  /** What is special about the servers. Default: the seed draws it. */
  readonly traits?: readonly Trait[] | undefined;
  readonly workload?: Partial<WorkloadOptions> | undefined;
  /** Invariants that are not checked, by number. Default: none. */
  readonly without?: readonly string[] | undefined;
  /** Called for every event. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** Called every virtual second; true ends the run early, without checking for progress. */
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
  /** Watch events that were delivered to programs. */
  readonly watchEvents: number;
  /** Faults that had an effect; the plan may have more, whose targets were down already. */
  readonly faults: number;
  readonly faultsByKind: ReadonlyMap<FaultKind, number>;
  /** Virtual minutes during which things went wrong, and the operations that succeeded in them. */
  readonly minutes: number;
  readonly succeededUnderFaults: number;
  /** How often checkers were fed with each input. */
  readonly fed: ReadonlyMap<string, number>;
  /** Epochs that were established. */
  readonly epochs: number;
  readonly serverStarts: number;
  /** Milliseconds from healing until everything worked; null if it never did. */
  readonly recoveredMs: number | null;
}

export interface SimulateResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly traceHash: string;
  readonly stats: SimulateStats;
  readonly plan: readonly Fault[];
  readonly traits: readonly Trait[];
  /** The last lines of the trace. */
  readonly tail: readonly string[];
}

/**
 * Runs an ensemble and its clients under faults for a while, heals everything, requires that all of it works again within
 * a bound, and checks what was done and seen.
 *
 * The same options give the same result.
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
  readonly #checkers: Checkers;
  readonly #workload: Workload;
  readonly #nemesis: Nemesis;
  readonly #recovery: Recovery;
  readonly #plan: readonly Fault[];
  readonly #traits: readonly Trait[];
  #serverStarts = 0;
  #faultsBeganMs = 0;
  #healedMs: number | null = null;
  readonly #epochs: Set<number> = new Set();

  constructor(options: SimulateOptions) {
    const { seed, servers = 3, observers = 0, spares = 0, groups, minutes = 1, onLine } = options;
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
    // Events of the first start belong to the history too.
    const note = (what: string): void => this.#history.note({ kind: 'fault', what });
    // Its own generator: what is drawn here changes nothing else that the seed decides.
    const traits = options.traits ?? drawTraits(new SeededRandom(seed, 'traits'));
    // What a standalone server has committed is read from its logs at the end, so they must not be purged.
    this.#traits = servers + observers === 1 ? traits.filter((trait) => trait !== 'purge') : traits;
    const { core, ensemble, addresses, clientThreads, isSlow, windowBytes, workload } = configurationOf(this.#traits);
    if (windowBytes !== null) {
      world.network.windowBytesOf = (port) => (portKindOf(port) === 'election' ? WINDOW_BYTES : windowBytes);
    }
    this.#ensemble = world.addEnsemble({
      servers,
      observers,
      spares,
      hierarchy: chooseHierarchy(seed, servers, groups),
      addresses,
      clientThreads,
      isSlow,
      restartDelayMs: RESTART_DELAY_MS,
      core: { ...core, syncWarningMs: 10_000 },
      ensemble,
    });
    this.#nemesis = new Nemesis(world, this.#ensemble, note);
    this.#checkers = new Checkers(
      world,
      this.#ensemble,
      this.#history,
      (server) => this.#nemesis.hasHurtDisk(server),
      options.without,
    );
    world.watch({
      onTrace: (_server, event) => {
        if (event.kind === 'epoch-established') this.#epochs.add(event.epoch);
        if (event.kind === 'session-expired') this.#checkCertainty(event.sessionId);
      },
      onChange: (server, what) => {
        if (what === 'starts') this.#serverStarts++;
        note(`${server.host} ${what}`);
      },
    });
    this.#workload = new Workload(hostWorkload(world, this.#ensemble), this.#history, {
      ...workload,
      ...options.workload,
    });
    const parts = { world, ensemble: this.#ensemble, history: this.#history, checkers: this.#checkers };
    this.#recovery = new Recovery(
      { ...parts, workload: this.#workload, nemesis: this.#nemesis },
      !this.#traits.includes('local-sessions'),
    );
    // Its own generator: a given plan leaves everything else as the seed has it.
    this.#plan = options.plan ?? [
      ...planFaults(new SeededRandom(seed, 'nemesis'), {
        kinds: (options.faults ?? FAULT_KINDS).filter((kind) => kind !== 'break-joins'),
        durationMs: this.#durationMs,
        servers: this.#ensemble.hosts,
        clients: this.#workload.hosts,
      }),
      ...(spares > 0 ? planChanges(new SeededRandom(seed, 'members'), this.#durationMs) : []),
      ...(clientThreads > 0 && options.faults?.length !== 0
        ? planThreadDeaths(new SeededRandom(seed, 'threads'), this.#durationMs, this.#ensemble.hosts)
        : []),
      ...(options.faults?.includes('break-joins') === true
        ? planBrokenJoins(new SeededRandom(seed, 'joins'), this.#durationMs, this.#ensemble.hosts)
        : []),
    ];
  }

  async run(): Promise<SimulateResult> {
    try {
      await this.#world.run(() => this.#live(), this.#durationMs + 20 * PROGRESS_MS);
    } catch (error) {
      this.#checkers.report('A1', error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    this.#checkers.checkOperations();
    return {
      seed: this.#options.seed,
      violations: this.#checkers.violations,
      traceHash: this.#world.traceHash,
      stats: this.#makeStats(),
      plan: this.#plan,
      traits: this.#traits,
      tail: this.#tail.lines,
    };
  }

  async #live(): Promise<void> {
    for (const server of this.#ensemble.servers) server.start();
    if (!(await this.#world.until(() => this.#ensemble.leader !== null, PROGRESS_MS))) {
      this.#checkers.report('L1', `no server leads ${PROGRESS_MS} ms after the start, without any fault`);
      return;
    }
    this.#workload.start();
    this.#nemesis.unleash(this.#plan);
    if (this.#traits.includes('ended-by-hand')) {
      const isOver = (): boolean => this.#healedMs !== null || this.#checkers.violations.length > 0;
      endSessionsByHand(this.#world, this.#ensemble, this.#history, isOver).catch((error) => this.#world.fail(error));
    }
    this.#faultsBeganMs = this.#world.nowMs;
    const endMs = this.#world.nowMs + this.#durationMs;
    while (this.#world.nowMs < endMs && this.#checkers.violations.length === 0) {
      if (this.#options.isCancelled?.() === true) return;
      await this.#world.sleep(Math.min(1000, endMs - this.#world.nowMs));
      this.#checkers.checkDigests();
    }
    // Only the first violation counts; later ones may be its consequences.
    if (this.#checkers.violations.length > 0) return;
    this.#healedMs = this.#world.nowMs;
    await this.#recovery.run();
  }

  /**
   * S10, for a standalone server only: in an ensemble, a follower that is cut off answers its clients for a while without
   * the leader's knowledge. A client measures its certainty by its own clock, so nothing is checked once clocks have run at
   * different rates.
   */
  #checkCertainty(sessionId: bigint): void {
    if (this.#ensemble.servers.length > 1 || this.#nemesis.executed.has('skew')) return;
    for (const client of this.#workload.clients) {
      const leftMs = client.sureUntilMs(sessionId) - this.#world.clockOf(client.host).monotonicMs();
      if (leftMs <= 0) continue;
      const session = `session 0x${sessionId.toString(16)}`;
      this.#checkers.report('S10', `${session} expires, and ${client.host} is sure of it for another ${leftMs} ms`);
    }
  }

  #makeStats(): SimulateStats {
    const { operations, entries } = this.#history;
    const healedMs = this.#healedMs ?? this.#world.nowMs;
    return {
      virtualMs: this.#world.nowMs,
      events: this.#world.timeline.happenedCount,
      operations: operations.length,
      succeeded: operations.filter(({ result }) => result !== null).length,
      inDoubt: operations.filter(({ error }) => error?.outcome === 'unknown').length,
      watchEvents: entries.filter(({ kind }) => kind === 'notified').length,
      faults: [...this.#nemesis.executed.values()].reduce((sum, count) => sum + count, 0),
      faultsByKind: this.#nemesis.executed,
      minutes: (healedMs - this.#faultsBeganMs) / 60_000,
      succeededUnderFaults: operations.filter(({ result, endMs }) => result !== null && (endMs ?? 0) < healedMs).length,
      fed: this.#checkers.fed,
      epochs: this.#epochs.size,
      serverStarts: this.#serverStarts,
      recoveredMs: this.#recovery.tookMs,
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
