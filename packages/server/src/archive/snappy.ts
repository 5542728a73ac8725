/// <reference path="./snappyjs.d.ts" />
/**
 * The snappy stream of Apache's compressed snapshots, as xerial's snappy-java frames it:
 *
 *     stream := 0x82 "SNAPPY" 0x00, int version, int compatible version, chunk*
 *     chunk  := int length, block (length bytes)
 *     block  := varint length of what is packed, element*
 *     element := literal | copy of what was unpacked before, by its low two bits
 *
 * The least of a block is copied from at most 64 KiB before; a block is some 32 KiB unpacked.
 */
import { compress } from 'snappyjs';
import { ArchiveError } from './archive-error.ts';

const MAGIC = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00);
/** Version and compatible version are 1, the first and the last. */
const HEADER = Uint8Array.of(...MAGIC, 0, 0, 0, 1, 0, 0, 0, 1);
const HEADER_BYTES = HEADER.length;
/** As snappy-java's. */
const PACKED_BLOCK_BYTES = 32 * 1024;
/** snappy-java's default is 32 KiB; block sizes in use are a few MiB at most. */
const BLOCK_BYTES_MAX = 64 * 1024 * 1024;

/** Unpacks a stream chunk by chunk. @param path for messages */
export async function* unpackSnappy(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  const unpacker = new SnappyUnpacker();
  try {
    for await (const chunk of chunks) yield* unpacker.take(chunk);
    unpacker.end();
  } catch (error) {
    if (error instanceof SnappyError) throw new ArchiveError('damaged', `${path} ${error.message}`);
    throw error;
  }
}

/** Where a stream is damaged, and how. */
export class SnappyError extends Error {}

/** Unpacks a stream that comes in pieces of any length. */
export class SnappyUnpacker {
  #rest: Uint8Array = new Uint8Array(0);
  #hasHeader = false;
  /** Of the first byte of the rest. */
  #position = 0;

  /**
   * @returns the blocks that have become whole
   * @throws SnappyError
   */
  take(bytes: Uint8Array): Uint8Array[] {
    const rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const blocks: Uint8Array[] = [];
    let at = 0;
    if (!this.#hasHeader && rest.length >= HEADER_BYTES) {
      if (MAGIC.some((byte, i) => rest[i] !== byte)) this.#fail('it is no stream of snappy');
      this.#hasHeader = true;
      at = HEADER_BYTES;
    }
    const view = new DataView(rest.buffer, rest.byteOffset, rest.length);
    while (this.#hasHeader && rest.length - at >= 4) {
      const length = view.getInt32(at);
      if (length < 0 || length > BLOCK_BYTES_MAX) this.#fail(`a packed block has the length ${length}`, at);
      const end = at + 4 + length;
      if (rest.length < end) break;
      const block = unpackBlock(rest.subarray(at + 4, end));
      if (block === null) this.#fail('a packed block is damaged', at);
      blocks.push(block);
      at = end;
    }
    this.#position += at;
    // Copied: the input buffer belongs to the caller.
    this.#rest = new Uint8Array(rest.subarray(at));
    return blocks;
  }

  /** Nothing follows. @throws SnappyError when something is missing */
  end(): void {
    if (!this.#hasHeader || this.#rest.length > 0) this.#fail('it is cut short');
  }

  #fail(what: string, at: number = 0): never {
    throw new SnappyError(`at position ${this.#position + at}: ${what}`);
  }
}

/** Packs a stream that comes in pieces of any length. */
export class SnappyPacker {
  readonly #block: Uint8Array = new Uint8Array(PACKED_BLOCK_BYTES);
  #filled = 0;
  #hasHeader = false;

  /** @returns what can be written by now */
  take(bytes: Uint8Array, isLast: boolean): Uint8Array {
    const parts: Uint8Array[] = [];
    if (!this.#hasHeader) parts.push(HEADER);
    this.#hasHeader = true;
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + PACKED_BLOCK_BYTES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === PACKED_BLOCK_BYTES) this.#pack(parts);
    }
    if (isLast && this.#filled > 0) this.#pack(parts);
    return Buffer.concat(parts);
  }

  #pack(parts: Uint8Array[]): void {
    const packed = compress(this.#block.subarray(0, this.#filled));
    const length = Buffer.alloc(4);
    length.writeInt32BE(packed.length);
    parts.push(length, packed);
    this.#filled = 0;
  }
}

/** One block of snappy's format. @returns null when it is damaged */
export function unpackBlock(packed: Uint8Array): Uint8Array | null {
  let at = 0;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = packed[at++];
    if (byte === undefined || shift > 28) return null;
    length += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  if (length > BLOCK_BYTES_MAX) return null;
  const out = new Uint8Array(length);
  let end = 0;
  while (at < packed.length) {
    const tag = packed[at++]!;
    const kind = tag & 3;
    let count: number;
    let distance: number;
    if (kind === 0) {
      count = tag >> 2;
      if (count >= 60) {
        const bytes = count - 59;
        if (at + bytes > packed.length) return null;
        count = littleEndian(packed, at, bytes);
        at += bytes;
      }
      count++;
      if (at + count > packed.length || end + count > length) return null;
      out.set(packed.subarray(at, at + count), end);
      at += count;
      end += count;
      continue;
    }
    if (kind === 1) {
      if (at >= packed.length) return null;
      count = ((tag >> 2) & 7) + 4;
      distance = ((tag >> 5) << 8) | packed[at++]!;
    } else {
      const bytes = kind === 2 ? 2 : 4;
      if (at + bytes > packed.length) return null;
      count = (tag >> 2) + 1;
      distance = littleEndian(packed, at, bytes);
      at += bytes;
    }
    if (distance === 0 || distance > end || end + count > length) return null;
    // What is copied may overlap with where it is copied to: a run is made so.
    for (let i = 0; i < count; i++, end++) out[end] = out[end - distance]!;
  }
  return end === length ? out : null;
}

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let i = count - 1; i >= 0; i--) value = value * 256 + bytes[at + i]!;
  return value;
}
