import { Fifo, JuteWriter, ZXID_NONE, type Zxid } from '@meerkat/protocol';

/** Bytes of a piece of memory, which payloads share. */
const PIECE_BYTES = 256 * 1024;
/** So much of a piece is left when the next payload begins. */
const ROOM_BYTES = 8 * 1024;
/** Pieces that are kept although nothing is in them. */
const FREE_MAX = 16;

/**
 * Where the payloads of txns are written, one behind the other, and where others are written once these are dropped.
 *
 *     used, oldest first: │ txns up to 7 │ up to 9 │      in use: │ · · · · . . . . │      free: │ . . . . . . . . │
 *
 * Memory of its own for each would be an allocation outside of the heap for each, which takes longer than to write a small one, and
 * V8 would mark the heap again and again, as in `ReadMemory`.
 */
export class PayloadMemory {
  readonly #used: Fifo<{ readonly piece: JuteWriter; readonly lastZxid: Zxid }> = new Fifo();
  readonly #free: JuteWriter[] = [];
  #piece = new JuteWriter(PIECE_BYTES);
  #lastZxid: Zxid = ZXID_NONE;
  #start = 0;

  /** Where the next payload is written. */
  begin(): JuteWriter {
    if (PIECE_BYTES - this.#piece.position < ROOM_BYTES) {
      this.#used.push({ piece: this.#piece, lastZxid: this.#lastZxid });
      this.#piece = this.#free.pop() ?? new JuteWriter(PIECE_BYTES);
    }
    this.#start = this.#piece.position;
    return this.#piece;
  }

  /** @returns what was written since `begin`: the payload of this txn, until that is dropped */
  end(zxid: Zxid): Uint8Array {
    const { bytes, position } = this.#piece;
    this.#lastZxid = zxid;
    if (bytes.length === PIECE_BYTES) return bytes.subarray(this.#start, position);
    // It was longer than what was left. The payloads before it stay where they are, and nothing is written there any more.
    this.#piece = new JuteWriter(PIECE_BYTES);
    return bytes.slice(this.#start, position);
  }

  /** Txns up to this one are dropped: nobody looks at their payloads any more. */
  drop(zxid: Zxid): void {
    for (let oldest = this.#used.peek(); oldest !== undefined && oldest.lastZxid <= zxid; oldest = this.#used.peek()) {
      this.#used.shift();
      oldest.piece.position = 0;
      if (this.#free.length < FREE_MAX) this.#free.push(oldest.piece);
    }
  }
}
