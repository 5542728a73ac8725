import { isQuorum } from './checkers/quorum.ts';
import { readServerDisk } from './disk-reader.ts';
import { type Fault, type FaultKind, formatFault, LEADER } from './fault.ts';
import type { LinkQuality } from './link-quality.ts';
import { changeMembers } from './member-changes.ts';
import { SeededRandom } from './seeded-random.ts';
import { portKindOf, QUORUM_PORT, type VirtualEnsemble } from './virtual-ensemble.ts';
import type { VirtualServer } from './virtual-server.ts';
import type { VirtualWorld } from './virtual-world.ts';

/**
 * Carries out a plan of faults, and heals what it has done.
 *
 * A fault that would lose committed data is skipped: a disk is only wiped, and data only rots, while every other
 * participant has everything that its server may have acknowledged.
 */
export class Nemesis {
  readonly #world: VirtualWorld;
  readonly #ensemble: VirtualEnsemble;
  readonly #onFault: (what: string) => void;
  /** Directions that faults have cut, and how many of them. */
  readonly #cuts: Map<string, number> = new Map();
  /** Servers whose data has rotted: they may refuse to start with what they have. */
  readonly #rotten: Set<VirtualServer> = new Set();
  /** Servers whose disk has failed, or may have: they may exit by themselves. */
  readonly #hurt: Set<VirtualServer> = new Set();
  /** Programs at the quorum ports of servers. */
  readonly #strangers: Set<() => void> = new Set();
  readonly #executed: Map<FaultKind, number> = new Map();
  /** Servers whose joins break, and the generators that decide when. */
  readonly #joins: Map<VirtualServer, SeededRandom> = new Map();
  /** Operators that are changing the members. */
  #operatorCount = 0;
  #isOver = false;

  constructor(world: VirtualWorld, ensemble: VirtualEnsemble, onFault: (what: string) => void = () => {}) {
    this.#world = world;
    this.#ensemble = ensemble;
    this.#onFault = onFault;
    world.watch({
      onTrace: (server, event) => {
        if (event.kind === 'catching-up') this.#maybeBreakJoin(server, event.mode);
      },
    });
  }

