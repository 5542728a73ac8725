import { join } from 'node:path';
import { DEFAULT_ENSEMBLE_OPTIONS, type EnsembleOptions, type Trace } from '@meerkat/core';
import { type Membership, ZXID_ZERO } from '@meerkat/protocol';
import type { Logger } from '@meerkat/server';
import type { Storage } from './data-place.ts';
import { EnsembleNetwork } from './ensemble-network.ts';
import { findFreePorts } from './free-ports.ts';
import { isPortTaken } from './taken-port.ts';
import { TestServer, type TestServerOptions, type TestSession } from './test-server.ts';

export interface TestEnsembleOptions
  extends Omit<TestServerOptions, 'storage' | 'port' | 'logger' | 'trace' | 'decorateNetwork'> {
  /** Servers that vote, 3 by default; their ids count from 1. */
  readonly servers?: number;
  /** Servers that serve and do not vote, none by default; their ids follow. */
  readonly observers?: number;
  /** Where the data are; `'memory'` by default. In a directory of one's own each server has one, named by its id. */
  readonly storage?: Storage;
  /** Ticks that a follower may take to find its leader and catch up with it; 50 by default, for busy machines. */
  readonly initLimit?: number;
  /** Ticks of silence after which leader and follower give each other up; 5 by default. */
  readonly syncLimit?: number;
  /** Gets the log of a server; none by default. */
  readonly logger?: (serverId: number) => Logger;
  /** Receives every event of a server's core. */
  readonly trace?: (serverId: number) => Trace;
}

export interface WaitOptions {
  /** Milliseconds at most; 30,000 by default. */
  readonly waitMs?: number;
}

/** A server of the ensemble, or its id. */
export type EnsembleMember = TestServer | number;

/**
 * An ensemble of real servers inside this process, for tests: each with ports of 127.0.0.1 and data of its own, and a
 * network between them that can be partitioned.
 *
 *     await using ensemble = await TestEnsemble.start();
 *     const client = await connect(ensemble.connectString);
 *     await ensemble.leader.kill();
 *     await client.create('/a');                       // the others have elected a leader
 *
 * Each of its servers is a `TestServer`: what can be done to one, can be done to each, and one that fails by a mistake of
 * its own fails alone.
 */
export class TestEnsemble implements AsyncDisposable {
  /** Ordered by id: voting servers, then observers. */
  readonly servers: readonly TestServer[];
  readonly #network: EnsembleNetwork;
  readonly #voterCount: number;

