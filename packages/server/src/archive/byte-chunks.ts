import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ArchiveError } from './archive-error.ts';
import type { OpenFile } from './archive-files.ts';
import { unpackSnappy } from './snappy.ts';

const SLICE_BYTES = 256 * 1024;

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
export function snapshotChunks(file: OpenFile): AsyncGenerator<Uint8Array> {
  if (file.path.endsWith('.gz')) return gunzipped(file);
  if (file.path.endsWith('.snappy')) return unpackSnappy(chunksOf(file), file.path);
  return chunksOf(file);
}

async function* gunzipped(file: OpenFile): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: SLICE_BYTES });
  const packed = Readable.from(chunksOf(file), { objectMode: false });
  packed.on('error', (error) => gunzip.destroy(error));
  packed.pipe(gunzip);
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    throw new ArchiveError('damaged', `${file.path} cannot be unpacked: ${(error as Error).message}`, error);
  } finally {
    packed.destroy();
    gunzip.destroy();
  }
}
