import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import type { TraceEvent } from '@meerkat/core';
import { SeededRandom } from './seeded-random.ts';
import { Timeline } from './timeline.ts';
import { TraceHash } from './trace-hash.ts';
import { makeClientClock, VirtualTransport } from './virtual-client.ts';
import { DEFAULT_LINK, type LinkQuality, VirtualNetwork } from './virtual-network.ts';
import { VirtualServer, type VirtualServerOptions } from './virtual-server.ts';

export interface VirtualWorldOptions {
  /** Decides everything that chance decides. A whole number, at most 2**53 − 1. */
  readonly seed: number;
  readonly link?: LinkQuality | undefined;
  /** Hears of everything that happens, in order: time, where, what. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/**
 * A world in one process: virtual time, a network, servers with disks, and real clients. The same seed and the same
 * program give the same world, event by event; `traceHash` tells.
 *
 * @example
 * const world = new VirtualWorld({ seed: 7 });
 * world.startServer({ host: 'zk1' });
 * const done = world.run(async () => {
 *   const client = await world.connect('app', { servers: 'zk1' });
 *   await client.create('/a');
 * });
 * await done;
 */
export class VirtualWorld {
  readonly timeline: Timeline = new Timeline();
  readonly random: SeededRandom;
  readonly network: VirtualNetwork;
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #trace = new TraceHash();

  constructor(options: VirtualWorldOptions) {
    this.random = new SeededRandom(options.seed, 'world');
    this.network = new VirtualNetwork(this.timeline, this.random.fork('network'), options.link ?? DEFAULT_LINK);
    this.#onLine = options.onLine;
  }

  /** One number for everything that has been told so far. */
  get traceHash(): string {
    return this.#trace.toString();
  }

  /** Tells something that happened, and makes it part of the hash. */
  tell(place: string, what: string): void {
    const line = `${this.timeline.nowMs.toFixed(3)} ${place} ${what}`;
    this.#trace.add(line);
    this.#onLine?.(line);
  }

  startServer(options: VirtualServerOptions): VirtualServer {
    const server = new VirtualServer(options, {
      timeline: this.timeline,
      network: this.network,
      random: this.random.fork(`server ${options.host}`),
      onTrace: (event) => this.tell(options.host, describe(event)),
    });
    server.start();
    return server;
  }

  /** A client on a virtual host. Only inside `run`, which moves the time. */
  async connect(host: string, options: ConnectOptions): Promise<Client> {
    const client = await connect({
      ...options,
      transport: new VirtualTransport(this.network, this.timeline, host),
      clock: makeClientClock(this.timeline),
      random: this.random.fork(`client ${host}`),
    });
    client.onState(({ state, reason }) => this.tell(host, `${state}: ${reason}`));
    return client;
  }

  /** Resolves when so much virtual time has passed. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timeline.after(ms, resolve);
    });
  }

  /**
   * Runs a program in virtual time until it has ended.
   *
   * @param limitMs virtual milliseconds after which the program counts as stuck
   * @throws whatever the program throws; Error when it is stuck, with what was planned last
   */
  async run<T>(program: () => Promise<T>, limitMs = 3_600_000): Promise<T> {
    const endMs = this.timeline.nowMs + limitMs;
    let outcome: { readonly value: T } | { readonly error: unknown } | null = null;
    program().then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    await drainPromises();
    while (outcome === null) {
      if (!this.timeline.step(endMs)) {
        throw new Error(`the program waits for something that did not happen within ${limitMs} virtual ms`);
      }
      await drainPromises();
    }
    const settled = outcome as { readonly value: T } | { readonly error: unknown };
    if ('error' in settled) throw settled.error;
    return settled.value;
  }

  /** Lets everything go on for so much virtual time. */
  advance(ms: number): Promise<void> {
    return this.run(() => this.sleep(ms));
  }
}

/** Everything that promises have to say to each other has been said. */
function drainPromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function describe(event: TraceEvent): string {
  const parts = Object.entries(event).flatMap(([key, value]) => {
    if (key === 'kind' || value === null || value === undefined) return [];
    if (value instanceof Error) return [`${key}=${value.message}`];
    if (Array.isArray(value)) return [`${key}=${value.join(',')}`];
    if (typeof value === 'object') return 'port' in value ? [`${key}=:${String(value.port)}`] : [];
    return [`${key}=${String(value)}`];
  });
  return [event.kind, ...parts].join(' ');
}
