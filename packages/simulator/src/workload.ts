import type { History } from './history.ts';
import { WorkloadAcls } from './workload-acls.ts';
import { WorkloadClient } from './workload-client.ts';
import type { WorkloadHost } from './workload-host.ts';
import { Meetings } from './workload-meetings.ts';
import { DEFAULT_WORKLOAD, type WorkloadOptions } from './workload-options.ts';

/** Real clients on hosts c1, c2, … that perform random operations of all kinds and record them in a history. */
export class Workload {
  readonly clients: readonly WorkloadClient[];
  #running: Promise<unknown> = Promise.resolve();

  constructor(world: WorkloadHost, history: History, options: Partial<WorkloadOptions> = {}) {
    const whole = { ...DEFAULT_WORKLOAD, ...options };
    let connection = 0;
    const nextConnection = (): number => ++connection;
    const meetings = new Meetings();
    const acls = whole.hasAcls ? new WorkloadAcls(world.random.fork('acls')) : null;
    this.clients = Array.from(
      { length: whole.clients },
      (_, i) =>
        new WorkloadClient(
          `c${i + 1}`,
          acls?.identityOf(i) ?? null,
          acls,
          world,
          history,
          whole,
          nextConnection,
          meetings,
        ),
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
    // `rest` and `stop` report the error.
    this.#running.catch(() => {});
  }

  /** Stops sending requests, and waits for outstanding ones. The clients stay, with their watches. */
  async rest(): Promise<void> {
    for (const client of this.clients) client.stop();
    await this.#running;
    await Promise.all(this.clients.map((client) => client.settle()));
  }

  /** Closes the clients. */
  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()));
  }

  /** Everything that clients could watch, parents first. */
  get watchable(): readonly string[] {
    return this.clients[0]?.watchable ?? [];
  }

  /** Where limits of quotas may stand. */
  get quotaLimits(): readonly string[] {
    return this.clients[0]?.quotaLimits ?? [];
  }

  /** Stops sending requests, waits for outstanding ones, and closes the clients. */
  async stop(): Promise<void> {
    for (const client of this.clients) client.stop();
    await this.#running;
    await this.close();
  }
}
