import { createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { type ByteStream, CoreSide, makeRing, type RingPair, type StreamEvents } from '@meerkat/core';
import type { Logger } from '../../logger.ts';
import { isSingleFile, threadScript } from '../../single-file.ts';
import { sendable } from '../../tls/tls-settings.ts';
import type { Listener, ListenOptions } from '../network.ts';
import type { Turn } from '../turn.ts';
import type { IoThreadData, ThreadNote, ThreadPort, ToServer, ToThread } from './messages.ts';
import { SharedCounts } from './shared-counts.ts';
import { type ThreadedEvents, ThreadedListener } from './threaded-listener.ts';

export interface ClientThreadsParts {
  readonly turn: Turn;
  readonly logger: Logger;
  /** Connections of clients, of all threads together. */
  readonly clientsMax: number;
  /** A client has come that is one too many. */
  readonly onClientsCrowd: () => void;
  readonly onBytesReceived: (bytes: number) => void;
  /** Left out: the threads of this package. */
  readonly makeWorker?: (data: IoThreadData) => Worker;
}

/** What a port of I/O threads needs: all of `ListenOptions` that can be sent to another thread. */
export type ThreadListenOptions = Pick<ListenOptions, 'host' | 'port' | 'backlog' | 'keepAlive' | 'tls'>;

/**
 * The I/O threads of a server: sockets and TLS of clients are theirs, and nothing else.
 *
 *     thread 0: accept ─ TLS ─ frames ──┐ rings                ┌── thread 0: sockets
 *     thread 1: accept ─ TLS ─ frames ──┼──► turn of the core ─┼── thread 1: sockets
 *
 * All of them listen on the same ports, and the kernel chooses which of them gets a connection (SO_REUSEPORT).
 *
 * One that dies takes its connections with it. Another one takes its place, at once or, when it dies again soon, after a while.
 */
export class ClientThreads {
  readonly count: number;
  readonly #parts: ClientThreadsParts;
  readonly #counts: SharedCounts;
  readonly #countsBuffer: SharedArrayBuffer;
  readonly #threads: Thread[];
  readonly #listeners: ThreadedListener[] = [];
  #isOver = false;

  /** @param count of threads; more than `threadsMax()` is no use */
  constructor(count: number, parts: ClientThreadsParts) {
    this.count = count;
    this.#parts = parts;
    this.#countsBuffer = SharedCounts.makeBuffer(count);
    this.#counts = new SharedCounts(this.#countsBuffer);
    this.#threads = Array.from({ length: count }, (_, number) => this.#start(number, 0));
  }

  /**
   * Listens in all threads.
   *
   * @returns once all listen; rejects with an error with Node's code when one cannot
   */
  async listen(options: ThreadListenOptions, events: ThreadedEvents): Promise<Listener> {
    const isShared = this.count > 1;
    // With SO_REUSEPORT a port can be taken that another process of this user has: this finds out.
    if (isShared && options.port !== 0) await checkFree(options);
    const { tls } = options;
    const port: ThreadPort = {
      host: options.host,
      port: options.port,
      backlog: options.backlog,
      keepAlive: options.keepAlive,
      number: this.#listeners.length,
      isShared,
      tls:
        tls === undefined
          ? null
          : { settings: sendable(tls.settings), isUnified: tls.isUnified, perHostMax: tls.perHostMax },
    };
    const listener = new ThreadedListener(port, events, {
      send: (message) => {
        for (const thread of this.#threads) thread.send(message);
      },
      mark: () => this.#parts.turn.mark(),
      handshakes: () => this.#counts.handshakes(port.number),
    });
    this.#listeners.push(listener);
    try {
      const [first, ...others] = this.#threads;
      await listener.listenIn(first!.number, (message) => first!.send(message));
      await Promise.all(others.map((thread) => listener.listenIn(thread.number, (message) => thread.send(message))));
    } catch (error) {
      // Those that listen stop, and those that come later do not begin.
      listener.close();
      throw error;
    }
    return listener;
  }

  /** Ends the threads, and what connections they have. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#threads.map((thread) => thread.stop()));
  }

  #start(number: number, deaths: number): Thread {
    const { turn, logger } = this.#parts;
    const rings = { toCore: makeRing(REPORT_RING_BYTES), toThread: makeRing(ORDER_RING_BYTES) };
    const { makeWorker = startWorker, clientsMax } = this.#parts;
    const worker = makeWorker({ rings, counts: this.#countsBuffer, thread: number, clientsMax });
    const thread: Thread = new Thread(number, worker, rings, {
      turn,
      onStream: (stream, port) => this.#listeners[port]!.onStream(stream),
      onGone: (stream) => {
        for (const listener of this.#listeners) listener.onGone(stream);
      },
      onNote: (note) => this.#onNote(note),
      onMessage: (message) => this.#listeners[message.port]!.onMessage(number, message),
      onBytesRead: this.#parts.onBytesReceived,
      onDead: (reason, livedMs) => this.#onDead(number, livedMs < SHORT_LIFE_MS ? deaths + 1 : 0, reason),
    });
    logger.log('debug', `I/O thread ${number} starts`, { event: 'io-thread-started', thread: number });
    return thread;
  }

  #onDead(number: number, deaths: number, reason: string): void {
    if (this.#isOver) return;
    const { logger } = this.#parts;
    this.#counts.clear(number);
    const delayMs = deaths === 0 ? 0 : Math.min(DELAY_MS_MIN * 2 ** (deaths - 1), DELAY_MS_MAX);
    const text = `I/O thread ${number} has ended (${reason}): its connections are closed, those of other threads are not; another one starts${delayMs === 0 ? '' : ` in ${delayMs} ms`}`;
    logger.log('error', text, { event: 'io-thread-failed', thread: number, reason });
    if (deaths >= DEATHS_MAX) {
      const fault = new Error(`I/O thread ${number} has ended ${deaths} times before it listened (${reason})`);
      for (const listener of this.#listeners) if (!listener.hasListened) listener.fail(number, fault);
    }
    const restart = (): void => {
      if (this.#isOver) return;
      const thread = this.#start(number, deaths);
      this.#threads[number] = thread;
      for (const listener of this.#listeners) this.#listenAgain(listener, thread);
    };
    if (delayMs === 0) restart();
    else setTimeout(restart, delayMs);
  }

  #listenAgain(listener: ThreadedListener, thread: Thread): void {
    if (listener.isClosed) return;
    listener
      .listenIn(thread.number, (message) => thread.send(message))
      .catch((error: Error) => {
        if (this.#isOver || listener.isClosed || this.#threads[thread.number] !== thread) return;
        const text = `I/O thread ${thread.number} cannot listen on port ${listener.port}: ${error.message}; it tries again`;
        this.#parts.logger.log('error', text, {
          event: 'io-thread-failed',
          thread: thread.number,
          reason: error.message,
        });
        setTimeout(() => this.#listenAgain(listener, thread), DELAY_MS_MAX).unref();
      });
  }

  #onNote(note: ThreadNote): void {
    switch (note.kind) {
      case 'crowded':
        this.#parts.onClientsCrowd();
        return;
      case 'warning':
        this.#parts.logger.log('warn', note.message);
        return;
      default:
        this.#listeners[note.port]!.onNote(note);
    }
  }
}

/** How many I/O threads can listen on one port: 1 where Node.js has no `reusePort` (before 22.12, and 23.0). */
export function threadsMax(version: string = process.versions.node): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const hasReusePort = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  // Elsewhere the option is refused.
  return hasReusePort && process.platform === 'linux' ? Number.POSITIVE_INFINITY : 1;
}

interface ThreadEvents {
  readonly turn: Turn;
  onStream(stream: ByteStream, port: number): StreamEvents;
  onGone(stream: ByteStream): void;
  onNote(note: ThreadNote): void;
  onMessage(message: NonNullable<ToServer>): void;
  onBytesRead(bytes: number): void;
  onDead(reason: string, livedMs: number): void;
}

/** One I/O thread, as the thread of the core sees it. */
class Thread {
  readonly number: number;
  readonly #worker: Worker;
  readonly #side: CoreSide;
  readonly #events: ThreadEvents;
  readonly #startedMs: number = performance.now();
  #isOver = false;
  #error: Error | null = null;

  constructor(number: number, worker: Worker, rings: RingPair, events: ThreadEvents) {
    this.number = number;
    this.#worker = worker;
    this.#events = events;
    const { turn } = events;
    this.#side = new CoreSide(rings, () => worker.postMessage(null), {
      onStream: (stream, port) => events.onStream(stream, port),
      onGone: (stream) => events.onGone(stream),
      onNote: (text) => events.onNote(JSON.parse(text) as ThreadNote),
      onBytesRead(bytes, stream) {
        turn.clients.touch(stream);
        events.onBytesRead(bytes);
      },
    });
    turn.join(this.#side);
    worker.on('message', (message: ToServer) => {
      if (message === null) turn.mark();
      else events.onMessage(message);
    });
    worker.on('error', (error) => {
      this.#error = error;
    });
    worker.on('exit', (code) => this.#onExit(code));
  }

  send(message: ToThread): void {
    if (!this.#isOver) this.#worker.postMessage(message);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#worker.terminate();
  }

  #onExit(code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { turn } = this.#events;
    const reason = this.#error?.message ?? `exit code ${code}`;
    turn.leave(this.#side);
    turn.run(() => this.#side.onDead(`its I/O thread has ended: ${reason}`));
    this.#events.onDead(reason, performance.now() - this.#startedMs);
  }
}

function startWorker(data: IoThreadData): Worker {
  // Options of the process, such as a profiler, are not for this thread.
  const isSingle = isSingleFile();
  return new Worker(isSingle ? threadScript('io-thread') : ENTRY, {
    eval: isSingle,
    workerData: data,
    name: `meerkat-io-${data.thread}`,
    execArgv: [],
  });
}

/** @throws Error with the code EADDRINUSE, for instance */
function checkFree({ host, port }: ThreadListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, ...(host === null ? {} : { host }) }, () => server.close(() => resolve()));
  });
}

/** Sources cannot be run by a thread of every Node.js: then it is what was built of them, in one file. */
export const ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts')
    ? import.meta.url.replace(/\/src\/node\/threads\/[^/]*$/, '/dist/node/threads/bundle.js')
    : new URL('./main.js', import.meta.url),
);

/** Bytes from a thread: requests, which are usually short. */
const REPORT_RING_BYTES = 1024 * 1024;
/**
 * What goes to it: replies. 32 clients with 64 reads of 1 KiB in flight have two megabytes on their way; with a ring of one they waited
 * for room, and the core took a fifth more time.
 */
const ORDER_RING_BYTES = 4 * 1024 * 1024;
/** A server whose thread ends so often, one after the other, before it listens, does not start. */
const DEATHS_MAX = 5;
/** A thread that has lived for less is started again after a delay, which doubles with each death. */
const SHORT_LIFE_MS = 10_000;
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 5000;
