import { Fifo, JuteWriter, ZXID_NONE, type Zxid } from '@meerkat/protocol';

/** Bytes of a block of memory, which payloads share. */
const PIECE_BYTES = 256 * 1024;
/** Minimum room left in a block when the next payload begins. */
const ROOM_BYTES = 8 * 1024;
/** Empty blocks that are kept for reuse. */
const FREE_MAX = 16;

/**
 * Memory for the payloads of txns, written one behind the other. A block is reused once all of its txns are dropped.
 *
 *     used, oldest first: │ txns up to 7 │ up to 9 │      in use: │ · · · · . . . . │      free: │ . . . . . . . . │
 *
 * A buffer per payload would mean an off-heap allocation each, which takes longer than writing a small payload and
 * makes V8 mark the heap over and over, as in `ReadMemory`.
 */
export class PayloadMemory {
  readonly #used: Fifo<{ readonly piece: JuteWriter; readonly lastZxid: Zxid }> = new Fifo();
  readonly #free: JuteWriter[] = [];
  #piece = new JuteWriter(PIECE_BYTES);
  #lastZxid: Zxid = ZXID_NONE;
  #start = 0;

  /** The writer for the next payload. */
  begin(): JuteWriter {
    if (PIECE_BYTES - this.#piece.position < ROOM_BYTES) {
      this.#used.push({ piece: this.#piece, lastZxid: this.#lastZxid });
      this.#piece = this.#free.pop() ?? new JuteWriter(PIECE_BYTES);
    }
    this.#start = this.#piece.position;
    return this.#piece;
  }

  /** @returns what was written since `begin`: the payload of this txn, valid until the txn is dropped */
  end(zxid: Zxid): Uint8Array {
    const { bytes, position } = this.#piece;
    this.#lastZxid = zxid;
    if (bytes.length === PIECE_BYTES) return bytes.subarray(this.#start, position);
    // It did not fit, so the writer has moved to a larger buffer. Earlier payloads keep their block, which is not
    // reused.
    this.#piece = new JuteWriter(PIECE_BYTES);
    return bytes.slice(this.#start, position);
  }

  /** Txns up to this one are dropped: their payloads must no longer be read. */
  drop(zxid: Zxid): void {
    for (let oldest = this.#used.peek(); oldest !== undefined && oldest.lastZxid <= zxid; oldest = this.#used.peek()) {
      this.#used.shift();
      oldest.piece.position = 0;
      if (this.#free.length < FREE_MAX) this.#free.push(oldest.piece);
    }
  }
}
