import { existsSync } from 'node:fs';
import { DiskError, type Ports, ServerCore, type ServerView, type Trace } from '@meerkat/core';
import { makeFourLetterWords } from './admin/four-letter-words.ts';
import { makeAuthenticator } from './auth/authenticator.ts';
import type { Configuration } from './config/options.ts';
import { Deferred } from './deferred.ts';
import { ExitCode, ServerError } from './exit-codes.ts';
import { type Logger, SILENT_LOGGER } from './logger.ts';
import { Metrics } from './metrics.ts';
import { NODE_CLOCK } from './node/clock.ts';
import { NodeDisk } from './node/disk.ts';
import { HeldError } from './node/hold.ts';
import { type Listener, listen } from './node/network.ts';
import { NodeRandom } from './node/random.ts';
import { Turn } from './node/turn.ts';
import { TraceLog } from './trace-log.ts';

/** A server that serves clients. */
export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number };
  readonly view: ServerView;
  /** Finishes what is in flight, syncs, closes connections and files. */
  stop(): Promise<void>;
  /** Resolves with the reason when the server cannot go on; it has stopped then. Stays pending otherwise. */
  readonly failed: Promise<ServerError>;
}

export interface StartOptions {
  readonly logger?: Logger;
  /** Sees every event of the core besides the log and the metrics. */
  readonly trace?: Trace;
  /** Aborted: the start is given up, as soon as what is in flight allows it. */
  readonly signal?: AbortSignal;
}

/**
 * Starts one server: puts ports, core and listener together.
 *
 * The port is taken first, because that fails quickest; connections that come before the database is there are closed.
 *
 * @returns once clients are served
 * @throws ServerError when it cannot start; nothing is left behind then
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<RunningServer> {
  const server = new Server(configuration, options);
  await server.start(options.signal);
  return server;
}

/** Milliseconds that clients get to close their ends after the last replies have left. */
const DRAIN_MS = 500;

class Server implements RunningServer {
  readonly failed: Promise<ServerError>;
  readonly #configuration: Configuration;
  readonly #logger: Logger;
  readonly #metrics = new Metrics(NODE_CLOCK);
  readonly #turn: Turn;
  readonly #disk: NodeDisk;
  readonly #core: ServerCore;
  #listener: Listener | null = null;
  #state: 'starting' | 'serving' | 'stopping' | 'ended' = 'starting';
  readonly #served = new Deferred<void>();
  readonly #stopped = new Deferred<void>();
  readonly #failure = new Deferred<ServerError>();

