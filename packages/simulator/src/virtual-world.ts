import { channel } from 'node:diagnostics_channel';
import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import type { PeerCertificate } from '@meerkat/core';
import { describeEvent } from './describe-event.ts';
import { DEFAULT_LINK, type LinkQuality } from './link-quality.ts';
import { SeededRandom } from './seeded-random.ts';
import { Timeline } from './timeline.ts';
import { TraceHash } from './trace-hash.ts';
import { type ClientTap, makeClientClock, VirtualTransport } from './virtual-client.ts';
import { VirtualClock } from './virtual-clock.ts';
import { type EnsembleShape, VirtualEnsemble } from './virtual-ensemble.ts';
import { VirtualNetwork } from './virtual-network.ts';
import { VirtualServer, type VirtualServerOptions } from './virtual-server.ts';
import type { WorldWatcher } from './world-watcher.ts';

export interface VirtualWorldOptions {
  /** Decides everything that chance decides. A whole number, at most 2**53 − 1. */
  readonly seed: number;
  readonly link?: LinkQuality | undefined;
  /** Called for everything that happens, in order, with its time, place and description. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/** Every new world in this process is published on this channel (node:diagnostics_channel). */
export const WORLD_CHANNEL = 'meerkat.simulator.world';
const WORLDS = channel(WORLD_CHANNEL);

/**
 * A world in one process: virtual time, a network, servers with disks, and real clients. The same seed and the same
 * program give the same world, event by event, and the same `traceHash`.
 *
 * @example
 * const world = new VirtualWorld({ seed: 7 });
 * const ensemble = world.startEnsemble({ servers: 3 });
 * await world.run(async () => {
 *   const client = await world.connect('app', { servers: ensemble.connectString });
 *   await client.create('/a');
 *   ensemble.leader?.crash({ losesPower: true });
 *   await client.create('/b');
 * });
 */
export class VirtualWorld {
  readonly timeline: Timeline = new Timeline();
  readonly random: SeededRandom;
  readonly network: VirtualNetwork;
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #trace = new TraceHash();
  readonly #clocks = new Map<string, VirtualClock>();
  readonly #watchers: WorldWatcher[] = [];
  #failure: { readonly error: unknown } | null = null;

  constructor(options: VirtualWorldOptions) {
    this.random = new SeededRandom(options.seed, 'world');
    this.network = new VirtualNetwork(this.timeline, this.random.fork('network'), options.link ?? DEFAULT_LINK);
    this.#onLine = options.onLine;
    WORLDS.publish(this);
  }

  /** Virtual milliseconds since the beginning. */
  get nowMs(): number {
    return this.timeline.nowMs;
  }

  /** A hash of everything reported so far. */
  get traceHash(): string {
    return this.#trace.toString();
  }

  /** Reports an event, and adds it to the hash. */
  record(place: string, what: string): void {
    const line = `${this.timeline.nowMs.toFixed(3)} ${place} ${what}`;
    this.#trace.add(line);
    this.#onLine?.(line);
  }

  /** Adds an observer of the servers. */
  watch(watcher: WorldWatcher): void {
    this.#watchers.push(watcher);
  }

  /** The clocks of a host. */
  clockOf(host: string): VirtualClock {
    let clock = this.#clocks.get(host);
    if (clock === undefined) {
      clock = new VirtualClock(this.timeline);
      this.#clocks.set(host, clock);
    }
    return clock;
  }

  startServer(options: VirtualServerOptions): VirtualServer {
    const server = this.addServer(options);
    server.start();
    return server;
  }

