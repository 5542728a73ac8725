import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, connect } from '@meerkat/client';
import {
  type FaultKind,
  History,
  planChanges,
  planFaults,
  SeededRandom,
  type Violation,
  Workload,
  type WorkloadHost,
} from '@meerkat/simulator';
import { makeFinalState, readTree } from './final-state.ts';
import { formatEntry, linesAbout } from './history-text.ts';
import { emptyAttic, readLogsOfServer } from './log-files.ts';
import type { Inspection } from './messages.ts';
import { Nemesis } from './nemesis.ts';
import type { TortureNetwork } from './network.ts';
import { Operator } from './operator.ts';
import { MEMBERS, PROXY_FAULTS, REAL_FAULTS, type TortureOptions } from './options.ts';
import { QuorumWatch } from './quorum-watch.ts';
import { RealEnsemble } from './real-ensemble.ts';
import { type Evidence, RunChecker } from './run-checker.ts';
import { formatTime, isWrite, RunTotals, shortfallsOf, tableOf } from './run-totals.ts';
import type { Screen } from './screen.ts';
import { readEstablished, type ServerFiles, writeServerFiles } from './server-files.ts';
import type { ServerProcess } from './server-process.ts';
import { TappedTransport } from './tapped-transport.ts';

/** Milliseconds of faults per round. Checking after each round keeps memory independent of the run's length. */
const ROUND_MS = 120_000;
/**
 * Milliseconds within which the ensemble must work after healing. It takes seconds; the rest is tolerance for a busy
 * machine.
 */
const PROGRESS_MS = 120_000;
const STOP_MS = 20_000;
const LOOK_MS = 50;
const LINES_MAX = 60;

/**
 * Runs an ensemble of processes and clients through rounds of faults. At the end of each round all faults are healed,
 * the ensemble must work again, and the history is checked.
 */
export class Torture {
  readonly totals: RunTotals = new RunTotals();
  readonly violations: Violation[] = [];
  readonly #options: TortureOptions;
  readonly #network: TortureNetwork;
  readonly #directory: string;
  readonly #screen: Screen;
  readonly #files: readonly ServerFiles[];
  readonly #ensemble: RealEnsemble;
  readonly #nemesis: Nemesis;
  readonly #operator: Operator;
  readonly #checker = new RunChecker();
  #quorumWatch = new QuorumWatch();
  /** Number of history entries already scanned for writes. */
  #looked = 0;
  readonly #clients: readonly string[];
  readonly #startMs = performance.now();
  #history: History;
  #isInterrupted = false;
  #isStopping = false;
  #operationsBefore = 0;
  #last = 'nothing has happened yet';

