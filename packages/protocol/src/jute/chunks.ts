import { JuteWriter } from './writer.ts';

/** Pool of buffers: pieces are taken from it, and returned once their bytes are no longer used. */
export interface PieceSource {
  /** @returns an empty piece with room for at least `bytes` bytes */
  take(bytes: number): JuteWriter;
  give(piece: JuteWriter): void;
}

/**
 * A possibly long record that is written incrementally into pieces. The pieces are sent as they are, so that nothing is
 * copied when one of them is full.
 */
export class JuteChunks {
  readonly #full: Uint8Array[] = [];
  #fullBytes = 0;
  #writer = new JuteWriter(FIRST_BYTES);
  readonly #source: PieceSource | null;
  readonly #taken: JuteWriter[] = [];

  /** @param source of long pieces; null: each is allocated, and left to the garbage collector */
  constructor(source: PieceSource | null = null) {
    this.#source = source;
  }

  /** The writer for the next value. Do not keep it: it changes when a piece is full. */
  get writer(): JuteWriter {
    if (this.#writer.position >= CHUNK_BYTES) this.#begin();
    return this.#writer;
  }

  /**
   * The writer for a value of `bytes` bytes. A long value gets a piece with room for it, so that no piece is copied to
   * grow.
   */
  writerFor(bytes: number): JuteWriter {
    if (bytes >= LONG_BYTES && bytes > this.#writer.bytes.length - this.#writer.position) this.#begin(bytes);
    return this.writer;
  }

  /** Number of bytes written. */
  get bytes(): number {
    return this.#fullBytes + this.#writer.position;
  }

  /** The written pieces, in order; nothing may be written afterwards. */
  get pieces(): readonly Uint8Array[] {
    return this.#writer.position === 0 ? this.#full : [...this.#full, this.#writer.written()];
  }

  /** Appends the pieces of another record. Long pieces are not copied, so nothing more may be written to `other`. */
  append(other: JuteChunks): void {
    if (other.bytes < SLACK_BYTES) {
      for (const piece of other.pieces) this.writer.raw(piece);
      return;
    }
    if (this.#writer.position > 0) this.#begin();
    for (const piece of other.pieces) this.#full.push(piece);
    this.#fullBytes += other.bytes;
  }

  /** Returns the pieces to their source. Their bytes and this object must no longer be used. */
  release(): void {
    for (const piece of this.#taken) this.#source!.give(piece);
    this.#taken.length = 0;
  }

  /** Begins a new piece with room for `bytes` bytes, and some more. */
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

/** Enough for most records. */
const FIRST_BYTES = 1024;
/** Length from which copying a value again is avoided. */
const LONG_BYTES = 0x8000;
/** Length from which a piece is full. */
const CHUNK_BYTES = 0x40000;
/** Room for a value that begins just before that. */
const SLACK_BYTES = 4096;
