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
import { ArchiveError } from './archive-error.ts';

const MAGIC = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00);
const HEADER_BYTES = MAGIC.length + 8;
/** snappy-java's blocks have 32 KiB; whoever sets another size takes a few MiB at most. */
const BLOCK_BYTES_MAX = 64 * 1024 * 1024;

/** Unpacks a stream chunk by chunk. @param path for messages */
export async function* unpackSnappy(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  let hasHeader = false;
  /** Of the first byte of `rest` in the file. */
  let position = 0;
  const fail = (what: string): never => {
    throw new ArchiveError('damaged', `${path} at position ${position}: ${what}`);
  };
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    if (!hasHeader) {
      if (rest.length < HEADER_BYTES) continue;
      if (MAGIC.some((byte, i) => rest[i] !== byte)) fail('it is no stream of snappy');
      at = HEADER_BYTES;
      hasHeader = true;
    }
    for (;;) {
      const view = new DataView(rest.buffer, rest.byteOffset, rest.length);
      if (rest.length - at < 4) break;
      const length = view.getInt32(at);
      if (length < 0 || length > BLOCK_BYTES_MAX) fail(`a packed block has the length ${length}`);
      if (rest.length - at - 4 < length) break;
      const block = unpackBlock(rest.subarray(at + 4, at + 4 + length));
      if (block === null) fail('a packed block is damaged');
      else yield block;
      at += 4 + length;
      position += at;
      rest = rest.subarray(at);
      at = 0;
    }
    position += at;
    rest = rest.subarray(at);
  }
  if (!hasHeader || rest.length > 0) fail('it is cut short');
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
