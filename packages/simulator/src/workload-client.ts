import type { ConnectOptions } from '@meerkat/client';
import type { History, MultiPart, Operation, OperationRequest, ReadRequest, WriteRequest } from './history.ts';
import { HistoryTap } from './history-tap.ts';
import { RecordedClient } from './recorded-client.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { WorkloadOptions } from './workload.ts';
import type { WorkloadHost } from './workload-host.ts';

/**
 * One client of a workload: asks for something, now and then before the last answer has come, and pauses.
 *
 * The znodes are `/w`, the keys `/w/0`, `/w/1`, … with children of their own, and sequential ones below `/w/q`. Every
 * value that is written is written once, so that a reader's value tells which write it saw.
 */
export class WorkloadClient {
  readonly host: string;
  readonly #world: WorkloadHost;
  readonly #history: History;
  readonly #options: WorkloadOptions;
  readonly #random: SeededRandom;
  readonly #tap: HistoryTap;
  #recorded: RecordedClient | null = null;
  #isOver = false;
  #outstanding = 0;
  #onAnswer: (() => void) | null = null;
  #values = 0;
  readonly #versions: Map<string, number> = new Map();
  /** Sequential znodes that it has made and not deleted yet. */
  #sequential: string[] = [];
  readonly #watchEnds: (() => void)[] = [];

  constructor(
    host: string,
    world: WorkloadHost,
    history: History,
    options: WorkloadOptions,
    nextConnection: () => number,
  ) {
    this.host = host;
    this.#world = world;
    this.#history = history;
    this.#options = options;
    this.#random = world.random.fork(`workload ${host}`);
    this.#tap = new HistoryTap(history, host, nextConnection);
  }

  get isConnected(): boolean {
    return this.#recorded?.client.state === 'connected';
  }

