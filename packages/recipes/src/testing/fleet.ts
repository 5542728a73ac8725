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
import { CommitMark, committedSince0 } from './commit-mark.ts';

/** What goes wrong by default: servers that die, links that break, sessions that end. */
export const FAULTS: readonly FaultKind[] = ['crash', 'power', 'partition', 'isolate', 'break', 'pause', 'slow'];

/** An ensemble of three servers and clients upon it, in a world of its own. */
export class Fleet {
  readonly world: VirtualWorld;
  readonly ensemble: VirtualEnsemble;
  readonly #nemesis: Nemesis;
  #clientCount = 0;
  readonly #mark: CommitMark;

  constructor(seed: number, servers = 3) {
    this.world = new VirtualWorld({ seed });
    this.ensemble = this.world.startEnsemble({ servers });
    this.#mark = new CommitMark(this.ensemble);
    this.#nemesis = new Nemesis(this.world, this.ensemble);
  }

  /** Of the clients that have no other name. */
  get hosts(): readonly string[] {
    return Array.from({ length: this.#clientCount }, (_, i) => `client${i + 1}`);
  }

  /** See `CommitMark`. */
  get committedZxid(): number {
    return this.#mark.zxid;
  }

  /** Runs a program in virtual time; whatever it has left connected does not matter any more. */
  run<T>(program: () => Promise<T>, limitMs?: number): Promise<T> {
    return this.world.run(program, limitMs);
  }

  connect(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const name = `client${++this.#clientCount}`;
    return this.connectAs(name, options);
  }

  connectAs(name: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
    const servers = this.ensemble.connectString;
    return this.world.connect(name, { servers, sessionTimeoutMs: 4000, connectTimeoutMs: 120_000, ...options });
  }

  connectAll(count: number, options: Partial<ConnectOptions> = {}): Promise<Client[]> {
    return Promise.all(Array.from({ length: count }, () => this.connect(options)));
  }

  /** Connections that break again and again for so long, so that many replies are lost and no session is. */
  unleashBreaks(durationMs: number, pauseMs = 100): void {
    const servers = this.ensemble.servers.map(({ host }) => host);
    const plan = { kinds: ['break'], durationMs, servers, clients: [], pauseMs } as const;
    this.#nemesis.unleash(planFaults(this.world.random.fork('breaks'), plan));
  }

  /** Faults by chance for so long, among the servers and these clients (hosts `client1` …). */
  unleash(durationMs: number, clientCount: number, kinds: readonly FaultKind[] = FAULTS): void {
    const servers = this.ensemble.servers.map(({ host }) => host);
    const clients = Array.from({ length: clientCount }, (_, i) => `client${i + 1}`);
    const plan = { kinds, durationMs, servers, clients, pauseMs: 1500 };
    this.#nemesis.unleash(planFaults(this.world.random.fork('faults'), plan));
  }

  /** Now and then a client is cut off, often for longer than its session lives. */
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

  /** Ends all faults. */
  heal(): void {
    this.#nemesis.heal();
  }

  /** Everything that was committed, once all is healed; null when nobody has the beginning any more. */
  async committedTree(): Promise<CommittedTree | null> {
    if (!(await this.world.until(() => this.ensemble.isWhole, 60_000)))
      throw new Error('the ensemble does not recover');
    return committedSince0(this.ensemble);
  }
}
