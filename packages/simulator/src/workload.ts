import type { History } from './history.ts';
import { WorkloadClient } from './workload-client.ts';
import type { WorkloadHost } from './workload-host.ts';

export interface WorkloadOptions {
  /** Default 4. */
  readonly clients: number;
  /** Of one client, on average, while its requests are answered. Default 6. */
  readonly operationsPerSecond: number;
  /** Requests of one client that wait for answers. Default 4. */
  readonly outstandingMax: number;
  /** Znodes that the clients quarrel about. Default 6. */
  readonly keys: number;
  /** Milliseconds; each session has one between. Default 1000 to 6000. */
  readonly sessionTimeoutMinMs: number;
  readonly sessionTimeoutMaxMs: number;
}

export const DEFAULT_WORKLOAD: WorkloadOptions = {
  clients: 4,
  operationsPerSecond: 6,
  outstandingMax: 4,
  keys: 6,
  sessionTimeoutMinMs: 1000,
  sessionTimeoutMaxMs: 6000,
};

/** Real clients on hosts c1, c2, … that do everything clients do, by chance, and note it in a history. */
export class Workload {
  readonly clients: readonly WorkloadClient[];
  #running: Promise<unknown> = Promise.resolve();

  constructor(world: WorkloadHost, history: History, options: Partial<WorkloadOptions> = {}) {
    const whole = { ...DEFAULT_WORKLOAD, ...options };
    let connection = 0;
    const nextConnection = (): number => ++connection;
    this.clients = Array.from(
      { length: whole.clients },
      (_, i) => new WorkloadClient(`c${i + 1}`, world, history, whole, nextConnection),
    );
  }

  get hosts(): readonly string[] {
    return this.clients.map(({ host }) => host);
  }

  /** Every client has a connection and a session. */
  get isConnected(): boolean {
    return this.clients.every((client) => client.isConnected);
  }

  start(): void {
    this.#running = Promise.all(this.clients.map((client) => client.run()));
    // Whoever waits for `stop` hears of it.
    this.#running.catch(() => {});
  }

  /** Asks for nothing more, waits for what was asked, and closes the clients. */
  async stop(): Promise<void> {
    for (const client of this.clients) client.stop();
    await this.#running;
    await Promise.all(this.clients.map((client) => client.close()));
  }
}
