import { EMPTY_BYTES } from '@meerkat/protocol';
import type { Codec } from './codec.ts';

/**
 * The raw data; a znode without data reads as empty.
 *
 * @example
 * const { data } = await client.get('/blob', { codec: bytes }); // data: Uint8Array
 */
export const bytes: Codec<Uint8Array> = {
  encode: (value) => value,
  decode: (data) => data ?? EMPTY_BYTES,
};

/**
 * The raw data, and null for a znode without data.
 *
 * @example
 * const { data } = await client.get('/flag', { codec: nullableBytes }); // data: Uint8Array | null
 */
export const nullableBytes: Codec<Uint8Array | null> = {
  encode: (value) => value,
  decode: (data) => data,
};
