import type { Client, ConnectOptions } from '@meerkat/client';
import { type CommittedTree, type Fault, type FaultKind, Nemesis, planFaults, VirtualWorld } from '@meerkat/simulator';
import { CommitMark, committedSince0 } from '../../testing/commit-mark.ts';

/** A virtual world with an ensemble of three, and what tests of groups need of it. */
export class GroupWorld {
  readonly world: VirtualWorld;
  readonly ensemble: ReturnType<VirtualWorld['startEnsemble']>;
  /** How far the ensemble has committed. */
  readonly mark: CommitMark;
  #nemesis: Nemesis | null = null;

  constructor(seed: number, servers: number, core: CoreOptions = {}) {
    this.world = new VirtualWorld({
      seed,
      onLine: process.env['LINES'] === '1' ? (line) => console.log(line) : undefined,
    });
    this.ensemble = this.world.startEnsemble({ servers, core: { extendedTypesEnabled: true, ...core } });
    this.mark = new CommitMark(this.ensemble);
  }

  /** A client on a host of its own. */
  connect(host: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
    const servers = this.ensemble.connectString;
    return this.world.connect(host, { servers, sessionTimeoutMs: 4000, connectTimeoutMs: 600_000, ...options });
  }

  /**
   * Faults of servers and links for so many virtual milliseconds; the seed decides which. Now and then a client is cut off
   * for longer than its session lives, which is what these recipes have to fear.
   */
  async storm(clients: readonly string[], durationMs: number): Promise<void> {
    const nemesis = new Nemesis(this.world, this.ensemble);
    this.#nemesis = nemesis;
    const servers = this.ensemble.servers.map(({ host }) => host);
    const random = this.world.random.fork('faults');
    const cuts: Fault[] = [];
    for (let atMs = 0; atMs < durationMs; atMs += random.between(2000, 12_000)) {
      const hosts = [random.pick(clients)];
      const lastsMs = random.between(1000, 12_000);
      cuts.push({ kind: 'isolate', atMs, durationMs: lastsMs, hosts, others: servers, chance: random.uint32() });
    }
    nemesis.unleash([...planFaults(random, { kinds: KINDS, durationMs, servers, clients }), ...cuts]);
    await this.world.sleep(durationMs);
  }

  /** From now on nothing goes wrong; resolves when the ensemble is whole. */
  async heal(): Promise<void> {
    this.#nemesis?.heal();
    for (let i = 0; i < 60 && !this.ensemble.isWhole; i++) {
      this.#nemesis?.tend();
      await this.world.until(() => this.ensemble.isWhole, 2000);
    }
  }

  /** Everything that was committed, after `heal`; null when nobody has the beginning any more. */
  async committed(): Promise<CommittedTree | null> {
    await this.heal();
    return committedSince0(this.ensemble);
  }

  /** The process behind a client dies: its session lives on until it times out. */
  async kill(client: Client): Promise<void> {
    // Between two sessions there is none to leave behind.
    await client.detach().catch(() => client.close({ timeoutMs: 1 }));
  }
}

/** Of the servers. */
type CoreOptions = NonNullable<NonNullable<Parameters<VirtualWorld['startEnsemble']>[0]>['core']>;

const KINDS: readonly FaultKind[] = [
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

/** Runs a program in a world of its own. A failure names the seed. */
export async function inWorld(
  seed: number,
  program: (world: GroupWorld) => Promise<void>,
  servers = 3,
  core: CoreOptions = {},
): Promise<void> {
  const made = new GroupWorld(seed, servers, core);
  try {
    await made.world.run(() => program(made));
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}
