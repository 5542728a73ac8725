/**
 * The test bed of stories: a virtual world with an ensemble, with checkers that watch from the first event to the last.
 *
 *     play(shape, story) ─► the story crashes, cuts, waits, looks ─► everything is healed ─► all are equal again,
 *                                                                    a write goes through, no invariant was violated
 *
 * A story is written with `await`: what it awaits on the stage is settled in the middle of a simulated event, and the
 * story continues before anything else happens. After `await stage.packet(…)` for a packet that was sent, the sender
 * has done nothing more; for one that has arrived, the receiver has changed its state and not sent anything yet. The
 * same holds after `await stage.disk(…)`.
 */
import { type Client, ConnectionLossError, type ConnectOptions, NodeExistsError } from '@meerkat/client';
import { JuteReader, OpCode, PacketType, readTxnEntry, type TxnEntry } from '@meerkat/protocol';
import type { FoundState } from '../checkers/live-checker.ts';
import type { Violation } from '../checkers/violation.ts';
import type { WireEvent } from '../checkers/wire.ts';
import { readLogs, readServerDisk } from '../disk-reader.ts';
import { History } from '../history.ts';
import type { LinkQuality } from '../link-quality.ts';
import { Checkers } from '../run-checkers.ts';
import { TraceTail } from '../trace-tail.ts';
import { ELECTION_PORT, type EnsembleShape, type VirtualEnsemble } from '../virtual-ensemble.ts';
import type { VirtualServer } from '../virtual-server.ts';
import { VirtualWorld } from '../virtual-world.ts';
import { type DiskEffect, DiskTap, type DiskWatch, effectsOf } from './stage-disk.ts';
import { type CutPlace, type PacketMatch, StageWire } from './stage-wire.ts';

export { type CutPlace, isNewLeaderAck, type PacketMatch } from './stage-wire.ts';

export interface StageShape extends EnsembleShape {
  /** Each is a run of its own; a story must not depend on chance. Default 1 and 2. */
  readonly seeds?: readonly number[] | undefined;
  readonly link?: LinkQuality | undefined;
  /** Servers whose disks may fail: they may exit by themselves. */
  readonly mayFail?: readonly number[] | undefined;
  /** Invariants that the story itself violates, by editing files or losing more disks than Zab tolerates. */
  readonly excused?: readonly string[] | undefined;
}

/**
 * Runs a story once for each seed; with `STORY_SEEDS=n` in the environment, for the seeds 1 to n instead.
 *
 * @throws Error with seed, violations and the end of the trace
 */
export async function play(shape: StageShape, story: (stage: Stage) => Promise<void>): Promise<void> {
  const many = Number(process.env['STORY_SEEDS'] ?? 0);
  const seeds = many > 0 ? Array.from({ length: many }, (_, i) => i + 1) : (shape.seeds ?? [1, 2]);
  for (const seed of seeds) {
    const stage = new Stage(shape, seed);
    try {
      await stage.world.run(async () => {
        await story(stage);
        await stage.end();
      }, STORY_MAX_MS);
      stage.checkInvariants();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const violations = stage.violations.map(({ invariant, message, atMs }) => `${atMs} ${invariant} ${message}`);
      const report = [`seed ${seed}: ${reason}`, ...violations, ...stage.tail.lines].join('\n');
      throw new Error(report, { cause: error });
    }
  }
}

export class Stage {
  readonly world: VirtualWorld;
  readonly ensemble: VirtualEnsemble;
  readonly checkers: Checkers;
  readonly tail: TraceTail = new TraceTail(TAIL_LINES);
  readonly #wire: StageWire;
  readonly #clients: Map<string, Client> = new Map();
  readonly #diskWatches: DiskWatch[] = [];
  readonly #excused: readonly string[];
  #nextName = 1;