  constructor(configuration: Configuration, { logger = SILENT_LOGGER, trace }: StartOptions) {
    this.#configuration = configuration;
    this.#logger = logger;
    this.failed = this.#failure.promise;
    // Whoever waits for the start hears of its failure there; nobody has to.
    this.#served.promise.catch(() => {});
    this.#turn = new Turn(NODE_CLOCK, (error) => this.#onFailed(error));
    this.#disk = new NodeDisk(this.#turn);
    const listeners: Trace[] = [
      this.#metrics,
      new TraceLog(logger, NODE_CLOCK),
      ...(trace === undefined ? [] : [trace]),
    ];
    const ports: Ports = {
      clock: NODE_CLOCK,
      random: new NodeRandom(),
      disk: this.#disk,
      authenticator: makeAuthenticator(configuration.server.auth),
      trace: {
        emit(event) {
          for (const listener of listeners) listener.emit(event);
        },
      },
    };
    const fourLetterWords = makeFourLetterWords({
      configuration,
      metrics: this.#metrics,
      clientPort: () => this.address.port,
    });
    this.#core = new ServerCore(
      ports,
      configuration.core,
      { fourLetterWords },
      {
        onServing: () => this.#served.resolve(),
        onStopped: () => this.#stopped.resolve(),
        onFailed: (error) => this.#onFailed(error),
      },
    );
  }

  get address(): { readonly host: string; readonly port: number } {
    const { clientHost, clientPort } = this.#configuration.server;
    return { host: this.#listener?.host ?? clientHost ?? '::', port: this.#listener?.port ?? clientPort };
  }

  get view(): ServerView {
    return this.#core.view;
  }

  async start(signal: AbortSignal | undefined): Promise<void> {
    this.#checkDirectories();
    await this.#listen();
    this.#turn.start(this.#core, this.#disk);
    this.#core.start();
    const onAbort = (): void => {
      void this.stop().then(() => this.#served.reject(new ServerError(ExitCode.ok, 'the start was given up')));
    };
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#served.promise;
      if (this.#state === 'starting') this.#state = 'serving';
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async stop(): Promise<void> {
    if (this.#state === 'ended') return;
    if (this.#state !== 'stopping') {
      this.#state = 'stopping';
      this.#listener?.close();
      this.#core.stop();
      this.#turn.mark();
    }
    await this.#stopped.promise;
    await this.#listener?.drain(DRAIN_MS);
    this.#end();
  }

  #checkDirectories(): void {
    const { createsDirectories, dataDirectory, dataLogDirectory } = this.#configuration.server;
    if (createsDirectories) return;
    for (const directory of [dataDirectory, dataLogDirectory]) {
      if (existsSync(directory)) continue;
      const message = `the data directory ${directory} does not exist and datadir.autocreate is off: create it, or correct dataDir`;
      throw new ServerError(ExitCode.dataDirectory, message);
    }
  }

  async #listen(): Promise<void> {
    const { clientHost, clientPort, listenBacklog, tcpKeepAlive } = this.#configuration.server;
    const options = {
      host: clientHost,
      port: clientPort,
      backlog: listenBacklog,
      keepAlive: tcpKeepAlive,
      traffic: this.#metrics,
    };
    try {
      this.#listener = await listen(
        options,
        this.#turn,
        (stream) => this.#core.onStreamOpened(stream),
        (message) => this.#logger.log('warn', message),
      );
    } catch (error) {
      throw new ServerError(ExitCode.unexpected, describeListenError(error, clientHost, clientPort), error);
    }
  }

  /** The core told that it cannot go on, or threw. */
  #onFailed(error: unknown): void {
    if (this.#state === 'ended') return;
    const isStart = this.#state === 'starting';
    const failure = describeFailure(error, isStart);
    if (!isStart) this.#logger.log('error', `the server stops: ${failure.message}`);
    this.#listener?.close();
    this.#end();
    void this.#listener?.drain(0);
    this.#served.reject(failure);
    this.#stopped.resolve();
    this.#failure.resolve(failure);
  }

  #end(): void {
    this.#state = 'ended';
    this.#turn.stop();
    this.#disk.releaseAll();
  }
}

function describeListenError(error: unknown, host: string | null, port: number): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const place = `${host === null ? 'port' : `${host.includes(':') ? `[${host}]` : host}:`}${host === null ? ' ' : ''}${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `cannot listen on ${place}: it is in use; stop the program that listens there, or set another clientPort`;
    case 'EACCES':
      return `cannot listen on ${place}: permission denied; ports below 1024 are for root, set another clientPort`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `cannot listen on ${place}: ${host} is no address of this machine; correct clientPortAddress`;
    default:
      return `cannot listen on ${place}: ${message}`;
  }
}

function describeFailure(error: unknown, isStart: boolean): ServerError {
  if (!(error instanceof Error)) return new ServerError(ExitCode.unexpected, String(error), error);
  // Once it serves, the storage itself says what to do.
  const hint = isStart ? findHint(error) : null;
  const message = hint === null || error.message.includes(hint) ? error.message : `${error.message}; ${hint}`;
  // Until the server serves, all that can fail is its data directories; a mistake of ours has its own name.
  const isDirectory = isStart && error.name !== 'AssertionError' && error.name !== 'TypeError';
  return new ServerError(isDirectory ? ExitCode.dataDirectory : ExitCode.unexpected, message, error);
}

/** What to do about an error of the disk; null when there is no advice. */
function findHint(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!(cause instanceof DiskError)) continue;
    switch (cause.code) {
      case 'EBUSY':
        return cause.cause instanceof HeldError ? `the other one: ${cause.cause.holder}` : null;
      case 'EACCES':
      case 'EPERM':
        return 'give the user that runs this server the right to write there, or set another dataDir';
      case 'EROFS':
        return 'the file system is read-only: set another dataDir';
      case 'ENOTDIR':
      case 'EEXIST':
        return 'a file is in the way: remove it, or set another dataDir';
      case 'ENOSPC':
      case 'EDQUOT':
        return 'the disk is full: make room, then start the server again';
      case 'EIO':
        return 'the device has failed: look at the log of the system before this server starts again';
      default:
        return null;
    }
  }
  return null;
}
