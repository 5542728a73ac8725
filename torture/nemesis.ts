import { type Fault, type FaultKind, formatFault, LEADER, SeededRandom } from '@meerkat/simulator';
import type { DiskFault } from './messages.ts';
import { type Cut, formatCut, isServer, PORT_KINDS, type TortureNetwork } from './network.ts';
import type { RealEnsemble } from './real-ensemble.ts';
import type { ServerProcess } from './server-process.ts';

/** Injects the faults of a plan into processes, sockets and files, and heals them. */
export class Nemesis {
  readonly #ensemble: RealEnsemble;
  readonly #network: TortureNetwork;
  readonly #clients: readonly string[];
  readonly #say: (what: string) => void;
  /** Timers of faults that are due to start or end. */
  readonly #timers = new Set<NodeJS.Timeout>();
  /** The cuts in force, with the number of faults that need each. */
  readonly #cuts = new Map<string, { readonly cut: Cut; count: number }>();
  /** Makes a random membership change. */
  readonly #changeMembers: (random: SeededRandom) => void;
  /** By server id: the number of faults that keep it from being started. */
  readonly #down = new Map<number, number>();
  /** By server id: the number of faults that keep its disk from working. */
  readonly #diskless = new Map<number, number>();
  /** Servers with an injected disk error since their last start: they are allowed to exit. */
  readonly #hurt = new Set<ServerProcess>();
  /** Faults that were injected. A planned fault of the leader is skipped when there is no leader. */
  readonly counts = new Map<FaultKind, number>();
  #isOver = true;

  constructor(
    ensemble: RealEnsemble,
    network: TortureNetwork,
    clients: readonly string[],
    say: (what: string) => void,
    changeMembers: (random: SeededRandom) => void,
  ) {
    this.#ensemble = ensemble;
    this.#network = network;
    this.#clients = clients;
    this.#say = say;
    this.#changeMembers = changeMembers;
  }

  /** Schedules the faults, relative to now. */
  unleash(faults: readonly Fault[]): void {
    this.#isOver = false;
    for (const fault of faults) this.#after(fault.atMs, () => this.#inflict(fault));
  }

  /** Ends all faults: links and disks work, every server runs. */
  heal(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#cuts.clear();
    this.#down.clear();
    this.#diskless.clear();
    this.#network.setCuts([]);
    this.#network.delay?.(this.#allHosts, 0);
    for (const server of this.#ensemble.servers) {
      server.send({ kind: 'disk', trouble: { kind: 'none' } });
      server.resume();
    }
    this.#say('everything is healed');
    this.tend();
  }

  /** Called repeatedly after `heal`: restarts processes that have exited. */
  tend(): void {
    for (const server of this.#ensemble.servers) server.start();
  }

  onStarted(server: ServerProcess): void {
    this.#hurt.delete(server);
  }

  /** A server has exited by itself. @returns whether that is allowed because its disk had failed */
  onDied(server: ServerProcess): boolean {
    const wasHurt = this.#hurt.has(server);
    if (wasHurt && !this.#isOver) this.#after(REVIVE_MS, () => this.#revive(server));
    return wasHurt;
  }

  /** Whether a server is running, not paused, and its disk works. */
  isAble({ id, isRunning, isPaused }: ServerProcess): boolean {
    return isRunning && !isPaused && (this.#diskless.get(id) ?? 0) === 0;
  }

  /** Whether no cut affects the link between two servers. */
  areLinked(one: string, other: string): boolean {
    for (const { cut } of this.#cuts.values()) {
      if ((cut.from === one && cut.to === other) || (cut.from === other && cut.to === one)) return false;
    }
    return true;
  }

  get #allHosts(): readonly string[] {
    return [...this.#ensemble.servers.map(({ host }) => host), ...this.#clients];
  }

  #inflict(fault: Fault): void {
    const random = new SeededRandom(fault.chance, fault.kind);
    const hosts = fault.hosts.flatMap((host) => this.#resolve(host));
    const others = fault.others.filter((host) => !hosts.includes(host));
    const servers = hosts.flatMap((host) => this.#ensemble.server(host) ?? []);
    if (hosts.length === 0 && fault.hosts.length > 0) return;
    this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1);
    this.#say(formatFault({ ...fault, hosts, others }));
    switch (fault.kind) {
      case 'crash':
        for (const server of servers) this.#takeDown(server, fault.durationMs);
        return;
      case 'restart-all':
        for (const server of servers) this.#takeDown(server, random.between(0, fault.durationMs));
        return;
      case 'stop':
        for (const server of servers) this.#stop(server, fault.durationMs);
        return;
      case 'pause':
        for (const server of servers) {
          server.pause();
          this.#after(fault.durationMs, () => server.resume());
        }
        return;
      case 'partition':
      case 'isolate':
      case 'bridge':
        this.#cut(fault.durationMs, [...pairsOf(hosts, others), ...pairsOf(others, hosts)]);
        return;
      case 'one-way':
        this.#cut(fault.durationMs, pairsOf(hosts, others));
        return;
      case 'port':
        for (const { host } of servers) this.#cut(fault.durationMs, this.#cutsOfPort(host, random));
        return;
      case 'slow': {
        this.#network.delay?.(hosts, random.between(1, 100));
        this.#after(fault.durationMs, () => this.#network.delay?.(hosts, 0));
        return;
      }
      case 'members':
        this.#changeMembers(random);
        return;
      case 'break':
        this.#network.breakStreams?.(hosts, () => random.chance(0.5));
        return;
      default:
        for (const server of servers) this.#troubleDisk(server, fault, random);
    }
  }

  /** Kills a server with SIGKILL and restarts it later. */
  #takeDown(server: ServerProcess, durationMs: number): void {
    this.#down.set(server.id, (this.#down.get(server.id) ?? 0) + 1);
    const killed = server.kill();
    this.#after(durationMs, async () => {
      await killed;
      this.#down.set(server.id, (this.#down.get(server.id) ?? 1) - 1);
      this.#revive(server);
    });
  }

