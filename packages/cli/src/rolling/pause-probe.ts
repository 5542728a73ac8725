import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, ZooKeeperError } from '@meerkat/client';

/** What one client saw of the service since it was last asked. */
export interface SeenPause {
  /** Longest time between two successes, in milliseconds. */
  readonly pauseMs: number;
  readonly requests: number;
  /** Requests that failed, and were repeated. */
  readonly failures: number;
}

/** Milliseconds between two requests, and that one may take before it is asked again. */
const PERIOD_MS = 10;
const REQUEST_MS = 5000;

/**
 * A client that asks the service without end and measures how long it is not answered. A write, if it is given a znode;
 * else `sync`, which every server sends to the leader.
 */
export class PauseProbe {
  readonly #client: Client;
  readonly #path: string | null;
  readonly #stopping = new AbortController();
  #lastMs = performance.now();
  #pauseMs = 0;
  #requests = 0;
  #failures = 0;
  #running: Promise<void> = Promise.resolve();

  /** @param path an ephemeral znode is made there, and written; null: nothing is written */
  static async start(client: Client, path: string | null): Promise<PauseProbe> {
    if (path !== null) await client.create(path, '', { mode: 'ephemeral' });
    const probe = new PauseProbe(client, path);
    probe.#running = probe.#run();
    return probe;
  }

  private constructor(client: Client, path: string | null) {
    this.#client = client;
    this.#path = path;
  }

  get sessionId(): bigint | null {
    return this.#client.session?.id ?? null;
  }

  /** What was seen since the last call. */
  take(): SeenPause {
    const pauseMs = Math.round(Math.max(this.#pauseMs, performance.now() - this.#lastMs));
    const seen = { pauseMs, requests: this.#requests, failures: this.#failures };
    this.#pauseMs = 0;
    this.#requests = 0;
    this.#failures = 0;
    return seen;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#ask(signal);
        const nowMs = performance.now();
        this.#pauseMs = Math.max(this.#pauseMs, nowMs - this.#lastMs);
        this.#lastMs = nowMs;
        this.#requests++;
      } catch (error) {
        if (!(error instanceof ZooKeeperError)) throw error;
        this.#failures++;
        if (error.code === 'NONODE') await this.#remake();
      }
      await sleep(PERIOD_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** A dead session comes back as another one, whose ephemeral znode is not there. */
  async #remake(): Promise<void> {
    if (this.#path !== null) await this.#client.create(this.#path, '', { mode: 'ephemeral' }).catch(() => {});
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const call = { timeoutMs: REQUEST_MS, signal };
    if (this.#path === null) await this.#client.sync('/', call);
    else await this.#client.set(this.#path, '', call);
  }
}
