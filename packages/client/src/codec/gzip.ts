import { promisify } from 'node:util';
import { gunzip, gunzipSync, gzipSync } from 'node:zlib';
import { bytes } from './bytes.ts';
import type { Codec } from './codec.ts';

export interface GzipOptions {
  /** Maximum size after decompression, as a few kilobytes can unpack to gigabytes. Bytes. Default 64 MiB. */
  readonly unpackedBytesMax?: number | undefined;
  /** 1 (fast) … 9 (small). Default: zlib's. */
  readonly level?: number | undefined;
}

/**
 * Compresses the output of another codec, as Curator's compression does. Uncompressed data is read unchanged, so that
 * compression can be enabled while old znodes exist.
 *
 * Compressing a megabyte blocks the event loop for some tens of milliseconds; more than 4 KiB is decompressed in the
 * background.
 *
 * @example
 * const { data } = await client.get('/large', { codec: gzip(json<Report>()) });
 */
export function gzip(): Codec<Uint8Array>;
export function gzip<T>(codec: Codec<T>, options?: GzipOptions): Codec<T>;
export function gzip<T>(
  codec: Codec<T> | Codec<Uint8Array> = bytes,
  { unpackedBytesMax = UNPACKED_BYTES_MAX, level }: GzipOptions = {},
): Codec<unknown> {
  const inner = codec as Codec<unknown>;
  const packing = level === undefined ? {} : { level };
  const unpacking = { maxOutputLength: unpackedBytesMax };
  return {
    encode(value) {
      const data = inner.encode(value);
      return data === null ? null : gzipSync(data, packing);
    },
    decode(data) {
      if (data === null || !isPacked(data)) return inner.decode(data);
      if (data.length <= SYNC_BYTES_MAX) return inner.decode(gunzipSync(data, unpacking));
      return gunzipInBackground(data, unpacking).then((unpacked) => inner.decode(unpacked));
    },
  };
}

const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
/** This much compressed data unpacks to at most 4 MiB: that is done synchronously, without the thread pool. */
const SYNC_BYTES_MAX = 4 * 1024;

const gunzipInBackground = promisify<Uint8Array, { readonly maxOutputLength: number }, Buffer>(gunzip);

/** The two magic bytes of each member of a gzip file, and the only compression method (RFC 1952, 2.3.1). */
function isPacked(data: Uint8Array): boolean {
  return data.length >= 18 && data[0] === 0x1f && data[1] === 0x8b && data[2] === 8;
}