  /**
   * Starts an ensemble.
   *
   *     await using ensemble = await TestEnsemble.start({ servers: 5, storage: 'directory' });
   *
   * @returns once it has a leader, and every server has caught up with it and serves clients
   * @throws ServerError when a server cannot start; nothing is left behind then
   */
  static async start(options: TestEnsembleOptions = {}): Promise<TestEnsemble> {
    const { servers = 3, observers = 0 } = options;
    if (!Number.isInteger(servers) || servers < 1)
      throw new RangeError(`an ensemble has 1 or more servers that vote, not ${servers}`);
    if (!Number.isInteger(observers) || observers < 0)
      throw new RangeError(`an ensemble has 0 or more observers, not ${observers}`);
    for (let attempt = 1; ; attempt++) {
      try {
        return await TestEnsemble.#tryStart(options, servers, observers);
      } catch (error) {
        // Between the search for free ports and their use another program may take one.
        if (!isPortTaken(error) || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  static async #tryStart(options: TestEnsembleOptions, voters: number, observers: number): Promise<TestEnsemble> {
    const count = voters + observers;
    const ports = await findFreePorts(2 * count);
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    const network = new EnsembleNetwork(new Map(ports.map((port, i) => [port, Math.floor(i / 2) + 1])));
    const membership: Membership = {
      version: ZXID_ZERO,
      hierarchy: null,
      members: ids.map((serverId, i) => ({
        serverId,
        role: i < voters ? 'participant' : 'observer',
        addresses: [{ host: '127.0.0.1', quorumPort: ports[2 * i]!, electionPort: ports[2 * i + 1]! }],
        client: null,
        secureClient: null,
      })),
    };
    const starts = ids.map((id) => TestServer.start(optionsOf(id, options, membership, network)));
    const settled = await Promise.allSettled(starts);
    const servers = settled.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    const ensemble = new TestEnsemble(servers, voters, network);
    try {
      for (const start of settled) if (start.status === 'rejected') throw start.reason;
      await ensemble.#until('all servers to serve under one leader', () => {
        if (network.takenPort !== null) throw network.takenPort;
        return ensemble.#isWhole();
      });
    } catch (error) {
      await ensemble.dispose().catch(() => {});
      throw error;
    }
    return ensemble;
  }

  private constructor(servers: readonly TestServer[], voterCount: number, network: EnsembleNetwork) {
    this.servers = servers;
    this.#voterCount = voterCount;
    this.#network = network;
  }

  /** What clients connect to: all servers, whether they run or not. */
  get connectString(): string {
    return this.servers.map((server) => server.connectString).join(',');
  }

  /**
   * The server of this id.
   *
   *     ensemble.server(2).pause();
   */
  server(id: number): TestServer {
    const server = this.servers[id - 1];
    if (server === undefined) throw new Error(`the ensemble has no server ${id}: it has 1 to ${this.servers.length}`);
    return server;
  }

  /** The id of a server, as in `server.N`. */
  idOf(server: TestServer): number {
    const i = this.servers.indexOf(server);
    if (i < 0) throw new Error(`the server on ${server.connectString} does not belong to this ensemble`);
    return i + 1;
  }

  /**
   * The leader: it serves, and a quorum follows it that is running and can reach it. A leader that is cut off from its
   * quorum does not count, although it may not have noticed yet.
   *
   *     await ensemble.leader.kill();
   *
   * @throws Error when there is none now: `whenServing` waits for one
   */
  get leader(): TestServer {
    const leader = this.#findLeader();
    if (leader === null) throw new Error(`no server leads at the moment, wait with whenServing(): ${this.#describe()}`);
    return leader;
  }

  /** The voting servers that follow the leader and serve clients. */
  get followers(): readonly TestServer[] {
    return this.#learnersAs('following');
  }

  /** The observers that have caught up with the leader and serve clients. */
  get observers(): readonly TestServer[] {
    return this.#learnersAs('observing');
  }

  /**
   * Waits for a leader that serves.
   *
   *     await ensemble.leader.kill();
   *     const successor = await ensemble.whenServing();
   *
   * @returns the leader
   * @throws Error on timeout, with the state of each server
   */
  async whenServing(options: WaitOptions = {}): Promise<TestServer> {
    await this.#until('a leader', () => this.#findLeader() !== null, options);
    return this.leader;
  }

  /**
   * Waits until every server that runs, and is not paused, serves clients under one leader.
   *
   *     await ensemble.server(2).restart();
   *     await ensemble.whenWhole();
   *
   * @returns the leader
   * @throws Error when that is not so in time, with what each server does
   */
  async whenWhole(options: WaitOptions = {}): Promise<TestServer> {
    await this.#until('all that run to serve under one leader', () => this.#isWhole(), options);
    return this.leader;
  }

  /**
   * Cuts the network between groups of servers: nothing gets through, silently. Servers that no group names are a
   * group of their own. Clients reach all servers as before. Replaces the partition before.
   *
   *     ensemble.partition([1], [2, 3]);
   */
  partition(...groups: readonly (readonly EnsembleMember[])[]): void {
    const ids = groups.map((group) => group.map((member) => this.#resolve(member)));
    const all = ids.flat();
    const twice = all.find((id, i) => all.indexOf(id) !== i);
    if (twice !== undefined) throw new Error(`server ${twice} is in two groups of the partition, or twice in one`);
    this.#network.partition(ids);
  }

  /**
   * Cuts a server off from all others: `partition([member])`.
   *
   *     ensemble.isolate(ensemble.leader);
   */
  isolate(member: EnsembleMember): void {
    this.partition([member]);
  }

  /** Ends the partition: what has been sent over streams that are still open arrives. */
  heal(): void {
    this.#network.heal();
  }

  /** The sessions that live, as the leader knows them, with the address of each client wherever it is connected. */
  sessions(): readonly TestSession[] {
    const addresses = new Map<bigint, string>();
    for (const server of this.#serving) {
      for (const { id, address } of server.sessions()) if (address !== null) addresses.set(id, address);
    }
    return this.leader.sessions().map((session) => ({ ...session, address: addresses.get(session.id) ?? null }));
  }

  /**
   * Expires a session now, as if its client had been silent for its timeout, whichever server it is connected to.
   *
   *     await ensemble.expireSession(client.sessionId);
   *
   * @returns once its ephemerals are gone at every server that serves and is not cut off from the leader
   * @throws Error when no such session lives, or there is no leader
   */
  async expireSession(id: bigint): Promise<void> {
    const { leader } = this;
    await leader.expireSession(id);
    const zxid = leader.view.lastZxid;
    await this.#until('the end of the session at all servers', () =>
      [leader, ...this.followers, ...this.observers].every((server) => server.view.lastZxid >= zxid),
    );
  }

  /** Stops all servers as on SIGTERM. Data and sessions wait for `restart`. */
  async stop(): Promise<void> {
    await settleAll(this.servers.map((server) => server.stop()));
  }

  /** Ends all servers at once as by kill -9. What was acknowledged is there after `restart`. */
  async kill(): Promise<void> {
    await settleAll(this.servers.map((server) => server.kill()));
  }

  /**
   * Starts all servers again, on the same ports and the same data; stops first those that run. A partition stays.
   *
   * @returns once all of them serve; while there is a partition, once all have started
   */
  async restart(): Promise<void> {
    await this.stop();
    await settleAll(this.servers.map((server) => server.restart()));
    if (!this.#network.isPartitioned) await this.whenWhole();
  }

  /** Ends it for good: stops all servers, and removes temporary directories. */
  async dispose(): Promise<void> {
    // No leader hands over across a cut.
    this.#network.heal();
    await settleAll(this.servers.map((server) => server.dispose()));
  }

  /** What `await using` calls: the same as `dispose`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #resolve(member: EnsembleMember): number {
    return typeof member === 'number' ? this.idOf(this.server(member)) : this.idOf(member);
  }

  /** Those that are awake and serve clients. */
  get #serving(): readonly TestServer[] {
    return this.servers.filter((server) => server.state === 'running' && server.view.isServing);
  }

  #findLeader(): TestServer | null {
    const voters = this.servers.slice(0, this.#voterCount);
    const quorumSize = Math.floor(this.#voterCount / 2) + 1;
    for (const server of this.#serving) {
      const standBy = voters.filter((voter) => this.#standsBy(voter, server));
      if (standBy.includes(server) && standBy.length >= quorumSize) return server;
    }
    return null;
  }

  /** Whether a server that is awake leads or follows this leader, and can reach it. */
  #standsBy(server: TestServer, leader: TestServer): boolean {
    const id = this.idOf(leader);
    if (server.state !== 'running' || this.#network.isCut(this.idOf(server), id)) return false;
    return server.view.ensemble?.leader === id;
  }

  #learnersAs(role: 'following' | 'observing'): readonly TestServer[] {
    const leader = this.#findLeader();
    if (leader === null) return [];
    return this.#serving.filter((server) => server.view.ensemble?.role === role && this.#standsBy(server, leader));
  }

  #isWhole(): boolean {
    const leader = this.#findLeader();
    if (leader === null) return false;
    return this.servers.every(
      (server) => server.state !== 'running' || (server.view.isServing && this.#standsBy(server, leader)),
    );
  }

  async #until(what: string, holds: () => boolean, { waitMs = WAIT_MS }: WaitOptions = {}): Promise<void> {
    const endMs = performance.now() + waitMs;
    while (!holds()) {
      if (this.servers.every(({ state }) => state === 'stopped' || state === 'failed' || state === 'disposed')) {
        throw new Error(`waits for ${what}, but no server is running: ${this.#describe()}`);
      }
      if (performance.now() >= endMs) throw new Error(`waited ${waitMs} ms for ${what}: ${this.#describe()}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** What each server does, for the messages of errors. */
  #describe(): string {
    const words = this.servers.map((server, i) => `server ${i + 1} ${describeServer(server)}`);
    return words.join(', ');
  }
}

const ATTEMPTS_MAX = 10;
const WAIT_MS = 30_000;
/** Milliseconds between two looks at the servers, for a caller that waits. */
const LOOK_MS = 2;

function optionsOf(
  serverId: number,
  options: TestEnsembleOptions,
  membership: Membership,
  network: EnsembleNetwork,
): TestServerOptions {
  const { servers: _servers, observers: _observers, storage = 'memory', logger, trace, ...rest } = options;
  const { initLimit = 50, syncLimit = DEFAULT_ENSEMBLE_OPTIONS.syncLimit, ...shared } = rest;
  const ensemble: EnsembleOptions = {
    ...DEFAULT_ENSEMBLE_OPTIONS,
    ...options.core?.ensemble,
    initLimit,
    syncLimit,
    membership,
  };
  return {
    ...shared,
    storage: typeof storage === 'string' ? storage : { directory: join(storage.directory, String(serverId)) },
    core: { ...options.core, serverId, ensemble },
    decorateNetwork: network.decoratorOf(serverId),
    ...(logger === undefined ? {} : { logger: logger(serverId) }),
    ...(trace === undefined ? {} : { trace: trace(serverId) }),
  };
}

function describeServer(server: TestServer): string {
  if (server.state !== 'running') return `is ${server.state}`;
  const { ensemble, isServing } = server.view;
  if (ensemble?.leader == null) return 'looks for a leader';
  const role = ensemble.role === 'leading' ? 'leads' : `follows ${ensemble.leader}`;
  return isServing ? role : `${role}, and is not ready yet`;
}

/** Waits for all, then reports the first failure. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const settled = await Promise.allSettled(work);
  for (const each of settled) if (each.status === 'rejected') throw each.reason;
}
