import { JuteWriter } from './writer.ts';

/** Where pieces come from, and go once nobody holds their bytes any more. */
export interface PieceSource {
  /** @returns an empty one with room for so many bytes at least */
  take(bytes: number): JuteWriter;
  give(piece: JuteWriter): void;
}

/**
 * A record that is written bit by bit and may become long: pieces that are sent as they are, so that nothing is moved
 * when there is no more room in one of them.
 */
export class JuteChunks {
  readonly #full: Uint8Array[] = [];
  #fullBytes = 0;
  #writer = new JuteWriter(FIRST_BYTES);
  readonly #source: PieceSource | null;
  readonly #taken: JuteWriter[] = [];

  /** @param source of long pieces; null: each is made, and left to the garbage collector */
  constructor(source: PieceSource | null = null) {
    this.#source = source;
  }

  /** Where the next value is written. Not to be kept: once a piece is full it is another one. */
  get writer(): JuteWriter {
    if (this.#writer.position >= CHUNK_BYTES) this.#begin();
    return this.#writer;
  }

  /** Where a value of so many bytes is written next: a long one in a piece that has room for it, so that none grows, which moves what it has. */
  writerFor(bytes: number): JuteWriter {
    if (bytes >= LONG_BYTES && bytes > this.#writer.bytes.length - this.#writer.position) this.#begin(bytes);
    return this.writer;
  }

  /** Number of bytes written. */
  get bytes(): number {
    return this.#fullBytes + this.#writer.position;
  }

  /** What has been written, in order; nothing may be written behind. */
  get pieces(): readonly Uint8Array[] {
    return this.#writer.position === 0 ? this.#full : [...this.#full, this.#writer.written()];
  }

  /** Puts what another one holds behind this; long pieces without a copy, so nothing more may be written there. */
  append(other: JuteChunks): void {
    if (other.bytes < SLACK_BYTES) {
      for (const piece of other.pieces) this.writer.raw(piece);
      return;
    }
    if (this.#writer.position > 0) this.#begin();
    for (const piece of other.pieces) this.#full.push(piece);
    this.#fullBytes += other.bytes;
  }

  /** The pieces go back to where they came from: nobody holds their bytes any more, and nobody looks at this again. */
  release(): void {
    for (const piece of this.#taken) this.#source!.give(piece);
    this.#taken.length = 0;
  }

  /** A new piece with room for so many bytes, and some more. */
  #begin(bytes: number = CHUNK_BYTES): void {
    if (this.#writer.position > 0) this.#full.push(this.#writer.written());
    this.#fullBytes += this.#writer.position;
    const room = Math.max(CHUNK_BYTES, bytes) + SLACK_BYTES;
    if (this.#source === null) {
      this.#writer = new JuteWriter(room);
    } else {
      this.#writer = this.#source.take(room);
      this.#taken.push(this.#writer);
    }
  }
}

/** What most need. */
const FIRST_BYTES = 1024;
/** Length from which on a value is not copied once more where that can be avoided. */
const LONG_BYTES = 0x8000;
/** Length from which on a piece is full. */
const CHUNK_BYTES = 0x40000;
/** Room for what begins just before that. */
const SLACK_BYTES = 4096;
