import type { Codec } from './codec.ts';

const ENCODER = new TextEncoder();
/** Keeps a byte order mark, so that what is read and written back is the same. */
const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Text as UTF-8. A znode that holds nothing reads as the empty text; bytes that are no UTF-8 are refused.
 *
 * @example
 * const { data } = await client.get('/greeting', { codec: text }); // data: string
 */
export const text: Codec<string> = {
  encode: (value) => ENCODER.encode(value),
  decode: (data) => (data === null ? '' : DECODER.decode(data)),
};
