import { closeSync, openSync, readSync } from 'node:fs';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { makeRecordScanner, ROW_INTS, SCAN_MEMORY_BYTES } from '@meerkat/core/files';
import {
  type Bell,
  CHUNK_BYTES,
  CHUNK_RECORDS_MAX,
  CHUNKS_MAX,
  type ChunkMemory,
  type FromScanThread,
  type ToScanThread,
} from './messages.ts';

type ScanOrder = Extract<ToScanThread, { readonly kind: 'scan' }>;

/**
 * A thread that scans files: it reads a chunk, scans it, sends it, and continues with the next one, up to the first
 * entry that it cannot validate. When all chunks are in use elsewhere, it sleeps until one is released.
 *
 *     memory of a chunk := bytes, CHUNK_BYTES │ rows, CHUNK_RECORDS_MAX
 *                          └ rest of the chunk before, what was read now
 */
export class ScanThread {
  readonly #port: MessagePort;
  /** How often a message has been sent to this thread. */
  readonly #bell: Int32Array;
  readonly #free: ChunkMemory[] = [];
  /** Memory for the tree that it did not take. */
  readonly #memories: ArrayBuffer[] = [];
  #made = 0;

  constructor(port: MessagePort, bell: Bell) {
    this.#port = port;
    this.#bell = new Int32Array(bell);
  }

  start(): void {
    this.#port.on('message', (message: ToScanThread) => this.#onMessage(message));
    this.#post({ kind: 'ready' });
  }

  #onMessage(message: ToScanThread): void {
    if (message.kind === 'scan') {
      this.#scan(message);
      return;
    }
    this.#free.push(message.chunk);
    if (message.memory !== null) this.#memories.push(message.memory);
  }

  #scan(order: ScanOrder): void {
    const fd = openSync(order.path, 'r');
    try {
      this.#scanFile(fd, order);
    } finally {
      closeSync(fd);
    }
    this.#post({ kind: 'end' });
  }

  #scanFile(fd: number, { scan, from, end: fileEnd, checksum }: ScanOrder): void {
    const scanner = makeRecordScanner(scan, checksum);
    let position = from;
    let rest = NOTHING;
    while (!scanner.isOver) {
      const chunk = this.#takeChunk();
      const bytes = new Uint8Array(chunk, 0, CHUNK_BYTES);
      bytes.set(rest);
      const wanted = Math.min(CHUNK_BYTES - rest.length, fileEnd - position - rest.length);
      const filled =
        rest.length + readFully(fd, bytes.subarray(rest.length, rest.length + wanted), position + rest.length);
      const end = scanner.scan(bytes, filled, new Int32Array(chunk, CHUNK_BYTES));
      if (end === 0) {
        this.#free.push(chunk);
        return;
      }
      rest = bytes.slice(end, filled);
      const { count, checksum: sum } = scanner;
      const memory = this.#memories.pop() ?? clearedMemory();
      this.#post({ kind: 'chunk', chunk, memory, position, end, count, checksum: sum }, [chunk, memory]);
      position += end;
    }
  }

  #takeChunk(): ChunkMemory {
    for (;;) {
      const chunk = this.#free.pop();
      if (chunk !== undefined) return chunk;
      if (this.#made < CHUNKS_MAX) {
        this.#made++;
        return new ArrayBuffer(CHUNK_BYTES + 4 * ROW_INTS * CHUNK_RECORDS_MAX);
      }
      const bellCount = Atomics.load(this.#bell, 0);
      const received = receiveMessageOnPort(this.#port) as { readonly message: ToScanThread } | undefined;
      if (received === undefined) Atomics.wait(this.#bell, 0, bellCount);
      else this.#onMessage(received.message);
    }
  }

  #post(message: FromScanThread, transferred: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transferred);
  }
}

const NOTHING = new Uint8Array(0);

/** The kernel gives a page when it is first written to, which takes a tenth of the time of a restart. */
function clearedMemory(): ArrayBuffer {
  const memory = new ArrayBuffer(SCAN_MEMORY_BYTES);
  const bytes = new Uint8Array(memory);
  for (let at = 0; at < bytes.length; at += KERNEL_PAGE_BYTES) bytes[at] = 0;
  return memory;
}

const KERNEL_PAGE_BYTES = 4096;

/** @returns bytes read; fewer only at the end of the file */
function readFully(fd: number, room: Uint8Array, position: number): number {
  let filled = 0;
  while (filled < room.length) {
    const count = readSync(fd, room, filled, room.length - filled, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}