  constructor(options: TortureOptions, network: TortureNetwork, directory: string, screen: Screen) {
    this.#options = options;
    this.#network = network;
    this.#directory = directory;
    this.#screen = screen;
    this.#clients = Array.from({ length: options.clients }, (_, i) => `c${i + 1}`);
    this.#history = this.#makeHistory();
    this.#files = writeServerFiles(directory, network.places);
    this.#ensemble = new RealEnsemble(this.#files, network, {
      onMessage: (server, message) => {
        if (message.kind === 'digest-mismatch') {
          this.#report('Z17', `at 0x${message.zxid.toString(16)} the tree is not the leader's`, [server.id]);
        } else if (message.kind === 'established') {
          this.totals.epochs.add(message.epoch);
          this.#say(`${server.host} leads epoch ${message.epoch}`);
        }
      },
      onStarted: (server) => {
        this.totals.serverStarts++;
        this.#nemesis.onStarted(server);
        this.#say(`${server.host} starts`);
      },
      onDied: (server, reason) => this.#onDied(server, reason),
    });
    const say = (what: string): void => this.#say(what);
    this.#operator = new Operator(network, say);
    const changeMembers = (random: SeededRandom): void => {
      void this.#operator.change(random, this.#ensemble.leader?.id ?? null);
    };
    this.#nemesis = new Nemesis(this.#ensemble, network, this.#clients, say, changeMembers);
    this.totals.faults = this.#nemesis.counts;
  }

  /** Asks it to heal, check what was done so far, and end. */
  interrupt(): void {
    this.#isInterrupted = true;
  }

  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  async run(): Promise<void> {
    try {
      this.#ensemble.start();
      await this.#until('all servers serve under one leader', 'L1', () => this.#ensemble.isWhole);
      await this.#within('the first write goes through', 'L1', this.#write('/w', ''));
      const wholeMs = this.#options.minutes * 60_000;
      for (let round = 1; !this.#isOver && wholeMs - this.totals.elapsedMs >= 1; round++) {
        await this.#runRound(round, Math.min(ROUND_MS, wholeMs - this.totals.elapsedMs));
      }
    } finally {
      this.#isStopping = true;
      await this.#ensemble.stop(STOP_MS);
    }
  }

  /** The final report, with the details needed to find the cause. */
  report(): string {
    const { violations } = this;
    const table = tableOf(this.totals, violations.length);
    const width = Math.max(...table.map(([label]) => label.length));
    const lines = table.map(([label, figure]) => `${label.padEnd(width)}  ${figure}`);
    const [first] = violations;
    if (first !== undefined) {
      const path = join(this.#directory, 'history.txt');
      writeFileSync(path, this.#history.entries.map((entry) => `${formatEntry(entry)}\n`).join(''));
      lines.push('', `the last lines of the history, up to the broken promise (all of it: ${path}):`);
      lines.push(...linesAbout(first, this.#history.entries, LINES_MAX), '');
      lines.push(...violations.map(({ invariant, message }) => `${invariant}: ${message}`));
      lines.push('', `seed ${this.#options.seed}; data and logs of the servers: ${this.#directory}`);
    } else if (this.#options.keeps) lines.push('', `data and logs of the servers: ${this.#directory}`);
    lines.push(...this.shortfalls.map((shortfall) => `too little: ${shortfall}`));
    return lines.join('\n');
  }

  /** Removes the files of a successful run. */
  cleanUp(): void {
    if (this.violations.length === 0 && !this.#options.keeps) rmSync(this.#directory, { recursive: true, force: true });
  }

  /** What the run did too little of; empty after an interrupt. */
  get shortfalls(): readonly string[] {
    return this.#isInterrupted ? [] : shortfallsOf(this.totals, this.#kinds);
  }

  get #isOver(): boolean {
    return this.#isInterrupted || this.violations.length > 0;
  }

  async #runRound(round: number, durationMs: number): Promise<void> {
    const { seed, clients } = this.#options;
    this.#history = this.#makeHistory();
    const workload = new Workload(this.#makeHost(`workload ${round}`), this.#history, {
      clients,
      operationsPerSecond: OPERATIONS_PER_SECOND / clients,
      sessionTimeoutMinMs: 1500,
      sessionTimeoutMaxMs: 10_000,
      keys: KEYS,
    });
    const random = new SeededRandom(seed, `nemesis ${round}`);
    const kinds = this.#kinds;
    const faults = planFaults(random, {
      pauseMs: PAUSE_MIN_MS * (PAUSE_MAX_MS / PAUSE_MIN_MS) ** random.fraction(),
      kinds: kinds.filter((kind) => kind !== MEMBERS),
      durationMs,
      servers: this.#ensemble.servers.map(({ host }) => host),
      clients: this.#clients,
    });
    const changes = kinds.includes(MEMBERS) ? planChanges(new SeededRandom(seed, `members ${round}`), durationMs) : [];
    const beganMs = performance.now();
    const elapsedMs = (): number => performance.now() - beganMs;
    this.#quorumWatch = new QuorumWatch();
    this.#looked = 0;
    workload.start();
    this.#nemesis.unleash([...faults, ...changes]);
    while (elapsedMs() < durationMs && !this.#isOver) {
      await sleep(Math.min(LOOK_MS, durationMs - elapsedMs()));
      this.#lookAtQuorum();
      this.#showProgress(round, elapsedMs());
    }
    this.#noteQuorum(round);
    this.totals.elapsedMs += elapsedMs();
    await this.#conclude(round, workload);
    this.totals.addRound(this.#history);
    this.#operationsBefore = this.totals.operations;
    this.totals.txns = this.#checker.txns;
    this.totals.memberChanges = this.#operator.changes;
  }

  #lookAtQuorum(): void {
    const { entries } = this.#history;
    for (; this.#looked < entries.length; this.#looked++) {
      const entry = entries[this.#looked]!;
      if (entry.kind !== 'completed' || entry.operation.result === null) continue;
      if (isWrite(entry.operation.request)) this.#quorumWatch.onWrite(entry.atMs);
    }
    const { servers, voters } = this.#ensemble;
    const byId = new Map(servers.map((server) => [server.id, server]));
    this.#quorumWatch.look(performance.now() - this.#startMs, {
      voters,
      isAble: (id) => this.#nemesis.isAble(byId.get(id)!),
      areLinked: (one, other) => this.#nemesis.areLinked(byId.get(one)!.host, byId.get(other)!.host),
    });
  }

  #noteQuorum(round: number): void {
    const { longestMs, longest } = this.#quorumWatch;
    if (longestMs <= this.totals.longestAbleMs) return;
    this.totals.longestAbleMs = longestMs;
    this.totals.longestAble = `${longest}, round ${round}`;
  }

  /** Heals all faults, requires that the ensemble works, and checks the round. */
  async #conclude(round: number, workload: Workload): Promise<void> {
    const healedMs = performance.now();
    this.#nemesis.heal();
    const holds = (what: string, invariant: string, check: () => boolean): Promise<boolean> =>
      this.#until(what, invariant, () => {
        this.#nemesis.tend();
        return check();
      });
    if (!(await holds('there is a leader', 'L1', () => this.#ensemble.leader !== null))) return;
    let isComplete = false;
    if (this.#kinds.includes(MEMBERS)) {
      const { ids } = this.#ensemble;
      void this.#operator
        .restore(() => this.violations.length > 0, ids[round % ids.length]!)
        .then(() => {
          isComplete = true;
        });
    } else isComplete = true;
    if (!(await holds('every server is a participant', 'L1', () => isComplete))) return;
    if (!(await holds('every client has a connection', 'L3', () => workload.isConnected))) return;
    if (!(await this.#within('every request of a client is answered', 'L3', workload.stop()))) return;
    if (
      !(await this.#within('a write goes through', 'L1', this.#write(`/probe-${round}`, `the end of round ${round}`)))
    )
      return;
    if (!(await holds('all servers are at rest', 'L2', () => this.#ensemble.isAtRest))) return;
    this.totals.longestRecoveryMs = Math.max(this.totals.longestRecoveryMs, performance.now() - healedMs);
    const gathering = this.#gather();
    if (!(await this.#within('every server shows what it has', 'L2', gathering))) return;
    const evidence = await gathering;
    const checkedMs = performance.now();
    this.violations.push(...this.#checker.check(evidence));
    this.totals.longestCheckMs = Math.max(this.totals.longestCheckMs, performance.now() - checkedMs);
    if (this.violations.length === 0) for (const files of this.#files) emptyAttic(files);
  }

  async #write(path: string, data: string): Promise<void> {
    const client = await this.#connectTo(this.#ensemble.ids);
    await client.create(path, data, { timeoutMs: PROGRESS_MS });
    await client.close();
  }

  /** Collects the state of all servers, as clients read it and as the servers report it, and their logs. */
  async #gather(): Promise<Evidence> {
    const trees = new Map<number, Awaited<ReturnType<typeof readTree>>>();
    for (const { id } of this.#ensemble.servers) trees.set(id, await readTree(this.#network, id, PROGRESS_MS));
    // Reading created sessions, which are closed now. The periodic status of the servers may be older than that.
    let inspections = await this.#inspect();
    while (!isAtRest(inspections)) {
      await sleep(LOOK_MS);
      inspections = await this.#inspect();
    }
    return {
      history: this.#history,
      logs: this.#files.map((files) => readLogsOfServer(files, this.#checker.behind)),
      established: readEstablished(this.#files),
      finalStates: inspections.map(({ server, inspection }) =>
        makeFinalState(server, inspection, trees.get(server) ?? []),
      ),
      digests: inspections.map(({ server, inspection }) => ({ server, digests: new Map(inspection.digests) })),
    };
  }

  async #inspect(): Promise<readonly Inspected[]> {
    const inspections: Inspected[] = [];
    for (const server of this.#ensemble.servers) {
      const inspection = await server.inspect();
      if (inspection === null)
        throw new Error(`server ${server.id} does not say what it holds: ${this.#ensemble.describe()}`);
      inspections.push({ server: server.id, inspection });
    }
    return inspections;
  }

  get #kinds(): readonly FaultKind[] {
    const kinds: readonly FaultKind[] = this.#options.faults ?? REAL_FAULTS;
    return this.#network.delay === null ? kinds.filter((kind) => !PROXY_FAULTS.includes(kind)) : kinds;
  }

  #makeHistory(): History {
    return new History(() => performance.now() - this.#startMs);
  }

  #makeHost(label: string): WorkloadHost {
    return {
      random: new SeededRandom(this.#options.seed, label),
      connect: (client, options, makeTap) =>
        connect({
          ...options,
          servers: this.#network.connectString(Number(client.slice(1)), this.#ensemble.ids),
          transport: new TappedTransport((host, port) => this.#network.serverAt(host, port), makeTap),
        }),
      sleep,
      fail: (error) => this.fail(error),
    };
  }

  #connectTo(ids: readonly number[]): Promise<Client> {
    const servers = this.#network.connectString(1, ids);
    return connect({ servers, sessionTimeoutMs: 10_000, connectTimeoutMs: PROGRESS_MS });
  }

  #onDied(server: ServerProcess, reason: string): void {
    const isFree = this.#nemesis.onDied(server);
    this.#say(`${server.host} ${reason}`);
    if (isFree || this.#isStopping) return;
    this.#report('A2', `server ${server.id} ${reason} (${server.files.log})`, [server.id]);
  }

  /** Waits for a condition; a timeout is a violation. @returns whether it held in time */
  async #until(what: string, invariant: string, check: () => boolean): Promise<boolean> {
    const endMs = performance.now() + PROGRESS_MS;
    while (!check()) {
      if (this.violations.length > 0) return false;
      if (performance.now() >= endMs) {
        this.#report(invariant, `${what}: not within ${PROGRESS_MS / 1000} s; ${this.#ensemble.describe()}`, []);
        return false;
      }
      await sleep(LOOK_MS);
    }
    return true;
  }

  /** Awaits work; a failure or timeout is a violation. @returns whether it succeeded */
  async #within(what: string, invariant: string, work: Promise<unknown>): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`not within ${PROGRESS_MS / 1000} s`)), PROGRESS_MS);
    });
    try {
      await Promise.race([work, late]);
      return true;
    } catch (error) {
      this.#report(invariant, `${what}: ${(error as Error).message}; ${this.#ensemble.describe()}`, []);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reports an unhandled error, of a client or of this program. */
  fail(error: unknown): void {
    this.#report('A1', error instanceof Error ? (error.stack ?? error.message) : String(error), []);
  }

  #report(invariant: string, message: string, servers: readonly number[]): void {
    this.violations.push({ invariant, message, servers, atMs: performance.now() - this.#startMs });
    this.#screen.print(`${invariant}: ${message}`);
  }

  #say(what: string): void {
    this.#last = what;
    this.#history.note({ kind: 'fault', what });
  }

  #showProgress(round: number, elapsedMs: number): void {
    this.#screen.update(() => {
      const { minutes } = this.#options;
      const operations = this.#operationsBefore + this.#history.operations.length;
      const faults = [...this.#nemesis.counts.values()].reduce((sum, count) => sum + count, 0);
      const leader = this.#ensemble.leader?.host ?? 'none';
      const time = `${formatTime(this.totals.elapsedMs + elapsedMs)} of ${formatTime(minutes * 60_000)}`;
      return `${time}, round ${round}: ${operations} operations, ${faults} faults, epoch ${Math.max(0, ...this.totals.epochs)}, ${leader} leads; ${this.#last}`;
    });
  }
}

/** A server's answer to an inspection. */
interface Inspected {
  readonly server: number;
  readonly inspection: Inspection;
}

/** Whether all servers, inspected one after the other, are at one zxid and no session is left to expire. */
function isAtRest(inspections: readonly Inspected[]): boolean {
  const [first] = inspections;
  return inspections.every(
    ({ inspection }) => inspection.lastZxid === first?.inspection.lastZxid && inspection.sessions.length === 0,
  );
}

/** Mean pause between two faults, drawn for each round, so that some rounds are storms. */
const PAUSE_MIN_MS = 800;
const PAUSE_MAX_MS = 8000;
/** Rate of all clients together, while they get replies. */
const OPERATIONS_PER_SECOND = 160;
/** Number of contended znodes. */
const KEYS = 8;

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
