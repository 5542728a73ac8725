import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { FileScan, FileScanEvents, FileScans, ScanKind, ScannedChunk } from '@meerkat/core';
import { isSingleFile, threadScript } from '../../single-file.ts';
import type { Turn } from '../turn.ts';
import { type Bell, CHUNK_BYTES, type FromScanThread, type ScanThreadData, type ToScanThread } from './messages.ts';

/** What is needed of a thread: of Node.js', unless a test has another one. */
export type ScanWorker = Pick<Worker, 'on' | 'postMessage' | 'terminate' | 'unref'>;

export interface NodeScansOptions {
  /** Files that are shorter are not worth a thread. */
  readonly bytesMin: number;
  /** Slices of a file that the core reads alone before the thread is started: most logs end within them. */
  readonly slicesBefore: number;
  readonly spawn: (data: ScanThreadData) => ScanWorker;
}

/**
 * Scans of files in a thread, one at a time. It is started with the first file that is long enough, and ended when everything has been
 * read. Where it cannot be started, or dies, the core reads on alone.
 */
export class NodeScans implements FileScans {
  readonly #turn: Turn;
  readonly #options: NodeScansOptions;
  /** null before the first start. */
  #link: ScanThreadLink | null = null;

  constructor(turn: Turn, options: Partial<NodeScansOptions> = {}) {
    this.#turn = turn;
    this.#options = { bytesMin: 16 * 1024 * 1024, slicesBefore: 4, spawn: spawnWorker, ...options };
  }

  open(path: string, kind: ScanKind, bytes: number, events: FileScanEvents): FileScan | null {
    const { bytesMin, slicesBefore } = this.#options;
    if (bytes < bytesMin) return null;
    const thread = { link: () => this.#startedLink(), stop: () => this.stop() };
    return new ThreadScan(thread, { path, kind, slicesBefore }, events);
  }

  stop(): void {
    this.#link?.stop();
    this.#link = null;
  }

  #startedLink(): ScanThreadLink {
    this.#link ??= new ScanThreadLink(this.#turn, this.#options.spawn);
    return this.#link;
  }
}

/** null with one processor, which has nothing to give to another thread. */
export function makeNodeScans(turn: Turn): NodeScans | null {
  return availableParallelism() > 1 ? new NodeScans(turn) : null;
}

/** The end of the thread's messages in this one. */
class ScanThreadLink {
  /** Called with each message, and once with null when the thread has ended. */
  receiver: ((message: FromScanThread | null) => void) | null = null;
  #isReady = false;
  #isOver = false;
  /** null when it could not be started. */
  #worker: ScanWorker | null = null;
  readonly #bell: Bell = new SharedArrayBuffer(4);
  readonly #rings = new Int32Array(this.#bell);

  constructor(turn: Turn, spawn: (data: ScanThreadData) => ScanWorker) {
    let worker: ScanWorker;
    try {
      worker = spawn({ bell: this.#bell });
    } catch {
      this.#isOver = true;
      return;
    }
    this.#worker = worker;
    worker.unref();
    worker.on('message', (message: FromScanThread) => {
      if (message.kind === 'ready') this.#isReady = true;
      else turn.run(() => this.receiver?.(message));
    });
    // Its end follows.
    worker.on('error', () => {});
    worker.on('exit', () => {
      this.#isOver = true;
      turn.run(() => this.receiver?.(null));
    });
  }

  get isReady(): boolean {
    return this.#isReady && !this.#isOver;
  }

  send(message: ToScanThread, transferred: readonly ArrayBuffer[] = []): void {
    if (this.#isOver) return;
    this.#worker?.postMessage(message, transferred);
    Atomics.add(this.#rings, 0, 1);
    Atomics.notify(this.#rings, 0);
  }

  stop(): void {
    this.#isOver = true;
    this.receiver = null;
    void this.#worker?.terminate();
  }
}

/** The thread that there is now; it is started when it is first asked for. */
interface ScanThread {
  readonly link: () => ScanThreadLink;
  readonly stop: () => void;
}

interface ScannedFile {
  readonly path: string;
  readonly kind: ScanKind;
  readonly slicesBefore: number;
}

class ThreadScan implements FileScan {
  readonly #thread: ScanThread;
  readonly #file: ScannedFile;
  readonly #events: FileScanEvents;
  #slices = 0;
  #state: 'waiting' | 'started' | 'over' = 'waiting';

  constructor(thread: ScanThread, file: ScannedFile, events: FileScanEvents) {
    this.#thread = thread;
    this.#file = file;
    this.#events = events;
  }

  canStart(): boolean {
    return ++this.#slices > this.#file.slicesBefore && this.#thread.link().isReady;
  }

  start(from: number, end: number, checksum: number): void {
    const { path, kind } = this.#file;
    const link = this.#thread.link();
    this.#state = 'started';
    link.receiver = (message) => this.#receive(message);
    link.send({ kind: 'scan', path, scan: kind, from, end, checksum });
  }

  release({ bytes, memory }: ScannedChunk, isMemoryTaken: boolean): void {
    if (this.#state === 'over') return;
    const chunk = bytes.buffer as ArrayBuffer;
    const link = this.#thread.link();
    if (isMemoryTaken || memory === null) link.send({ kind: 'release', chunk, memory: null }, [chunk]);
    else link.send({ kind: 'release', chunk, memory }, [chunk, memory]);
  }

  /** A thread in the middle of a file cannot be called back from it: it ends. */
  close(): void {
    if (this.#state === 'started') this.#thread.stop();
    this.#state = 'over';
  }

  #receive(message: FromScanThread | null): void {
    if (message?.kind === 'chunk') {
      const { chunk, memory, position, end, count, checksum } = message;
      const bytes = new Uint8Array(chunk, 0, CHUNK_BYTES);
      const rows = new Int32Array(chunk, CHUNK_BYTES);
      this.#events.onChunk({ position, bytes, end, rows, count, checksum, memory });
      return;
    }
    this.#state = 'over';
    this.#thread.link().receiver = null;
    this.#events.onScanEnd();
  }
}

function spawnWorker(data: ScanThreadData): Worker {
  const isSingle = isSingleFile();
  return new Worker(isSingle ? threadScript('scan-thread') : ENTRY, {
    eval: isSingle,
    workerData: data,
    name: 'meerkat-scan',
    // Options of the process, such as a profiler, are not for this thread.
    execArgv: [],
  });
}

/** Sources cannot be run by a thread of every Node.js: then it is what was built of them. */
const ENTRY: URL = new URL(
  import.meta.url.endsWith('.ts')
    ? import.meta.url.replace(/\/src\/node\/scans\/[^/]*$/, '/dist/node/scans/main.js')
    : new URL('./main.js', import.meta.url),
);
