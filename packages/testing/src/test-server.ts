import { type CoreOptions, formatSessionId, type PeerAddress, type ServerView, type Trace } from '@meerkat/core';
import {
  type Configuration,
  DEFAULT_AUTH_OPTIONS,
  type Logger,
  makeConfiguration,
  type RunningServer,
  type ServerError,
  type ServerOptions,
  type StartOptions,
  startServer,
} from '@meerkat/server';
import { type DataPlace, openDataPlace, type Storage } from './data-place.ts';
import { ProcessClock } from './process-clock.ts';
import { whilePortIsTaken } from './taken-port.ts';
import type { TestCertificates } from './test-certificates.ts';

export type { Storage } from './data-place.ts';

export interface TestServerOptions {
  /** Where the data is; `'memory'` by default. */
  readonly storage?: Storage;
  /** The port on 127.0.0.1; 0, the default, takes a free one, which the server keeps through its restarts. */
  readonly port?: number;
  /** Length of a tick in milliseconds, 100 by default: a session expires at most one tick after its timeout. */
  readonly tickTimeMs?: number;
  /** Shortest and longest session timeout that a client can get, in milliseconds: two ticks and a minute by default. */
  readonly sessionTimeoutMinMs?: number;
  readonly sessionTimeoutMaxMs?: number;
  /** TTL znodes, as `extendedTypesEnabled` in zoo.cfg. Default false. */
  readonly extendedTypesEnabled?: boolean;
  /** Clients, and servers between them, speak TLS with these certificates; by default none does. */
  readonly tls?: TestCertificates;
  /** `user:base64(sha1("user:password"))` of the super user; omitted: none. */
  readonly superDigest?: string;
  /** All other settings of zoo.cfg, under the names of the server's packages. */
  readonly core?: Partial<Omit<CoreOptions, 'snapshotDirectory' | 'logDirectory'>>;
  readonly server?: Partial<Omit<ServerOptions, 'dataDirectory' | 'dataLogDirectory' | 'clientHost' | 'clientPort'>>;
  /** Gets the log of the server; none by default. */
  readonly logger?: Logger;
  /** Sees every event of the server's core: sessions, connections, syncs. */
  readonly trace?: Trace;
  /** Puts something between a server of an ensemble and its streams to the others; `TestEnsemble` does. */
  readonly decorateNetwork?: NonNullable<StartOptions['decorateNetwork']>;
}

/** A session that lives on the server. */
export interface TestSession {
  readonly id: bigint;
  /** As negotiated, in milliseconds. */
  readonly timeoutMs: number;
  /** `host:port` of its client; null while it has no connection. */
  readonly address: string | null;
  /** Paths of its ephemeral znodes. */
  readonly ephemerals: readonly string[];
}

export interface KillOptions {
  /** Cuts the power besides: only what was synced stays on the disk in memory. */
  readonly losesUnsynced?: boolean;
}

type State =
  | { readonly kind: 'running'; readonly server: RunningServer; readonly isPaused: boolean }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly server: RunningServer; readonly failure: ServerError }
  | { readonly kind: 'disposed' };

/**
 * A real server inside this process, for tests: the whole server on a port of 127.0.0.1, with the things that a test does
 * to a server.
 *
 *     await using server = await TestServer.start();
 *     const client = await connect(server.connectString);
 *     …
 *     await server.expireSession(client.sessionId);
 *
 * A server that fails by a mistake of its own ends alone: connections break, pending and later calls reject with the
 * failure, and the process continues. Disposing of it rejects too, unless the failure has been reported before.
 */
export class TestServer implements AsyncDisposable {
  readonly #options: TestServerOptions;
  readonly #place: DataPlace;
  #port: number;
  #state: State = { kind: 'stopped' };
  /** Resolves once all activity of the server that was killed last has ceased. */
  #killed: Promise<void> = Promise.resolve();
  #failed: Promise<ServerError> = new Promise(() => {});
  /** The failure has been reported, or was asked for. */
  #isFailureReported = false;