  async run(): Promise<void> {
    const meanMs = 1000 / this.#options.operationsPerSecond;
    while (!this.#isOver) {
      const recorded = this.#recorded ?? (await this.#connect());
      while (this.#outstanding >= this.#options.outstandingMax) await this.#nextAnswer();
      if (this.#isOver) break;
      await this.#act(recorded);
      // Exponential pauses: some requests come close together, some far apart.
      await this.#world.sleep(-Math.log(1 - this.#random.fraction()) * meanMs);
    }
    while (this.#outstanding > 0) await this.#nextAnswer();
  }

  stop(): void {
    this.#isOver = true;
    for (const end of this.#watchEnds.splice(0)) end();
  }

  async close(): Promise<void> {
    await this.#recorded?.close();
    this.#recorded = null;
  }

  async #connect(session?: ConnectOptions['session']): Promise<RecordedClient> {
    const random = this.#random;
    const { sessionTimeoutMinMs, sessionTimeoutMaxMs } = this.#options;
    const client = await this.#world.connect(
      this.host,
      {
        sessionTimeoutMs: random.between(sessionTimeoutMinMs, sessionTimeoutMaxMs),
        attemptTimeoutMs: 500,
        backOff: { minMs: 20, maxMs: 500 },
        connectTimeoutMs: NEVER_MS,
        session,
      },
      this.#tap.makeTap,
    );
    this.#recorded = new RecordedClient(client, this.host, this.#history, this.#tap);
    return this.#recorded;
  }

  async #act(recorded: RecordedClient): Promise<void> {
    const random = this.#random;
    const dice = random.fraction();
    if (dice < 0.005) {
      // The session ends, and the next action begins another.
      this.#endWatches();
      this.#recorded = null;
      await recorded.close();
    } else if (dice < 0.009) await this.#passOn(recorded);
    else if (dice < 0.024) {
      await recorded.client.moveTo(null, { timeoutMs: 2000 }).catch(() => {});
    } else if (dice < 0.034) this.#watchForAWhile(recorded);
    else {
      const timeoutMs = random.chance(0.03) ? random.between(20, 2000) : null;
      this.#outstanding++;
      const answered = recorded
        .call(this.#nextRequest(), timeoutMs)
        .then((operation) => this.#onAnswered(operation))
        .catch((error: unknown) => this.#world.fail(error));
      if (random.chance(0.5)) await answered;
    }
  }

  /** The process ends and another one goes on with its session, or nobody does. */
  async #passOn(recorded: RecordedClient): Promise<void> {
    this.#endWatches();
    this.#recorded = null;
    // What is in flight is answered or lost; a detached client has nothing more to say.
    const session = await recorded.client.detach({ timeoutMs: 2000 }).catch(() => undefined);
    if (session === undefined) await recorded.close();
    else if (this.#random.chance(0.7)) await this.#connect(session);
  }

  #watchForAWhile(recorded: RecordedClient): void {
    const { armed, end } = recorded.watch(this.#pickPath(), this.#random.chance(0.5));
    this.#outstanding++;
    armed.then((operation) => this.#onAnswered(operation)).catch((error: unknown) => this.#world.fail(error));
    this.#watchEnds.push(end);
    if (this.#watchEnds.length > WATCHES_MAX) this.#watchEnds.shift()?.();
  }

  #endWatches(): void {
    for (const end of this.#watchEnds.splice(0)) end();
  }

  #nextRequest(): OperationRequest {
    const random = this.#random;
    const dice = random.fraction();
    if (this.#history.operations.length < this.#options.clients * 2) {
      return { op: 'create', path: ROOT, data: '', mode: 'persistent', isSequential: false };
    }
    if (dice < 0.5) return this.#nextRead();
    if (dice < 0.9) return this.#nextWrite();
    if (dice < 0.97) {
      const parts = Array.from({ length: random.between(1, 4) }, () => this.#nextPart());
      return { op: 'multi', parts };
    }
    return { op: 'sync', path: ROOT };
  }

  #nextRead(): ReadRequest {
    const random = this.#random;
    const op = random.pick(['get', 'get', 'exists', 'children'] as const);
    const path = random.chance(0.2) ? ROOT : this.#pickPath();
    return { op, path, hasWatch: random.chance(0.3), isLinearizable: random.chance(0.2) };
  }

  #nextPart(): MultiPart {
    if (!this.#random.chance(0.25)) return this.#nextWrite();
    const path = this.#pickPath();
    return { op: 'check', path, version: this.#pickVersion(path) };
  }

  #nextWrite(): WriteRequest {
    const random = this.#random;
    const path = this.#pickPath();
    const dice = random.fraction();
    if (dice < 0.35) {
      const isSequential = random.chance(0.35);
      const mode = random.chance(0.4) ? 'ephemeral' : 'persistent';
      return { op: 'create', path: isSequential ? `${ROOT}/q-` : path, data: this.#nextValue(), mode, isSequential };
    }
    if (dice < 0.7) return { op: 'set', path, data: this.#nextValue(), version: this.#pickVersion(path) };
    if (random.chance(0.5)) {
      const known = this.#sequential.shift();
      if (known !== undefined) return { op: 'delete', path: known, version: -1 };
    }
    return { op: 'delete', path, version: this.#pickVersion(path) };
  }

  #pickPath(): string {
    const random = this.#random;
    const key = `${ROOT}/${random.between(0, this.#options.keys - 1)}`;
    return random.chance(0.25) ? `${key}/${random.between(0, 1)}` : key;
  }

  /** Any, the one that was seen last, or one that is wrong. */
  #pickVersion(path: string): number {
    if (this.#random.chance(0.4)) return -1;
    return (this.#versions.get(path) ?? 0) + (this.#random.chance(0.1) ? 1 : 0);
  }

  #nextValue(): string {
    return `${this.host}.${++this.#values}`;
  }

  #onAnswered({ request, result }: Operation): void {
    this.#outstanding--;
    this.#onAnswer?.();
    this.#onAnswer = null;
    if (result === null) return;
    if (result.op === 'create' && request.op === 'create' && request.isSequential) this.#sequential.push(result.path);
    if ('path' in request && 'stat' in result && result.stat !== null) {
      this.#versions.set(request.path, result.stat.version);
    }
  }

  #nextAnswer(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAnswer = resolve;
    });
  }
}

const ROOT = '/w';
const WATCHES_MAX = 2;
/** A client of a simulation waits for its servers as long as it takes. */
const NEVER_MS = 2 ** 31;
