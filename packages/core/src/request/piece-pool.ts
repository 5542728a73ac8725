import { JuteWriter, type PieceSource } from '@meerkat/protocol';

/**
 * Buffers for the pieces of long replies, used again and again. A new megabyte has to be fetched from the kernel page by page and
 * counts as pressure on memory: a reply of ten of them cost two collections of garbage.
 *
 * They are kept by their size; when there is no more room, those go first of a size that was not asked for the longest.
 */
export class PiecePool implements PieceSource {
  readonly #bytesMax: number;
  /** By the size of each. That which was asked for last comes last. */
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
    // One that has grown may have a size that nobody asks for.
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
