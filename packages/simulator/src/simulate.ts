import type { Client } from '@meerkat/client';
import type { Hierarchy, Membership } from '@meerkat/protocol';
import { isQuorum } from './checkers/quorum.ts';
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
import { Judges } from './judges.ts';
import { findBrokenMove } from './moves.ts';
import { Nemesis } from './nemesis.ts';
import { endSessionsByHand } from './operator.ts';
import { SeededRandom } from './seeded-random.ts';
import { stir } from './stir.ts';
import { TraceTail } from './trace-tail.ts';
import { configurationOf, drawTraits, type Trait } from './traits.ts';
import { CLIENT_PORT, type VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
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
  /** Servers that are no members at first: members change while things go wrong. Default 0. */
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
  /** Promises that are not looked after, by their numbers. Default: none. */
  readonly without?: readonly string[] | undefined;
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
  /** Faults that have changed something; the plan may have more, whose victims were down already. */
  readonly faults: number;
  readonly faultsByKind: ReadonlyMap<FaultKind, number>;
  /** Virtual minutes during which things went wrong, and the operations that succeeded in them. */
  readonly minutes: number;
  readonly succeededUnderFaults: number;
  /** How often checkers were told of what. */
  readonly fed: ReadonlyMap<string, number>;
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
  readonly traits: readonly Trait[];
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
  readonly #traits: readonly Trait[];
  #serverStarts = 0;
  #recoveredMs: number | null = null;
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
    // What is told of the first start belongs to the history too.
    const note = (what: string): void => this.#history.note({ kind: 'fault', what });
    // A generator of its own: what is drawn here changes nothing else that the seed decides.
    const traits = options.traits ?? drawTraits(new SeededRandom(seed, 'traits'));
    // What a server of its own has committed is read from its logs at the end: they have to be there.
    this.#traits = servers + observers === 1 ? traits.filter((trait) => trait !== 'purge') : traits;
    const { core, ensemble, addresses, clientThreads, workload } = configurationOf(this.#traits);
    this.#ensemble = world.addEnsemble({
      servers,
      observers,
      spares,
      hierarchy: chooseHierarchy(seed, servers, groups),
      addresses,
      clientThreads,
      restartDelayMs: RESTART_DELAY_MS,
      core: { ...core, syncWarningMs: 10_000 },
      ensemble,
    });
    this.#nemesis = new Nemesis(world, this.#ensemble, note);
    this.#judges = new Judges(
      world,
      this.#ensemble,
      this.#history,
      (server) => this.#nemesis.hasHurtDisk(server),
      options.without,
    );
    world.watch({
      onTrace: (_server, event) => {
        if (event.kind === 'epoch-established') this.#epochs.add(event.epoch);
        if (event.kind === 'session-expired') this.#judgeCertainty(event.sessionId);
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
    // A generator of its own: a plan that is given leaves everything else as the seed has it.
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
      this.#judges.report('A1', error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    this.#judges.judgeHistory();
    return {
      seed: this.#options.seed,
      violations: this.#judges.violations,
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
      this.#judges.report('L1', `nobody leads ${PROGRESS_MS} ms after the start, without any fault`);
      return;
    }
    this.#workload.start();
    this.#nemesis.unleash(this.#plan);
    if (this.#traits.includes('ended-by-hand')) {
      const isOver = (): boolean => this.#healedMs !== null || this.#judges.violations.length > 0;
      endSessionsByHand(this.#world, this.#ensemble, this.#history, isOver).catch((error) => this.#world.fail(error));
    }
    this.#faultsBeganMs = this.#world.nowMs;
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
    this.#healedMs = healedMs;
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
    await this.#within(this.#workload.rest(), 'L3', 'a request of a client is never answered');
    await this.#within(this.#write(), 'L1', 'a write does not go through');
    if (!(await holds(() => this.#ensemble.isWhole))) {
      this.#judges.report('L2', `not every server has caught up ${PROGRESS_MS} ms after everything was healed`);
      return;
    }
    this.#recoveredMs = this.#world.nowMs - healedMs;
    // A change of the members, too, ends connections.
    const isSettled = (): boolean => this.#nemesis.isDone && this.#workload.isConnected && this.#ensemble.isWhole;
    if (!(await this.#world.until(isSettled, PROGRESS_MS, 20))) {
      this.#judges.report('L3', `the last change of the members is not over ${PROGRESS_MS} ms after the recovery`);
      return;
    }
    await this.#judgeConnections();
    await this.#within(this.#judgeMoves(), 'L3', 'a session that moves is never answered');
    await this.#succeedTwice();
    if (this.#judges.violations.length > 0) return;
    await this.#within(this.#stir(), 'L1', 'the writes of a client without faults do not go through');
    await this.#within(this.#workload.close(), 'L3', 'a session is never closed');
    if (!(await this.#world.until(() => this.#sessionCount() === 0, PROGRESS_MS))) {
      this.#judges.report(
        'S9',
        `${this.#sessionCount()} sessions live ${PROGRESS_MS} ms after their clients have gone`,
      );
    }
    await this.#judgeConnections();
    await this.#judgeWatches();
    // The end of a session counts as over when it is proposed.
    await this.#world.until(() => this.#ensemble.isAtRest, PROGRESS_MS);
    this.#judges.judgeServers();
  }

  /**
   * S10, of a server of its own: a follower that is cut off answers its clients for a while, and the leader does not hear of
   * it. What a client is sure of it counts by its own clock, so nothing is said once clocks have run at different rates.
   */
  #judgeCertainty(sessionId: bigint): void {
    if (this.#ensemble.servers.length > 1 || this.#nemesis.executed.has('skew')) return;
    for (const client of this.#workload.clients) {
      const leftMs = client.sureUntilMs(sessionId) - this.#world.clockOf(client.host).monotonicMs();
      if (leftMs <= 0) continue;
      const session = `session 0x${sessionId.toString(16)}`;
      this.#judges.report('S10', `${session} expires, and ${client.host} is sure of it for another ${leftMs} ms`);
    }
  }

  /** S12: without faults, servers hold no connection that no client has. */
  async #judgeConnections(): Promise<void> {
    const { servers, hosts } = this.#ensemble;
    const held = (): number => servers.reduce((sum, { core }) => sum + (core?.view.connectionCount ?? 0), 0);
    const open = (): number =>
      this.#world.network.openEnds.filter((end) => end.servicePort === CLIENT_PORT && !hosts.includes(end.host)).length;
    if (await this.#world.until(() => held() <= open(), PROGRESS_MS)) return;
    this.#judges.report('S12', `servers hold ${held()} connections of clients, which have ${open()}`);
  }

  /** W10: once all clients have gone, no server holds a watch. */
  async #judgeWatches(): Promise<void> {
    const held = (): number =>
      this.#ensemble.servers.reduce((sum, { core }) => sum + (core?.view.watches.count ?? 0), 0);
    if (await this.#world.until(() => held() === 0, PROGRESS_MS)) return;
    this.#judges.report('W10', `servers hold ${held()} watches ${PROGRESS_MS} ms after their clients have gone`);
  }

  /** S13: without faults, a session that moves is answered over its new connection: to followers, the leader, observers, and back. */
  async #judgeMoves(): Promise<void> {
    const { leader, servers, membershipNow } = this.#ensemble;
    // A session of one server alone cannot move.
    if (leader === null || this.#traits.includes('local-sessions')) return;
    const members = membershipNow.members.map(({ serverId }) => serverId);
    const others = servers.filter((server) => server !== leader && members.includes(server.serverId));
    const visited = [...others, ...others.flatMap((other) => [leader, other]), leader];
    const client = await this.#connectProbe();
    const targets = visited.map(({ host, port }) => ({ host, port }));
    const broken = await findBrokenMove(client, targets, '/probe', PROGRESS_MS);
    if (broken !== null) this.#judges.report('S13', broken);
    await client.close();
  }

  /** As the server knows it that decides when they end. */
  #sessionCount(): number {
    return this.#ensemble.leader?.core?.view.sessions().length ?? 0;
  }

  /**
   * The leader is killed, and so is the next one before its epoch has begun; the first one is back by then. Those that are
   * left must agree on somebody, whatever they have voted for before.
   */
  async #succeedTwice(): Promise<void> {
    const { leader, membershipNow: membership } = this.#ensemble;
    const voters = votersOf(membership);
    const participants = this.#ensemble.servers.filter(({ serverId }) => voters.includes(serverId));
    const others = participants.filter((server) => server !== leader);
    const canSpare = (one: VirtualServer): boolean =>
      isQuorum(
        voters,
        membership.hierarchy,
        voters.filter((id) => id !== one.serverId),
      );
    if (leader === null || participants.length < 3 || !participants.every(canSpare)) return;
    leader.crash();
    const elected = (): VirtualServer | undefined => others.find(({ role }) => role === 'leading');
    await this.#world.until(() => elected() !== undefined, PROGRESS_MS, 1);
    const next = elected();
    if (next === undefined) {
      this.#judges.report('L1', `nobody is elected ${PROGRESS_MS} ms after the leader was killed`);
      return;
    }
    next.crash();
    leader.start();
    const hasLeader = (): boolean => this.#ensemble.leader !== null && this.#workload.isConnected;
    if (!(await this.#world.until(hasLeader, PROGRESS_MS, 20))) {
      this.#judges.report('L1', `nobody leads ${PROGRESS_MS} ms after the leader was killed, and the next one`);
    }
    next.start();
    await this.#world.until(() => this.#ensemble.isWhole, PROGRESS_MS, 20);
    await this.#within(this.#workload.rest(), 'L3', 'a client does not come back');
  }

  /** It may do everything. */
  #connectProbe(): Promise<Client> {
    return this.#world.connect('probe', {
      auth: [{ scheme: 'digest', auth: 'super:super' }],
      servers: this.#ensemble.connectString,
      sessionTimeoutMs: 6000,
      connectTimeoutMs: PROGRESS_MS,
    });
  }

  async #write(): Promise<void> {
    const client = await this.#connectProbe();
    await client.create('/probe', 'the end', { timeoutMs: PROGRESS_MS });
    await client.close();
  }

  /** Changes everything that is watched, while the clients do nothing. */
  async #stir(): Promise<void> {
    const client = await this.#connectProbe();
    const { mzxid } = await client.set('/probe', 'all is at rest', { timeoutMs: PROGRESS_MS });
    await this.#liftQuotas(client);
    this.#history.note({ kind: 'stir', phase: 'begins', zxid: Number(mzxid) });
    await stir(client, this.#workload.watchable, PROGRESS_MS);
    const last = await client.set('/probe', 'the very end', { timeoutMs: PROGRESS_MS });
    // Followers and observers learn of it a little later, and their clients from them.
    await this.#world.sleep(STIR_MS);
    this.#history.note({ kind: 'stir', phase: 'ends', zxid: Number(last.mzxid) });
    await client.close();
  }

  /** Quotas stay, and refuse nothing more. */
  async #liftQuotas(client: Client): Promise<void> {
    for (const path of this.#workload.quotaLimits) {
      if ((await client.exists(path)) !== null) await client.set(path, 'count=-1,bytes=-1');
    }
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
    const healedMs = this.#healedMs ?? this.#world.nowMs;
    return {
      virtualMs: this.#world.nowMs,
      events: this.#world.timeline.happenedCount,
      operations: operations.length,
      succeeded: operations.filter(({ result }) => result !== null).length,
      inDoubt: operations.filter(({ error }) => error?.outcome === 'unknown').length,
      watchEvents: entries.filter(({ kind }) => kind === 'told').length,
      faults: [...this.#nemesis.executed.values()].reduce((sum, count) => sum + count, 0),
      faultsByKind: this.#nemesis.executed,
      minutes: (healedMs - this.#faultsBeganMs) / 60_000,
      succeededUnderFaults: operations.filter(({ result, endMs }) => result !== null && (endMs ?? 0) < healedMs).length,
      fed: this.#judges.fed,
      epochs: this.#epochs.size,
      serverStarts: this.#serverStarts,
      recoveredMs: this.#recoveredMs,
    };
  }
}

export function votersOf({ members }: Membership): readonly number[] {
  return members.filter(({ role }) => role === 'participant').map(({ serverId }) => serverId);
}

function chooseHierarchy(seed: number, servers: number, groups: number | 'drawn' | undefined): Hierarchy | undefined {
  if (groups === undefined) return undefined;
  return groups === 'drawn'
    ? drawHierarchy(new SeededRandom(seed, 'hierarchy'), servers)
    : makeGroups(servers, Math.min(groups, servers));
}

const TAIL_LINES = 400;
/** Virtual milliseconds that a commit may take to any server, and from there to a program. */
const STIR_MS = 1000;
const RESTART_DELAY_MS = 400;
/**
 * Virtual milliseconds within which everything works again: several elections, each of them with a synchronization that
 * takes its whole limit, and the longest session timeout.
 */
const PROGRESS_MS = 30_000;