  /** A server that has not been started yet. */
  addServer(options: VirtualServerOptions): VirtualServer {
    const watchers = this.#watchers;
    return new VirtualServer(options, {
      timeline: this.timeline,
      clock: this.clockOf(options.host),
      network: this.network,
      random: this.random.fork(`server ${options.host}`),
      onTrace: (server, event) => {
        this.record(options.host, describeEvent(event));
        for (const watcher of watchers) watcher.onTrace?.(server, event);
      },
      onApplied: (server, zxid, treeDigest) => {
        for (const watcher of watchers) watcher.onApplied?.(server, zxid, treeDigest);
      },
      onTurn: (server) => {
        for (const watcher of watchers) watcher.onTurn?.(server);
      },
      onChange: (server, what) => {
        this.record(options.host, what);
        for (const watcher of watchers) watcher.onChange?.(server, what);
      },
    });
  }

  /** Servers zk1, zk2, … and observers behind them, on hosts of these names, all of them started now. */
  startEnsemble(shape: EnsembleShape): VirtualEnsemble {
    const ensemble = this.addEnsemble(shape);
    for (const server of ensemble.servers) server.start();
    return ensemble;
  }

  /** The same, not started yet. */
  addEnsemble(shape: EnsembleShape): VirtualEnsemble {
    return new VirtualEnsemble(this, shape);
  }

  /**
   * A client on a virtual host. Only inside `run`, which moves the time.
   *
   * @param makeTap sees the bytes of its connections
   */
  async connect(
    host: string,
    options: ConnectOptions,
    makeTap: ((server: string) => ClientTap) | null = null,
    certificate: PeerCertificate | null = null,
  ): Promise<Client> {
    const client = await connect({
      ...options,
      transport: new VirtualTransport(this.network, this.timeline, host, makeTap, certificate),
      clock: makeClientClock(this.timeline, this.clockOf(host)),
      random: this.random.fork(`client ${host}`),
    });
    client.onState(({ state, reason }) => this.record(host, `${state}: ${reason}`));
    return client;
  }

  /** Ends the running program with the error of a background task. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.timeline.touch();
  }

  /** Resolves when so much virtual time has passed. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timeline.after(ms, resolve);
    });
  }

  /** Resolves with true once `holds` returns true, called every `everyMs` virtual ms; with false after `limitMs`. */
  async until(holds: () => boolean, limitMs: number, everyMs = 10): Promise<boolean> {
    const endMs = this.timeline.nowMs + limitMs;
    while (!holds()) {
      if (this.timeline.nowMs >= endMs) return false;
      await this.sleep(everyMs);
    }
    return true;
  }

  /**
   * Runs a program in virtual time until it ends. The program may wait only for promises and virtual time: no seed decides
   * when a timer, file or socket of the real machine completes.
   *
   * @param limitMs virtual milliseconds after which the program counts as stuck
   * @throws the program's error, or a server's assertion; Error when the program is stuck
   */
  async run<T>(program: () => Promise<T>, limitMs = 3_600_000): Promise<T> {
    const { timeline } = this;
    const endMs = timeline.nowMs + limitMs;
    let outcome: { readonly value: T } | { readonly error: unknown } | null = null;
    program().then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    let eventsUntilBreath = EVENTS_PER_BREATH;
    await drainPromises();
    while (outcome === null) {
      timeline.settle();
      do {
        if (!timeline.step(endMs)) {
          throw new Error(`the program waits for something that did not happen within ${limitMs} virtual ms`);
        }
      } while (!timeline.isTouched && --eventsUntilBreath > 0);
      if (eventsUntilBreath > 0) await drainPromises();
      else {
        eventsUntilBreath = EVENTS_PER_BREATH;
        await breathe();
      }
      if (this.#failure !== null) throw this.#failure.error;
    }
    const settled = outcome as { readonly value: T } | { readonly error: unknown };
    if ('error' in settled) throw settled.error;
    return settled.value;
  }

  /** Lets this much virtual time pass. */
  advance(ms: number): Promise<void> {
    return this.run(() => this.sleep(ms));
  }
}

/** Events after which the real event loop gets a turn, for signals and for other code in this process. */
const EVENTS_PER_BREATH = 20_000;

/**
 * Resolves when all promise callbacks have run: Node runs its tick queue when no microtask is left. `setImmediate` would
 * do the same at twenty times the cost.
 */
function drainPromises(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