  constructor(shape: StageShape, seed: number) {
    const world = new VirtualWorld({ seed, link: shape.link, onLine: (line) => this.#keep(line) });
    this.world = world;
    this.ensemble = world.addEnsemble(shape);
    const history = new History(() => world.nowMs);
    const mayFail = shape.mayFail ?? [];
    this.#excused = shape.excused ?? [];
    this.checkers = new Checkers(world, this.ensemble, history, ({ serverId }) => mayFail.includes(serverId));
    this.#wire = new StageWire(world.network, this.ensemble, (line) => this.tail.add(line));
    world.watch({
      onChange: (server, what) => {
        // The checkers have just installed their own observer.
        if (what === 'starts') server.disk.observer = new DiskTap(server, server.disk.observer, this.#diskWatches);
      },
    });
  }

  /** Server n is the one of index n − 1. */
  get servers(): readonly VirtualServer[] {
    return this.ensemble.servers;
  }

  /** The server with this id. */
  zk(serverId: number): VirtualServer {
    const server = this.servers[serverId - 1];
    if (server === undefined) throw new Error(`there is no server ${serverId}`);
    return server;
  }

  /** The first three servers, for stories that name them. */
  get three(): readonly [VirtualServer, VirtualServer, VirtualServer] {
    return [this.zk(1), this.zk(2), this.zk(3)];
  }

  get five(): readonly [VirtualServer, VirtualServer, VirtualServer, VirtualServer, VirtualServer] {
    return [...this.three, this.zk(4), this.zk(5)];
  }

  /* -------------------------------------------------------------------------------------------- beginning, waiting ---- */

  /** Starts servers, by default all, and waits until they serve together. @returns their leader */
  async start(...servers: VirtualServer[]): Promise<VirtualServer> {
    const starting = servers.length === 0 ? this.servers : servers;
    await this.launch(...starting);
    await this.whole(...starting);
    return this.leader();
  }

  /**
   * Starts servers, by default all, and waits only until the others reach the one with the highest id at its election
   * port. Among equals, that one is elected.
   */
  async launch(...servers: VirtualServer[]): Promise<void> {
    const starting = servers.length === 0 ? this.servers : servers;
    const first = starting.toSorted((a, b) => b.serverId - a.serverId).find(({ isRunning }) => !isRunning);
    if (first === undefined) return;
    first.start();
    const isReady = (): boolean => !first.isRunning || this.world.network.isListening(first.host, ELECTION_PORT);
    if (!this.ensemble.observers.includes(first)) await this.until(`${first.host} looks for a leader`, isReady);
    for (const server of starting) server.start();
  }

  /** Waits until these servers, by default those that run, serve in one epoch and have what their leader has. */
  async whole(...servers: VirtualServer[]): Promise<void> {
    const all = servers.length === 0 ? this.servers.filter(({ isRunning }) => isRunning) : servers;
    await this.until(`${all.map(({ host }) => host).join(', ')} serve together`, () => {
      const { leader } = this.ensemble;
      const lastZxid = leader?.core?.view.lastZxid;
      return (
        leader !== null &&
        all.every((server) => isServingIn(server, leader.epoch) && server.core?.view.lastZxid === lastZxid)
      );
    });
  }

  /** Waits until a server leads, one of `among` if any are given; a leader of an old epoch does not count. */
  async leader(...among: VirtualServer[]): Promise<VirtualServer> {
    let leader: VirtualServer | null = null;
    await this.until('a server leads', () => {
      ({ leader } = this.ensemble);
      return leader !== null && (among.length === 0 || among.includes(leader));
    });
    return leader!;
  }

  /** @throws Error when it does not hold within `limitMs` virtual milliseconds */
  async until(what: string, holds: () => boolean, limitMs = 20_000, everyMs = 1): Promise<void> {
    if (!(await this.world.until(holds, limitMs, everyMs))) throw new Error(`not within ${limitMs} ms: ${what}`);
  }

  sleep(ms: number): Promise<void> {
    return this.world.sleep(ms);
  }

  /** The next packet that matches; see the top of the file for the moment. */
  packet(match: PacketMatch): Promise<WireEvent> {
    return new Promise((resolve) => {
      this.#wire.onPacket(match, (event) => {
        resolve(event);
        this.world.timeline.touch();
      });
    });
  }

  /** The last txn sent over this packet's connection so far, by itself or in a snapshot; 0 for none. */
  sentBefore({ connection }: WireEvent): number {
    return this.#wire.lastTxnOver(connection);
  }

  /** Waits for the next operation of this kind on a server's disk, on a path that contains `path`, to complete. */
  disk(server: VirtualServer, operation: DiskEffect, path = ''): Promise<void> {
    return new Promise((resolve) => {
      this.#diskWatches.push({
        server,
        operation,
        path,
        onDone: () => {
          resolve();
          this.world.timeline.touch();
        },
      });
    });
  }

  /** Waits for the next operation of any kind on a server's disk, reads included, to complete. */
  async effect(server: VirtualServer): Promise<void> {
    const before = effectsOf(server);
    await this.until(`${server.host} does something with its disk`, () => effectsOf(server) > before, 1000, LOOK_MS);
  }

  /* ----------------------------------------------------------------------------------------------- what goes wrong ---- */

  /**
   * From the first matching packet on, including it unless `place` says otherwise, nothing that `from` sends to `to`
   * arrives, on any connection, until `heal`. What was sent before still does. Neither server is notified.
   *
   * @returns resolves when the cut is made, when the packet is sent
   */
  cut(
    from: VirtualServer,
    to: VirtualServer,
    match: Omit<PacketMatch, 'from' | 'to' | 'stage'>,
    place: CutPlace = 'before',
  ): Promise<void> {
    return new Promise((resolve) => {
      this.#wire.cut(from, to, match, place, () => {
        resolve();
        this.world.timeline.touch();
      });
    });
  }

  /** Cuts the group off from all other servers, both ways; the clients reach all. */
  isolate(...group: VirtualServer[]): void {
    const others = this.servers.filter((server) => !group.includes(server));
    this.world.network.partition(group.map(hostOf), others.map(hostOf));
  }

  /** Breaks the connections between two servers, or of one server to all others. They may connect again at once. */
  breakLinks(a: VirtualServer, b?: VirtualServer): void {
    const hosts = this.servers.map(hostOf);
    for (const end of this.world.network.openEnds) {
      if (end.host === a.host && hosts.includes(end.peerHost) && (b === undefined || end.peerHost === b.host)) {
        end.breakStream();
      }
    }
  }

  /** Reopens all links; streams that have lost something break. Servers and disks stay as they are. */
  heal(): void {
    this.world.network.heal();
    this.#wire.heal();
  }

  /** kill -9: what was written stays. */
  kill(...servers: VirtualServer[]): void {
    for (const server of servers) server.crash();
  }

  /** The power fails: only what was synced stays. */
  cutPower(...servers: VirtualServer[]): void {
    for (const server of servers) server.crash({ losesPower: true, survivors: 'nothing' });
  }

  /* ------------------------------------------------------------------------------------------------------- clients ---- */

  /** A client of this server alone, the same one each time, with a session that outlives every fault of a story. */
  async at(server: VirtualServer): Promise<Client> {
    const known = this.#clients.get(server.host);
    if (known !== undefined) return known;
    const client = await this.connect(`client-of-${server.host}`, { servers: `${server.host}:${server.port}` });
    this.#clients.set(server.host, client);
    return client;
  }

  /** A client with a host of its own. Default: of all servers, with a session of a minute. */
  connect(host: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
    return this.world.connect(host, {
      servers: this.ensemble.connectString,
      sessionTimeoutMs: 60_000,
      backOff: { minMs: 20, maxMs: 100 },
      ...options,
    });
  }

  /** Creates znodes over this server, one after the other, retrying after connection loss. @returns their paths */
  async write(server: VirtualServer, count = 1): Promise<readonly string[]> {
    const client = await this.at(server);
    const paths: string[] = [];
    for (let i = 0; i < count; i++) {
      const path = `/n${this.#nextName++}`;
      while (!(await isThere(client, path)));
      paths.push(path);
    }
    return paths;
  }

  /** A leader logs a znode that no other server ever receives. From then on nothing that it sends reaches another server. */
  async logAlone(leader: VirtualServer, path: string): Promise<void> {
    if (leader.role !== 'leading') throw new Error(`${leader.host} does not lead`);
    await this.at(leader);
    for (const server of this.servers) {
      if (server !== leader) void this.cut(leader, server, { type: PacketType.proposal });
    }
    await this.begin(leader, path);
    do await this.disk(leader, 'sync', 'log.');
    while (!this.hasLogged(leader, path));
  }

  /** Requests a znode from this server, and does not wait for the reply. */
  async begin(server: VirtualServer, path: string): Promise<void> {
    const client = await this.at(server);
    client.create(path).catch(() => {});
  }

  /** What a server answers from its own tree. */
  async has(server: VirtualServer, path: string): Promise<boolean> {
    return (await (await this.at(server)).exists(path)) !== null;
  }

  /* ---------------------------------------------------------------------------------------------- what is on disks ---- */

  /** Epochs, and the history behind the newest snapshot. */
  found(server: VirtualServer): FoundState {
    return readServerDisk(server.disk, server.options.snapshotDirectory, server.options.logDirectory);
  }

  /** Where the history on a server's disk ends. */
  lastZxid(server: VirtualServer): number {
    const { base, txns } = this.found(server);
    return txns.at(-1)?.zxid ?? base;
  }

  /** Every txn of a server's log files, covered by a snapshot or not. */
  logOf(server: VirtualServer): readonly TxnEntry[] {
    const reader = new JuteReader(undefined, 0x10000000);
    return readLogs(server.disk, server.options.logDirectory).flatMap(({ payload }) => {
      reader.reset(payload, 0, payload.length);
      return readTxnEntry(reader) ?? [];
    });
  }

  /** Whether a server's log has the creation of a znode. */
  hasLogged(server: VirtualServer, path: string): boolean {
    return this.logOf(server).some(({ txn }) => txn.type === OpCode.create2 && txn.path === path);
  }

  /* ----------------------------------------------------------------------------------------------------------- end ---- */

  /** Heals everything, and checks what `play` requires. */
  async end(): Promise<void> {
    this.heal();
    for (const server of this.servers) {
      server.healDisk();
      server.resume();
      server.start();
    }
    const leader = await this.leader();
    await this.until('all servers serve together', () => this.ensemble.isWhole);
    await this.write(leader);
    for (const client of this.#clients.values()) await client.close();
    await this.until('all servers have the same', () => this.ensemble.isAtRest);
    this.checkers.checkServers();
  }

  /** Drops the connection attempts of clients at servers without a leader, which would fill the trace. */
  #keep(line: string): void {
    if (!line.includes(' connection-')) this.tail.add(line);
  }

  /** Violations that the story has not caused itself. */
  get violations(): readonly Violation[] {
    return this.checkers.violations.filter(({ invariant }) => !this.#excused.includes(invariant));
  }

  /** @throws Error when an invariant was violated */
  checkInvariants(): void {
    this.checkers.checkOperations();
    if (this.violations.length > 0) throw new Error('promises were broken');
  }
}

/** Shorter than the shortest disk operation. */
const LOOK_MS = 0.04;
const STORY_MAX_MS = 60_000;
const TAIL_LINES = 100;

/** @returns false when the connection was lost */
async function isThere(client: Client, path: string): Promise<boolean> {
  try {
    await client.create(path, path);
    return true;
  } catch (error) {
    if (error instanceof NodeExistsError) return true;
    if (error instanceof ConnectionLossError) return false;
    throw error;
  }
}

function hostOf({ host }: VirtualServer): string {
  return host;
}

function isServingIn(server: VirtualServer, epoch: number): boolean {
  return server.isServing && !server.isPaused && server.epoch === epoch;
}