  /** Starts the plan: from now on, faults happen at their times. */
  unleash(faults: readonly Fault[]): void {
    for (const fault of faults) {
      this.#world.timeline.plan(fault.atMs, () => {
        if (!this.#isOver && this.#inflict(fault)) this.#count(fault.kind);
      });
    }
  }

  #count(kind: FaultKind): void {
    this.#executed.set(kind, (this.#executed.get(kind) ?? 0) + 1);
  }

  /** How many faults of each kind have changed something: a crash of a process that runs, a cut between hosts that are there. */
  get executed(): ReadonlyMap<FaultKind, number> {
    return this.#executed;
  }

  /** Ends all faults for good: links, disks and clocks work, every server runs. */
  heal(): void {
    this.#isOver = true;
    this.#say('everything is healed');
    this.#cuts.clear();
    this.#world.network.heal();
    for (const leave of this.#strangers) leave();
    for (const server of this.#ensemble.servers) {
      server.healDisk();
      server.clock.setDrift(0);
      server.resume();
      this.#revive(server);
    }
  }

  /** Restarts a server that exited by itself, with an empty disk if its data made it exit. */
  #revive(server: VirtualServer): void {
    if (server.isRunning) return;
    if (this.#rotten.has(server) && server.failure !== null) {
      // It stays down until the others have what it had.
      if (!this.#isDispensable(server) && !(this.#isOver && this.#hasNothingOfItsOwn(server))) return;
      this.#rotten.delete(server);
      server.wipe();
    }
    server.start();
  }

  /** Called repeatedly after `heal`: restarts servers that still exit by themselves. */
  tend(): void {
    for (const server of this.#ensemble.servers) this.#revive(server);
  }

  /** Everything is healed, and no operator is still changing the members, which takes a few virtual seconds. */
  get isDone(): boolean {
    return this.#isOver && this.#operatorCount === 0;
  }

  /** Whether a fault hit the server's disk, so that it may refuse to continue. */
  hasHurtDisk(server: VirtualServer): boolean {
    return this.#hurt.has(server);
  }

  /** @returns whether the fault had an effect */
  #inflict(fault: Fault): boolean {
    const random = new SeededRandom(fault.chance, fault.kind);
    const hosts = fault.hosts.flatMap((host) => this.#resolve(host));
    const servers = hosts.flatMap((host) => this.#ensemble.server(host) ?? []);
    const others = fault.others.filter((host) => !hosts.includes(host));
    const { network } = this.#world;
    this.#say(formatFault({ ...fault, hosts, others }));
    switch (fault.kind) {
      case 'crash':
      case 'power':
      case 'stop':
      case 'restart-all':
      case 'pause':
        return this.#end(servers, fault, random);
      case 'wipe':
        return servers.filter((server) => this.#wipe(server, fault)).length > 0;
      case 'rot':
        return servers.filter((server) => this.#rot(server, fault, random)).length > 0;
      case 'partition':
      case 'isolate':
      case 'bridge':
        return this.#cut(fault, pairsOf(hosts, others, true));
      case 'one-way':
        return this.#cut(fault, pairsOf(hosts, others, false));
      case 'flap':
        return this.#flap(fault, pairsOf(hosts, others, true), random);
      case 'port': {
        const { addresses } = this.#ensemble.membership.members[0]!;
        const port = random.pick(addresses.flatMap(({ quorumPort, electionPort }) => [quorumPort, electionPort]));
        for (const host of hosts) {
          network.blockPort(host, port);
          this.#later(fault, () => network.unblockPort(host, port));
        }
        return hosts.length > 0;
      }
      case 'occupy':
        for (const server of servers) this.#occupy(server, fault);
        return servers.length > 0;
      case 'black-hole':
        for (const host of hosts) {
          network.dropConnects(host);
          this.#later(fault, () => network.takeConnects(host));
        }
        return hosts.length > 0;
      case 'slow': {
        const quality = drawSlowness(random);
        const pairs = pairsOf(hosts, others, random.chance(0.7));
        for (const [from, to] of pairs) {
          network.slowDown(from, to, quality);
          this.#later(fault, () => network.speedUp(from, to));
        }
        return pairs.length > 0;
      }
      case 'break': {
        const broken = [...network.openEnds].filter(({ host }) => hosts.includes(host) && random.chance(0.5));
        for (const end of broken) end.breakStream();
        return broken.length > 0;
      }
      // Counted when they break a join.
      case 'break-joins':
        for (const server of servers) this.#joins.set(server, random);
        this.#later(fault, () => this.#joins.clear());
        return false;
      case 'skew':
        for (const host of hosts) this.#skew(host, fault, random);
        return hosts.length > 0;
      case 'io-thread':
        return servers.filter((server) => server.killThread()).length > 0;
      case 'members':
        this.#changeMembers(random).catch((error: Error) => this.#world.fail(error));
        return true;
      default:
        for (const server of servers) this.#hurtDisk(server, fault, random);
        return servers.length > 0;
    }
  }

  async #changeMembers(random: SeededRandom): Promise<void> {
    this.#operatorCount++;
    await changeMembers(this.#world, this.#ensemble, random);
    this.#operatorCount--;
  }

  /** A server loses its leader while it synchronizes: while it truncates its log, installs a snapshot, or reads txns. */
  #maybeBreakJoin(server: VirtualServer, mode: 'diff' | 'trunc' | 'snap'): void {
    const random = this.#joins.get(server);
    if (random === undefined || this.#isOver || random.chance(0.3)) return;
    const durationMs = JOIN_MS_MAX[mode] ** random.fraction();
    this.#later({ durationMs }, () => {
      const isOfJoin = ({ host, servicePort }: { readonly host: string; readonly servicePort: number }): boolean =>
        host === server.host && portKindOf(servicePort) === 'quorum';
      const ends = this.#world.network.openEnds.filter(isOfJoin);
      this.#say(`${server.host} loses its leader ${durationMs.toFixed(1)} ms after it began to catch up`);
      for (const end of ends) end.breakStream();
      if (ends.length > 0) this.#count('break-joins');
    });
  }

  /** Another program takes the quorum port while the server is down; the server then starts without it. */
  #occupy(server: VirtualServer, fault: Fault): void {
    const { network } = this.#world;
    server.crash();
    if (!network.isListening(server.host, QUORUM_PORT)) {
      const leave = network.listen(server.host, QUORUM_PORT, (end) => end.destroy());
      this.#strangers.add(leave);
      this.#later(fault, leave);
    }
    server.start();
  }

  /** Kills or pauses processes for a while. */
  #end(servers: readonly VirtualServer[], fault: Fault, random: SeededRandom): boolean {
    const isEffective = servers.some(({ isRunning, isPaused }) => isRunning && (fault.kind !== 'pause' || !isPaused));
    const losesPower = fault.kind === 'power' || (fault.kind === 'restart-all' && random.chance(0.5));
    for (const server of servers) {
      switch (fault.kind) {
        case 'pause':
          server.pause();
          this.#later(fault, () => server.resume());
          break;
        case 'stop':
          server.stop();
          this.#later(fault, () => {
            // It may still be shutting down.
            server.crash();
            server.start();
          });
          break;
        case 'restart-all':
          server.crash({ losesPower });
          this.#later({ durationMs: random.between(0, fault.durationMs) }, () => server.start());
          break;
        default:
          server.crash({ losesPower });
          this.#later(fault, () => server.start());
      }
    }
    return isEffective;
  }

  #wipe(server: VirtualServer, fault: Fault): boolean {
    if (!this.#isDispensable(server)) {
      this.#say(`${server.host} keeps its disk: no other server has all of it`);
      return false;
    }
    server.wipe();
    this.#later(fault, () => server.start());
    return true;
  }

  #hurtDisk(server: VirtualServer, fault: Fault, random: SeededRandom): void {
    if (fault.kind !== 'disk-slow' && fault.kind !== 'disk-stall') this.#hurt.add(server);
    switch (fault.kind) {
      case 'disk-slow': {
        const worstMs = random.between(5, 300);
        server.setDiskQuality({ effectMinMs: 0.1, effectMaxMs: 2, syncMinMs: 1, syncMaxMs: worstMs });
        this.#later(fault, () => server.setDiskQuality(null));
        return;
      }
      case 'disk-stall':
        server.stallDisk(fault.durationMs);
        return;
      case 'disk-error':
        server.failDisk({ operation: random.pick(MAY_FAIL), code: 'EIO', skip: random.between(0, 5) });
        return;
      case 'disk-broken':
        server.failDisk({ operation: random.pick(MAY_FAIL), code: 'EIO', isLasting: true });
        this.#later(fault, () => server.healDisk());
        return;
      case 'disk-full':
        server.disk.fill();
        this.#later(fault, () => server.healDisk());
        return;
      default:
    }
  }

  /** Flips a bit in a file of a server that others can replace; its next start notices it. */
  #rot(server: VirtualServer, fault: Fault, random: SeededRandom): boolean {
    if (!this.#isDispensable(server) || this.#rotten.size > 0) {
      this.#say(`the data of ${server.host} does not rot: no other server has all of it`);
      return false;
    }
    const { logDirectory, snapshotDirectory } = server.options;
    const directories = new Set([logDirectory, snapshotDirectory]);
    const paths = [...directories].flatMap((directory) =>
      server.disk.names(directory).map((name) => `${directory}/${name}`),
    );
    // In Apache's format an epoch file is just a decimal number: with another digit it is another valid promise, which no
    // reader can detect.
    const perishable = paths.filter((one) => !one.includes('Epoch'));
    if (perishable.length === 0) {
      this.#say(`${server.host} has no file that could rot`);
      return false;
    }
    const path = random.pick(perishable);
    const size = server.disk.peek(path)?.length ?? 0;
    server.crash();
    // Files are preallocated: the written part is at the beginning.
    const position = Math.floor(size * random.fraction() ** 3);
    const hasRotted = size > 0 && server.disk.flipBit(path, position, random.between(0, 7));
    if (hasRotted) {
      this.#say(`${path} of ${server.host} has rotted at ${position}`);
      this.#rotten.add(server);
      this.#hurt.add(server);
    }
    this.#later(fault, () => this.#replaceRotten(server));
    return hasRotted;
  }

  /** Retries while the server refuses to start with its data, as an operator would. */
  #replaceRotten(server: VirtualServer): void {
    this.#revive(server);
    if (this.#rotten.has(server)) this.#later({ durationMs: 250 }, () => this.#replaceRotten(server));
  }

  #skew(host: string, fault: Fault, random: SeededRandom): void {
    const clock = this.#world.clockOf(host);
    clock.setDrift(random.between(-50_000, 50_000));
    if (random.chance(0.5)) clock.jumpWall(random.between(-3_600_000, 3_600_000));
    this.#later(fault, () => clock.setDrift(0));
  }

  #flap(fault: Fault, pairs: readonly (readonly [string, string])[], random: SeededRandom): boolean {
    for (let atMs = 0; atMs < fault.durationMs; ) {
      const downMs = random.between(1, 150);
      this.#later({ durationMs: atMs }, () => this.#cut({ durationMs: downMs }, pairs));
      atMs += downMs + random.between(20, 400);
    }
    return pairs.length > 0;
  }

  #cut(fault: { readonly durationMs: number }, pairs: readonly (readonly [string, string])[]): boolean {
    const { network } = this.#world;
    for (const [from, to] of pairs) {
      const key = `${from}>${to}`;
      this.#cuts.set(key, (this.#cuts.get(key) ?? 0) + 1);
      network.block(from, to);
    }
    this.#later(fault, () => {
      for (const [from, to] of pairs) {
        const key = `${from}>${to}`;
        const left = (this.#cuts.get(key) ?? 1) - 1;
        this.#cuts.set(key, left);
        if (left === 0) network.unblock(from, to);
      }
    });
    return pairs.length > 0;
  }

  /**
   * All other voters are up and form a quorum, in one epoch, and have applied everything on this server's disk: what a voter
   * has applied is durable there. Whether it was committed does not matter, as its ACK may be in flight.
   */
  #isDispensable(server: VirtualServer): boolean {
    const { leader, membershipNow: membership, spares } = this.#ensemble;
    const participants = [...this.#ensemble.participants, ...spares];
    if (leader === null || leader === server) return false;
    const voters = membership.members.flatMap(({ role, serverId }) => (role === 'participant' ? [serverId] : []));
    const others = voters.filter((serverId) => serverId !== server.serverId);
    if (!isQuorum(voters, membership.hierarchy, others)) return false;
    const lastZxid = Math.max(leader.core?.view.lastZxid ?? 0, lastZxidOf(server));
    return participants.every(
      (other) =>
        other === server ||
        (other.isServing && other.epoch === leader.epoch && (other.core?.view.lastZxid ?? 0) >= lastZxid),
    );
  }

  /**
   * All others have as much on their disks. Decides where there is no quorum without this server: a membership change that
   * leaves two voters, one of them this server, may be in all logs.
   */
  #hasNothingOfItsOwn(server: VirtualServer): boolean {
    const lastZxid = lastZxidOf(server);
    return this.#ensemble.servers.every((other) => other === server || lastZxidOf(other) >= lastZxid);
  }

  #resolve(host: string): readonly string[] {
    if (host !== LEADER) return [host];
    const { leader } = this.#ensemble;
    return leader === null ? [] : [leader.host];
  }

  #later({ durationMs }: { readonly durationMs: number }, end: () => void): void {
    this.#world.timeline.plan(durationMs, () => {
      if (!this.#isOver) end();
    });
  }

  #say(what: string): void {
    this.#world.record('nemesis', what);
    this.#onFault(what);
  }
}