  /**
   * Starts a server, by default on a free port and with its data in memory.
   *
   *     await using server = await TestServer.start({ storage: 'directory', tickTimeMs: 50 });
   *
   * @returns once clients are served
   * @throws ServerError when it cannot start; nothing is left behind then
   */
  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const place = await openDataPlace(options.storage ?? 'memory');
    const server = new TestServer(options, place);
    try {
      await server.#start();
    } catch (error) {
      await place.remove();
      throw error;
    }
    return server;
  }

  private constructor(options: TestServerOptions, place: DataPlace) {
    this.#options = options;
    this.#place = place;
    this.#port = options.port ?? 0;
  }

  /** The port on 127.0.0.1, the same through all restarts. */
  get port(): number {
    return this.#port;
  }

  /** What clients connect to: `127.0.0.1:port`. */
  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** The directory of the data; null when they are in memory. */
  get directory(): string | null {
    return this.#place.directory;
  }

  get state(): 'running' | 'paused' | 'stopped' | 'failed' | 'disposed' {
    const { kind } = this.#state;
    return this.#state.kind === 'running' && this.#state.isPaused ? 'paused' : kind;
  }

  /**
   * Resolves with the reason when the server cannot continue. A restart begins a new promise.
   *
   *     const failure = await Promise.race([server.failed, work]);
   */
  get failed(): Promise<ServerError> {
    this.#isFailureReported = true;
    return this.#failed;
  }

  /**
   * What an administrator sees: counts of znodes, connections, watches and sessions, read at the moment of asking.
   *
   *     expect(server.view.watches.count).toBe(0);
   */
  get view(): ServerView {
    return this.#running.view;
  }

  /**
   * The sessions that live, those without a connection too.
   *
   *     const [session] = server.sessions();
   */
  sessions(): readonly TestSession[] {
    const { view } = this.#running;
    return view.sessions().map(({ id, timeoutMs, remote }) => ({
      id,
      timeoutMs,
      address: remote === null ? null : formatAddress(remote),
      ephemerals: [...view.ephemeralsOf(id)],
    }));
  }

  /**
   * Ends a session now, as if nothing had been learned of it for its timeout: it is really expired, by a closeSession in the
   * log.
   *
   *     await server.expireSession(client.sessionId);
   *
   * @returns once its ephemerals are gone, and the watch events and the end of its connection are on their way
   * @throws Error when no such session lives, or the server is paused or does not run
   */
  async expireSession(id: bigint): Promise<void> {
    const server = this.#running;
    if (this.state === 'paused') throw new Error('a paused server cannot expire a session: resume it first');
    if (await this.#reportFailure(server.expireSession(id))) return;
    const known = server.view.sessions().map((session) => formatSessionId(session.id));
    const others = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`;
    throw new Error(`the server has no session ${formatSessionId(id)}: ${others}`);
  }

  /**
   * Freezes the server as SIGSTOP freezes a process: connections are accepted and bytes taken, but nothing is read,
   * answered or expired until `resume`.
   *
   *     server.pause();
   *     await client.until('lost');
   *     server.resume();
   */
  pause(): void {
    const server = this.#running;
    server.pause();
    this.#state = { kind: 'running', server, isPaused: true };
  }

  /** Continues after `pause`; the time between has passed. Clients get one more tick to ping before they expire. */
  resume(): void {
    const server = this.#running;
    server.resume();
    this.#state = { kind: 'running', server, isPaused: false };
  }

  /** Stops as on SIGTERM: what is in flight is finished and synced. Data and sessions wait for `restart`. */
  async stop(): Promise<void> {
    this.#checkNotFailed();
    if (this.#state.kind !== 'running') return;
    const { server } = this.#state;
    await this.#reportFailure(server.stop());
    this.#onEnded(server);
    this.#checkNotFailed();
  }

  /**
   * Ends as by kill -9: nothing in flight is finished or answered. What was acknowledged is there after `restart`.
   *
   *     await server.kill();
   *     await server.restart();
   */
  async kill(options: KillOptions = {}): Promise<void> {
    this.#checkAlive();
    if (this.#state.kind === 'running') {
      const { server } = this.#state;
      // Nothing of it moves from here on.
      this.#killed = server.kill();
      this.#onEnded(server);
    }
    await this.#killed;
    if (options.losesUnsynced === true) this.#place.loseUnsynced();
  }

  /**
   * Starts again on the same port and the same data, sessions included; stops first when it runs. Also after `kill` and
   * after a failure.
   */
  async restart(): Promise<void> {
    if (this.#state.kind === 'disposed') throw new Error(DISPOSED);
    // A failed server has stopped already: only wait until its activity has ceased.
    if (this.#state.kind === 'failed') await this.#state.server.stop();
    else await this.stop();
    await this.#killed;
    await whilePortIsTaken(() => this.#start());
  }

  /** Ends it for good: stops the server if it runs, and removes a temporary directory. */
  async dispose(): Promise<void> {
    if (this.#state.kind === 'disposed') return;
    try {
      if (this.#state.kind === 'failed' && !this.#isFailureReported) throw this.#state.failure;
      if (this.#state.kind === 'running') await this.stop();
      await this.#killed;
    } finally {
      this.#state = { kind: 'disposed' };
      await this.#place.remove();
    }
  }

  /** What `await using` calls: the same as `dispose`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #start(): Promise<void> {
    const { logger, trace, decorateNetwork } = this.#options;
    const { disk } = this.#place;
    const server = await startServer(this.#configure(), {
      clock: CLOCK,
      ...(logger === undefined ? {} : { logger }),
      ...(trace === undefined ? {} : { trace }),
      ...(disk === null ? {} : { disk }),
      ...(decorateNetwork === undefined ? {} : { decorateNetwork }),
    });
    this.#port = server.address.port;
    this.#state = { kind: 'running', server, isPaused: false };
    this.#isFailureReported = false;
    this.#failed = server.failed;
    void server.failed.then((failure) => {
      if (this.#isCurrent(server)) this.#state = { kind: 'failed', server, failure };
    });
  }

  #configure(): Configuration {
    const { tickTimeMs = 100, sessionTimeoutMinMs, sessionTimeoutMaxMs, superDigest, core, server } = this.#options;
    const { extendedTypesEnabled = false, tls } = this.#options;
    return makeConfiguration(this.#place.dataDirectory, {
      core: {
        tickTimeMs,
        sessionTimeoutMinMs: sessionTimeoutMinMs ?? 2 * tickTimeMs,
        sessionTimeoutMaxMs: sessionTimeoutMaxMs ?? Math.max(60_000, 20 * tickTimeMs),
        connectionsPerHostMax: 0,
        extendedTypesEnabled,
        ...this.#place.coreDefaults,
        ...core,
      },
      server: {
        fourLetterWordsAllowed: ['*'],
        ...tls?.serverOptions,
        ...server,
        auth: {
          ...DEFAULT_AUTH_OPTIONS,
          x509Enabled: tls !== undefined,
          ...server?.auth,
          ...(superDigest === undefined ? {} : { superDigest }),
        },
        ...(tls === undefined
          ? { clientHost: '127.0.0.1', clientPort: this.#port }
          : { secureClientHost: '127.0.0.1', secureClientPort: this.#port, clientPort: null }),
      },
    });
  }

  get #running(): RunningServer {
    this.#checkAlive();
    if (this.#state.kind === 'running') return this.#state.server;
    throw new Error(`the server on ${this.connectString} is stopped: restart it first`);
  }

  /** @throws when nothing can be asked of this server */
  #checkAlive(): void {
    if (this.#state.kind === 'disposed') throw new Error(DISPOSED);
    this.#checkNotFailed();
  }

  #checkNotFailed(): void {
    if (this.#state.kind !== 'failed') return;
    this.#isFailureReported = true;
    throw this.#state.failure;
  }

  /** When this rejects because the server failed, the failure counts as reported. */
  async #reportFailure<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (this.#state.kind === 'failed') this.#isFailureReported = true;
      throw error;
    }
  }

  #onEnded(server: RunningServer): void {
    if (this.#isCurrent(server)) this.#state = { kind: 'stopped' };
  }

  #isCurrent(server: RunningServer): boolean {
    return this.#state.kind === 'running' && this.#state.server === server;
  }
}

/** Of all servers in this process. */
const CLOCK = new ProcessClock();

const DISPOSED = 'the server has been disposed of: start another one';

function formatAddress({ host, port }: PeerAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
