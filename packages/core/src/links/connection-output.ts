import type { JuteWriter } from '@meerkat/protocol';
import type { ByteStream } from '../ports.ts';
import type { OutputPool } from './output-pool.ts';

/** Bytes queued for a client from which on no further request of it is answered. */
const BYTES_HIGH = 1024 * 1024;
/** Bytes at which a client is disconnected that is sent events, or replies before its own next write, all the same. */
export const OUTPUT_BYTES_MAX: number = 16 * 1024 * 1024;

/**
 * What is on its way to a client: gathered during a turn, handed to the stream at its end, in one write.
 *
 *     writer() … writer() ──► flush ──► stream ──► the peer takes it ──► onDrain
 *
 * The buffer comes from the pool with the first bytes of a turn, and goes back when the stream has passed them on.
 */
export class ConnectionOutput {
  readonly #stream: ByteStream;
  readonly #pool: OutputPool;
  #writer: JuteWriter | null = null;
  /** The stream holds bytes that the peer has not taken. */
  #isBackedUp = false;

  constructor(stream: ByteStream, pool: OutputPool) {
    this.#stream = stream;
    this.#pool = pool;
  }

  /** True when nothing was written since the last flush. */
  get isEmpty(): boolean {
    return this.#writer === null;
  }

  get isBackedUp(): boolean {
    return this.#isBackedUp;
  }

  /** Bytes that the peer has not taken. */
  get queuedBytes(): number {
    const unflushed = this.#writer === null ? 0 : this.#writer.position;
    return this.#isBackedUp ? unflushed + this.#stream.queuedBytes : unflushed;
  }

  get isFull(): boolean {
    return this.queuedBytes >= BYTES_HIGH;
  }

  /** Where the next bytes are written; valid until the end of the turn. */
  writer(): JuteWriter {
    this.#writer ??= this.#pool.take();
    return this.#writer;
  }

  flush(): void {
    const writer = this.#writer;
    if (writer === null) return;
    this.#writer = null;
    this.#stream.write(writer.written());
    if (this.#stream.queuedBytes === 0) this.#pool.give(writer);
    else this.#isBackedUp = true;
  }

  onDrain(): void {
    this.#isBackedUp = false;
  }

  /** Forgets what was not flushed. */
  discard(): void {
    this.#writer = null;
  }
}
