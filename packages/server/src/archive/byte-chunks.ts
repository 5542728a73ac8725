import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Compression } from '@meerkat/core';
import { beginsLikeCompressed, COMPRESSED_HEAD_BYTES, compressionOf } from '@meerkat/core/files';
import { ArchiveError } from './archive-error.ts';
import type { OpenFile } from './archive-files.ts';
import { unpackSnappy } from './snappy.ts';

const SLICE_BYTES = 256 * 1024;
type Chunks = AsyncIterable<Uint8Array>;

/** The bytes of a file from its beginning, slice by slice. */
export async function* chunksOf(file: OpenFile): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const bytes = await file.read(position, SLICE_BYTES);
    if (bytes.length > 0) yield bytes;
    if (bytes.length < SLICE_BYTES) return;
    position += bytes.length;
  }
}

/** The same of a snapshot, unpacked if its name says that it is packed (`.gz`, `.snappy`). */
export function snapshotChunks(file: OpenFile): Chunks {
  return unpack(chunksOf(file), compressionOf(file.path), file.path);
}

/** The chunks of a snapshot without a name, unpacked if they begin as those of a packed one. @param path for messages */
export async function* unpackedChunks(chunks: Chunks, path: string): AsyncGenerator<Uint8Array> {
  const rest = chunks[Symbol.asyncIterator]();
  let head: Uint8Array = new Uint8Array(0);
  while (head.length < COMPRESSED_HEAD_BYTES) {
    const next = await rest.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const compression = COMPRESSIONS.find((method) => beginsLikeCompressed(head, method)) ?? null;
  yield* unpack(withHead(head, { [Symbol.asyncIterator]: () => rest }), compression, path);
}

const COMPRESSIONS: readonly Compression[] = ['gz', 'snappy'];

async function* withHead(head: Uint8Array, chunks: Chunks): AsyncGenerator<Uint8Array> {
  yield head;
  yield* chunks;
}

function unpack(chunks: Chunks, compression: Compression | null, path: string): Chunks {
  if (compression === 'gz') return gunzipped(chunks, path);
  if (compression === 'snappy') return unpackSnappy(chunks, path);
  return chunks;
}

async function* gunzipped(chunks: Chunks, path: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: SLICE_BYTES });
  const packed = Readable.from(chunks, { objectMode: false });
  packed.on('error', (error) => gunzip.destroy(error));
  packed.pipe(gunzip);
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    throw new ArchiveError('damaged', `${path} cannot be unpacked: ${(error as Error).message}`, error);
  } finally {
    packed.destroy();
    gunzip.destroy();
  }
}
