import type { ConnectionCount } from '../descriptors.ts';

/** What I/O threads count together, a cell for each thread and kind, so that what a thread that has died had counts no more. */
export class SharedCounts {
  readonly #cells: Int32Array;
  readonly #threads: number;

  constructor(buffer: SharedArrayBuffer) {
    this.#cells = new Int32Array(buffer);
    this.#threads = this.#cells.length / KINDS;
  }

  static makeBuffer(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * KINDS * 4);
  }

  /** Connections of clients that are open, of all threads; `add` counts those of one of them. */
  connections(thread: number): ConnectionCount {
    const cells = this.#cells;
    const threads = this.#threads;
    return {
      get value() {
        let sum = 0;
        for (let i = 0; i < threads; i++) sum += Atomics.load(cells, i * KINDS);
        return sum;
      },
      add(change) {
        Atomics.add(cells, thread * KINDS, change);
      },
    };
  }

  /** Connections of one thread on one port whose TLS handshake is not done. */
  setHandshakes(thread: number, port: number, count: number): void {
    if (port < PORTS_MAX) Atomics.store(this.#cells, thread * KINDS + 1 + port, count);
  }

  /** Of all threads. */
  handshakes(port: number): number {
    if (port >= PORTS_MAX) return 0;
    let sum = 0;
    for (let i = 0; i < this.#threads; i++) sum += Atomics.load(this.#cells, i * KINDS + 1 + port);
    return sum;
  }

  /** A thread has died, and its connections with it. */
  clear(thread: number): void {
    for (let kind = 0; kind < KINDS; kind++) Atomics.store(this.#cells, thread * KINDS + kind, 0);
  }
}

/** Ports on which clients connect: `clientPort`, `secureClientPort`, and those that the membership has moved to; of more, nothing is counted. */
const PORTS_MAX = 32;
const KINDS = 1 + PORTS_MAX;
