import { PIECE_BYTES } from './write-pace.ts';

/** Output of a stream that has not begun to leave, in its order; it leaves in pieces. */
export class WaitingOutput {
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** Null while pieces may end anywhere. */
  #frames: FrameStarts | null = null;
  /** Where the last frame begins, from the first byte that waits; −1 once it has begun to leave. */
  #lastFrameAt = -1;

  get bytes(): number {
    return this.#bytes;
  }

  /** From the first byte on: the last frame that waits leaves in a piece that begins with it. */
  setLastFrameApart(): void {
    this.#frames = new FrameStarts();
  }

  push(bytes: Uint8Array): void {
    const start = this.#frames === null ? -1 : this.#frames.lastIn(bytes);
    if (start >= 0) this.#lastFrameAt = this.#bytes + start;
    this.#bytes += bytes.length;
    if (start > 0) this.#chunks.push(bytes.subarray(0, start), bytes.subarray(start));
    else this.#chunks.push(bytes);
  }

  /** The next piece, of `PIECE_BYTES` at most. Something must wait. */
  take(): Uint8Array {
    const lastAt = this.#lastFrameAt;
    const piece = this.#takeFirst(lastAt > 0 ? Math.min(lastAt, PIECE_BYTES) : PIECE_BYTES);
    this.#bytes -= piece.length;
    this.#lastFrameAt = lastAt > 0 ? lastAt - piece.length : -1;
    return piece;
  }

  /** All of it, which waits no longer. */
  takeAll(): readonly Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    this.#lastFrameAt = -1;
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

/** Follows frames, `int length, then so many bytes`, through the chunks of a stream. */
class FrameStarts {
  /** Of the length, those that have come. */
  #lengthBytes = 0;
  #length = 0;
  /** Of the frame, those that are to come. */
  #left = 0;

  /** Where the last frame begins that begins in these bytes; −1 when none does. */
  lastIn(bytes: Uint8Array): number {
    let start = -1;
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      if (this.#lengthBytes === 0) start = at;
      this.#length = (this.#length << 8) | bytes[at++]!;
      if (++this.#lengthBytes < LENGTH_BYTES) continue;
      this.#left = this.#length;
      this.#lengthBytes = 0;
      this.#length = 0;
    }
    return start;
  }
}

const LENGTH_BYTES = 4;
