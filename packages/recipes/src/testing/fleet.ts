import type { Client, ConnectOptions } from '@meerkat/client';
import {
  type CommittedTree,
  type Fault,
  type FaultKind,
  Nemesis,
  planFaults,
  type VirtualEnsemble,
  VirtualWorld,
} from '@meerkat/simulator';
import { committedSince0 } from './committed.ts';

/** The default faults: servers that die, links that break, sessions that end. */
export const FAULTS: readonly FaultKind[] = ['crash', 'power', 'partition', 'isolate', 'break', 'pause', 'slow'];

/** New sessions are known to one server only, until they create an ephemeral znode. */
const LOCAL_SESSIONS = { localSessionsEnabled: true, localSessionsUpgradingEnabled: true } as const;

/** Options of the servers. */
export type CoreOptions = NonNullable<EnsembleShape['core']>;

type EnsembleShape = Parameters<VirtualWorld['startEnsemble']>[0];

export interface WorldOptions {
  /** Default 3. */
  readonly servers?: number | undefined;
  readonly core?: CoreOptions | undefined;
  readonly ensemble?: EnsembleShape['ensemble'];
  /** Delay before a server that ended by itself restarts, milliseconds. Default: it stays down until it is started. */
  readonly restartDelayMs?: number | undefined;
  /** Of all links. */
  readonly link?: NonNullable<ConstructorParameters<typeof VirtualWorld>[0]>['link'];
}

/**
 * The environment of the recipe tests: an ensemble with clients, fault injection, and the committed history. A third of
 * the seeds use local sessions.
 */
export class Fleet {
  readonly world: VirtualWorld;
  readonly ensemble: VirtualEnsemble;
  readonly #nemesis: Nemesis;
  #clientCount = 0;

  /** With LINES=1 it prints what happens. */
  constructor(seed: number, { servers = 3, core = {}, ensemble, restartDelayMs, link }: WorldOptions = {}) {
    const onLine = process.env['LINES'] === '1' ? (line: string) => console.log(line) : undefined;
    this.world = new VirtualWorld({ seed, onLine, ...(link === undefined ? {} : { link }) });
    const local = seed % 3 === 0 && servers > 1 ? LOCAL_SESSIONS : {};
    const shape = {
      servers,
      ensemble: { ...local, ...ensemble },
      restartDelayMs,
      core: { extendedTypesEnabled: true, ...core },
    };
    this.ensemble = this.world.startEnsemble(shape);
    this.#nemesis = new Nemesis(this.world, this.ensemble);
  }

