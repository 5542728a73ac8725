/** What the thread of the HTTP ports counts, in memory that the thread of the service reads: no message a connection. */
export class HttpFigures {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;

  /** @param buffer of the figures that the other thread has */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#cells = new Int32Array(buffer);
  }

  /** Connections without TLS to an admin port that speaks it. */
  get plainConnections(): number {
    return Atomics.load(this.#cells, PLAIN);
  }

  get failedHandshakes(): number {
    return Atomics.load(this.#cells, FAILED);
  }

  /** Connections that were closed, or not accepted, because there were too many. */
  get exceededConnections(): number {
    return Atomics.load(this.#cells, EXCEEDED);
  }

  /** Whole days until the certificate of the admin port expires; null without one. */
  get adminDaysLeft(): number | null {
    return Atomics.load(this.#cells, HAS_DAYS) === 0 ? null : Atomics.load(this.#cells, DAYS);
  }

  onPlainConnection(): void {
    Atomics.add(this.#cells, PLAIN, 1);
  }

  onHandshakeFailed(): void {
    Atomics.add(this.#cells, FAILED, 1);
  }

  onConnectionExceeded(): void {
    Atomics.add(this.#cells, EXCEEDED, 1);
  }

  set adminExpiresInDays(days: number) {
    Atomics.store(this.#cells, DAYS, days);
    Atomics.store(this.#cells, HAS_DAYS, 1);
  }
}

const PLAIN = 0;
const FAILED = 1;
const DAYS = 2;
const HAS_DAYS = 3;
const EXCEEDED = 4;
const CELLS = 5;
