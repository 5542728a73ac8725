import { JuteWriter } from '@meerkat/protocol';

/** Size in bytes from which a piece is full. */
const PIECE_BYTES = 64 * 1024;

/** Serialized packets that wait behind something larger, in pieces that hold whole packets each. */
export class PacketBacklog {
  #pieces: JuteWriter[] = [];
  #fullBytes = 0;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Bytes waiting. */
  get bytes(): number {
    return this.#fullBytes + (this.#pieces.at(-1)?.position ?? 0);
  }

  /** Writer for the next packet, which must be written completely. */
  writer(): JuteWriter {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.position < PIECE_BYTES) return last;
    if (last !== undefined) this.#fullBytes += last.position;
    const piece = new JuteWriter(PIECE_BYTES / 4);
    this.#pieces.push(piece);
    return piece;
  }

  /** Removes the oldest pieces, about `bytesMax` bytes. */
  moveTo(writer: JuteWriter, bytesMax: number): void {
    const end = writer.position + bytesMax;
    let moved = 0;
    for (const piece of this.#pieces) {
      if (writer.position >= end) break;
      writer.raw(piece.bytes.subarray(0, piece.position));
      if (++moved < this.#pieces.length) this.#fullBytes -= piece.position;
    }
    this.#pieces = this.#pieces.slice(moved);
  }

  clear(): void {
    this.#pieces = [];
    this.#fullBytes = 0;
  }
}
