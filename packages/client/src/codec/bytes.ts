import { EMPTY_BYTES } from '@meerkat/protocol';
import type { Codec } from './codec.ts';

/**
 * The data as it is; a znode that holds nothing reads as empty.
 *
 * @example
 * const { data } = await client.get('/blob', { codec: bytes }); // data: Uint8Array
 */
export const bytes: Codec<Uint8Array> = {
  encode: (value) => value,
  decode: (data) => data ?? EMPTY_BYTES,
};

/**
 * The data as it is, and null for a znode that holds nothing.
 *
 * @example
 * const { data } = await client.get('/flag', { codec: nullableBytes }); // data: Uint8Array | null
 */
export const nullableBytes: Codec<Uint8Array | null> = {
  encode: (value) => value,
  decode: (data) => data,
};
