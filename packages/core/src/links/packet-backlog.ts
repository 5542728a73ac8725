import { JuteWriter } from '@meerkat/protocol';

/** Bytes from which on a piece is full. */
const PIECE_BYTES = 64 * 1024;

/** Packets that wait behind something larger, as bytes, in pieces that hold whole packets each. */
export class PacketBacklog {
  #pieces: JuteWriter[] = [];
  #fullBytes = 0;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#fullBytes + (this.#pieces.at(-1)?.position ?? 0);
  }

  /** Where the next packet is written as a whole. */
  writer(): JuteWriter {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.position < PIECE_BYTES) return last;
    if (last !== undefined) this.#fullBytes += last.position;
    const piece = new JuteWriter(PIECE_BYTES / 4);
    this.#pieces.push(piece);
    return piece;
  }

  /** Takes the oldest pieces out, about `bytesMax` bytes of them. */
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
