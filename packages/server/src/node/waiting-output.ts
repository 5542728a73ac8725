import { PIECE_BYTES } from './write-pace.ts';

/** Output of a stream that has not begun to leave, in its order; it leaves in pieces. */
export class WaitingOutput {
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  push(bytes: Uint8Array): void {
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
  }

  /** The next piece, of `PIECE_BYTES` at most. Something must wait. */
  take(): Uint8Array {
    const piece = this.#takeFirst(PIECE_BYTES);
    this.#bytes -= piece.length;
    return piece;
  }

  /** All of it, which waits no longer. */
  takeAll(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    return chunks;
  }

  #takeFirst(bytesMax: number): Uint8Array {
    const chunks = this.#chunks;
    const first = chunks[0]!;
    if (first.length > bytesMax) {
      chunks[0] = first.subarray(bytesMax);
      return first.subarray(0, bytesMax);
    }
    let count = 1;
    for (let bytes = first.length; count < chunks.length; count++) {
      bytes += chunks[count]!.length;
      if (bytes > bytesMax) break;
    }
    const taken = chunks.splice(0, count);
    return count === 1 ? first : Buffer.concat(taken);
  }
}