  /** Shuts a server down with SIGTERM. If it does not exit in time, for instance because its disk hangs, kills it. */
  #stop(server: ServerProcess, durationMs: number): void {
    server.terminate();
    this.#after(durationMs + STOP_MS, async () => {
      await server.kill();
      this.#revive(server);
    });
  }

  #revive(server: ServerProcess): void {
    if (!this.#isOver && (this.#down.get(server.id) ?? 0) === 0) server.start();
  }

  #troubleDisk(server: ServerProcess, fault: Fault, random: SeededRandom): void {
    const trouble = drawTrouble(fault.kind, random);
    if (trouble === null) return;
    if (trouble.kind === 'error' || trouble.kind === 'full') this.#hurt.add(server);
    server.send({ kind: 'disk', trouble });
    // An error happens once and then is over; it has no duration.
    if (trouble.kind === 'error') return;
    const hinders = trouble.kind !== 'slow';
    if (hinders) this.#diskless.set(server.id, (this.#diskless.get(server.id) ?? 0) + 1);
    this.#after(fault.durationMs, () => {
      if (hinders) this.#diskless.set(server.id, (this.#diskless.get(server.id) ?? 1) - 1);
      server.send({ kind: 'disk', trouble: { kind: 'none' } });
    });
  }

  #cutsOfPort(host: string, random: SeededRandom): readonly Cut[] {
    const kind = random.pick(PORT_KINDS);
    const port = { host, kind };
    const others = this.#allHosts.filter((other) => other !== host && isServer(other) === (kind !== 'client'));
    return others.flatMap((other) => [
      { from: other, to: host, port },
      { from: host, to: other, port },
    ]);
  }

  #cut(durationMs: number, cuts: readonly Cut[]): void {
    for (const cut of cuts) {
      const known = this.#cuts.get(formatCut(cut));
      if (known === undefined) this.#cuts.set(formatCut(cut), { cut, count: 1 });
      else known.count++;
    }
    this.#onCutsChanged();
    this.#after(durationMs, () => {
      for (const cut of cuts) {
        const known = this.#cuts.get(formatCut(cut));
        if (known !== undefined && --known.count === 0) this.#cuts.delete(formatCut(cut));
      }
      this.#onCutsChanged();
    });
  }

  #onCutsChanged(): void {
    this.#network.setCuts([...this.#cuts.values()].map(({ cut }) => cut));
  }

  #resolve(host: string): readonly string[] {
    if (host !== LEADER) return [host];
    const { leader } = this.#ensemble;
    return leader === null ? [] : [leader.host];
  }

  #after(ms: number, what: () => void | Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#isOver) void what();
    }, ms);
    this.#timers.add(timer);
  }
}

/** Milliseconds until a server that exited because of a disk error is restarted. */
const REVIVE_MS = 500;
/** Milliseconds that a server may take to exit, in addition to the duration of the fault. */
const STOP_MS = 2000;

/** Every pair of a server and another host. Clients do not talk to each other. */
function pairsOf(hosts: readonly string[], others: readonly string[]): readonly Cut[] {
  return hosts.flatMap((from) =>
    others.flatMap((to): readonly Cut[] => (isServer(from) || isServer(to) ? [{ from, to, port: null }] : [])),
  );
}

function drawTrouble(kind: FaultKind, random: SeededRandom): DiskFault | null {
  switch (kind) {
    case 'disk-slow':
      return { kind: 'slow', maxMs: random.between(5, 300) };
    case 'disk-stall':
      return { kind: 'stall' };
    case 'disk-error':
      return { kind: 'error', skip: random.between(0, 5), takesPlace: random.chance(0.5) };
    case 'disk-full':
      return { kind: 'full' };
    default:
      return null;
  }
}
