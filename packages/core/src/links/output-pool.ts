import { JuteWriter } from '@meerkat/protocol';

/**
 * Buffers for replies, passed from connection to connection.
 *
 * A connection needs one only from its first reply of a turn until the kernel has taken the bytes, which is nearly
 * always the end of the same turn; so a handful of warm buffers serves thousands of connections.
 */
export class OutputPool {
  readonly #keptBytesMax: number;
  readonly #free: JuteWriter[] = [];
  #freeBytes = 0;

  /** @param keptBytesMax a larger buffer is left to the garbage collector: it was grown for one large reply */
  constructor(keptBytesMax: number = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  take(): JuteWriter {
    const writer = this.#free.pop();
    if (writer === undefined) return new JuteWriter(INITIAL_BYTES);
    this.#freeBytes -= writer.bytes.length;
    writer.position = 0;
    return writer;
  }

  /** Returns a buffer to the pool; the caller must no longer use its bytes. */
  give(writer: JuteWriter): void {
    const bytes = writer.bytes.length;
    if (bytes > this.#keptBytesMax || this.#freeBytes + bytes > POOL_BYTES_MAX) return;
    this.#freeBytes += bytes;
    this.#free.push(writer);
  }
}

const INITIAL_BYTES = 4096;
const KEPT_BYTES_MAX = 256 * 1024;
const POOL_BYTES_MAX = 16 * 1024 * 1024;