/** Last zxid on its disk. */
export function lastZxidOf({ disk, options }: VirtualServer): number {
  const { txns, base } = readServerDisk(disk, options.snapshotDirectory, options.logDirectory);
  return txns.at(-1)?.zxid ?? base;
}

/** Milliseconds after which a join breaks at the latest; most break much earlier. Truncating a log takes a few. */
const JOIN_MS_MAX = { diff: 100, trunc: 20, snap: 200 } as const;

const MAY_FAIL = ['write', 'sync', 'sync', 'create', 'rename', 'syncDirectory', 'truncate', 'preallocate'] as const;

/** Every pair between two groups, one way or both. */
function pairsOf(
  hosts: readonly string[],
  others: readonly string[],
  isBothWays: boolean,
): readonly (readonly [string, string])[] {
  return hosts.flatMap((host) =>
    others.flatMap((other): (readonly [string, string])[] =>
      isBothWays
        ? [
            [host, other],
            [other, host],
          ]
        : [[host, other]],
    ),
  );
}

function drawSlowness(random: SeededRandom): LinkQuality {
  return {
    delayMinMs: random.between(1, 20),
    delayMaxMs: random.between(20, 400),
    splitChance: 0.2,
    mergeChance: 0.2,
    dribbleChance: 0.05,
    bytesPerMs: random.chance(0.5) ? random.between(2, 200) : undefined,
  };
}