  /** Of the clients without another name. */
  get hosts(): readonly string[] {
    return Array.from({ length: this.#clientCount }, (_, i) => `client${i + 1}`);
  }

  /** The last zxid that is certainly committed: later calls see at least this much, and no client has seen more. */
  get committedZxid(): number {
    return Math.max(...this.ensemble.servers.map(({ committedEverZxid }) => committedEverZxid));
  }

  /** Runs a program in virtual time; connections that it leaves open do not matter. */
  run<T>(program: () => Promise<T>, limitMs?: number): Promise<T> {
    return this.world.run(program, limitMs);
  }

  connect(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const name = `client${++this.#clientCount}`;
    return this.connectAs(name, options);
  }

  connectAs(name: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
    const servers = this.ensemble.connectString;
    return this.world.connect(name, { servers, sessionTimeoutMs: 4000, connectTimeoutMs: 600_000, ...options });
  }

  connectAll(count: number, options: Partial<ConnectOptions> = {}): Promise<Client[]> {
    return Promise.all(Array.from({ length: count }, () => this.connect(options)));
  }

  /** Connections that break repeatedly for this long, so that many replies are lost but no session is. */
  unleashBreaks(durationMs: number, pauseMs = 100): void {
    const servers = this.ensemble.servers.map(({ host }) => host);
    const plan = { kinds: ['break'], durationMs, servers, clients: [], pauseMs } as const;
    this.#nemesis.unleash(planFaults(this.world.random.fork('breaks'), plan));
  }

  /**
   * Random faults of servers and clients for this long.
   *
   * @param clients their hosts, or how many of `client1` …
   * @param pauseMs between two faults on average; null: drawn
   */
  unleash(
    durationMs: number,
    clients: number | readonly string[],
    kinds: readonly FaultKind[] = FAULTS,
    pauseMs: number | null = 1500,
  ): void {
    const servers = this.ensemble.servers.map(({ host }) => host);
    const hosts = typeof clients === 'number' ? Array.from({ length: clients }, (_, i) => `client${i + 1}`) : clients;
    const plan = { kinds, durationMs, servers, clients: hosts, pauseMs: pauseMs ?? undefined };
    this.#nemesis.unleash(planFaults(this.world.random.fork('faults'), plan));
  }

  /** Sometimes a client is partitioned, often for longer than its session lives. */
  unleashCuts(durationMs: number, clientCount: number): void {
    const random = this.world.random.fork('cuts');
    const others = this.ensemble.servers.map(({ host }) => host);
    const cuts: Fault[] = [];
    for (let atMs = 0; atMs < durationMs; atMs += random.between(500, 5000)) {
      const hosts = [`client${random.between(1, clientCount)}`];
      const chance = random.uint32();
      cuts.push({ kind: 'isolate', atMs, durationMs: random.between(500, 9000), hosts, others, chance });
    }
    this.#nemesis.unleash(cuts);
  }

  /**
   * Every kind of fault of servers and links for this many virtual milliseconds. Sometimes a client is partitioned for
   * longer than its session lives.
   */
  async storm(clients: readonly string[], durationMs: number): Promise<void> {
    const servers = this.ensemble.servers.map(({ host }) => host);
    const random = this.world.random.fork('faults');
    const cuts: Fault[] = [];
    for (let atMs = 0; atMs < durationMs; atMs += random.between(2000, 12_000)) {
      const hosts = [random.pick(clients)];
      const lastsMs = random.between(1000, 12_000);
      cuts.push({ kind: 'isolate', atMs, durationMs: lastsMs, hosts, others: servers, chance: random.uint32() });
    }
    this.#nemesis.unleash([...planFaults(random, { kinds: STORM, durationMs, servers, clients }), ...cuts]);
    await this.world.sleep(durationMs);
  }

  /** Ends all faults. */
  heal(): void {
    this.#nemesis.heal();
  }

  /** The same; resolves when all servers work together. */
  async recover(): Promise<void> {
    this.heal();
    for (let i = 0; i < 60 && !this.ensemble.isWhole; i++) {
      this.#nemesis.tend();
      await this.world.until(() => this.ensemble.isWhole, 2000);
    }
    if (!this.ensemble.isWhole) throw new Error('the ensemble does not recover');
  }

  /** The committed history, once all faults are healed; null when no server has its beginning. */
  async committedTree(): Promise<CommittedTree | null> {
    await this.recover();
    if (!(await this.world.until(() => this.ensemble.isAtRest, 60_000))) throw new Error('a txn stays on its way');
    return committedSince0(this.ensemble);
  }

  /** The process of a client dies: its session lives on until it times out. */
  async kill(client: Client): Promise<void> {
    // Between two sessions there is none to leave behind.
    await client.detach().catch(() => client.close({ timeoutMs: 1 }));
  }
}

/** Runs a program in its own world. A failure prints the seed. */
export async function runFleet(
  seed: number,
  program: (fleet: Fleet) => Promise<void>,
  options: WorldOptions = {},
): Promise<void> {
  const fleet = new Fleet(seed, options);
  try {
    await fleet.run(() => program(fleet));
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}

/** The same with one server, in a world whose only faults are those of the program. */
export function runSolo(seed: number, program: (fleet: Fleet) => Promise<void>): Promise<void> {
  return runFleet(seed, program, { servers: 1 });
}

/** A test with one server that never fails, and some clients. */
export function withClients(
  program: (fleet: Fleet, ...clients: Client[]) => Promise<void>,
  clientCount = 1,
): () => Promise<void> {
  return async () => {
    const fleet = new Fleet(1, { servers: 1 });
    await fleet.run(async () => program(fleet, ...(await fleet.connectAll(clientCount))));
  };
}

const STORM: readonly FaultKind[] = [
  'crash',
  'power',
  'stop',
  'restart-all',
  'pause',
  'partition',
  'isolate',
  'one-way',
  'slow',
  'break',
  'flap',
];
