import { Fifo, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import type { InputBuffer } from './input-buffer.ts';

/** Bytes of a piece: initially, and at most. The size doubles when more than `USED_FEW` pieces hold unapplied txns. */
const PIECE_BYTES_MIN = 4 * 1024;
const PIECE_BYTES_MAX = 128 * 1024;
const USED_FEW = 2;
/** Maximum unused pieces that are kept. */
const FREE_MAX = 16;

interface UsedPiece {
  readonly bytes: Uint8Array;
  readonly lastZxid: Zxid;
}

/**
 * Memory that a link to a leader reads into, and reuses once the txns in it are applied: until then they are used in
 * place.
 *
 *     used, oldest first: │ txns up to 7 │ up to 9 │      in use: │ · · · · . . . . │      free: │ . . . . . . . . │
 *
 * Without this a follower would produce as much off-heap garbage as it receives. V8 counts that memory with the heap,
 * which is small, and would mark all of it again and again: 12 % of the processor time of a durable write of 1 KiB.
 */
export class ReadMemory {
  #pieceBytes = PIECE_BYTES_MIN;
  readonly #used: Fifo<UsedPiece> = new Fifo();
  readonly #free: Uint8Array[] = [];
  /** Null before the first piece, and while one packet takes more than a piece. */
  #inUse: Uint8Array | null = null;
  #applied: Zxid = ZXID_NONE;

  /**
   * @param lastZxid the last txn delivered from the input
   * @returns where the stream may read to, after the contents of the input
   */
  roomOf(input: InputBuffer, lastZxid: Zxid): Uint8Array {
    input.takeRest();
    if (input.bytes.length - input.end < PIECE_BYTES_MIN / 8) this.#advance(input, lastZxid);
    return input.bytes.subarray(input.end);
  }

  /** Everything up to `zxid` is applied. */
  onApplied(zxid: Zxid): void {
    this.#applied = zxid;
    this.#freeApplied();
  }

  #freeApplied(): void {
    const applied = this.#applied;
    for (
      let oldest = this.#used.peek();
      oldest !== undefined && oldest.lastZxid <= applied;
      oldest = this.#used.peek()
    ) {
      this.#used.shift();
      if (oldest.bytes.length === this.#pieceBytes && this.#free.length < FREE_MAX) this.#free.push(oldest.bytes);
    }
  }

  #advance(input: InputBuffer, lastZxid: Zxid): void {
    if (this.#inUse !== null) this.#used.push({ bytes: this.#inUse, lastZxid });
    // A snapshot contains no txns, so its pieces are free as soon as they are full.
    this.#freeApplied();
    const left = input.end - input.start;
    this.#inUse = left > PIECE_BYTES_MAX / 2 ? null : this.#pieceFor(left);
    input.moveTo(this.#inUse ?? new Uint8Array(2 * left));
  }

  #pieceFor(left: number): Uint8Array {
    let bytes = this.#pieceBytes;
    if (this.#free.length === 0 && this.#used.length > USED_FEW) bytes *= 2;
    while (bytes < 2 * left) bytes *= 2;
    bytes = Math.min(bytes, PIECE_BYTES_MAX);
    // Smaller pieces are not reused.
    if (bytes > this.#pieceBytes) this.#free.length = 0;
    this.#pieceBytes = bytes;
    return this.#free.pop() ?? new Uint8Array(bytes);
  }
}
