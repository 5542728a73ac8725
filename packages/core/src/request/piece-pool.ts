import { JuteWriter, type PieceSource } from '@meerkat/protocol';

/**
 * Reuses the buffers for the pieces of long replies. The kernel must map a new megabyte page by page, and V8 counts it
 * as memory pressure: a reply of ten of them cost two garbage collections.
 *
 * Buffers are pooled by size; when the pool is full, those of the least recently used size are dropped first.
 */
export class PiecePool implements PieceSource {
  readonly #bytesMax: number;
  /** By size; the most recently used size comes last. */
  readonly #free: Map<number, JuteWriter[]> = new Map();
  #freeBytes = 0;

  constructor(bytesMax: number = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  take(bytes: number): JuteWriter {
    const size = Math.ceil(bytes / UNIT_BYTES) * UNIT_BYTES;
    const ofSize = this.#free.get(size);
    const piece = ofSize?.pop();
    if (ofSize === undefined || piece === undefined) return new JuteWriter(size);
    this.#free.delete(size);
    if (ofSize.length > 0) this.#free.set(size, ofSize);
    this.#freeBytes -= size;
    piece.position = 0;
    return piece;
  }

  give(piece: JuteWriter): void {
    const size = piece.bytes.length;
    // A buffer that has grown may have a size that `take` never asks for.
    if (size % UNIT_BYTES !== 0 || size > this.#bytesMax) return;
    for (const [other, ofOther] of this.#free) {
      if (other === size) continue;
      while (this.#freeBytes + size > this.#bytesMax && ofOther.pop() !== undefined) this.#freeBytes -= other;
      if (ofOther.length > 0) break;
      this.#free.delete(other);
    }
    if (this.#freeBytes + size > this.#bytesMax) return;
    const ofSize = this.#free.get(size);
    if (ofSize === undefined) this.#free.set(size, [piece]);
    else ofSize.push(piece);
    this.#freeBytes += size;
  }
}

const UNIT_BYTES = 0x10000;
const BYTES_MAX = 16 * 1024 * 1024;
