import type { Codec } from './codec.ts';

const ENCODER = new TextEncoder();
/** Keeps a byte order mark, so that a value can be written back unchanged. */
const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Text as UTF-8. A znode without data reads as the empty string; bytes that are not UTF-8 are refused.
 *
 * @example
 * const { data } = await client.get('/greeting', { codec: text }); // data: string
 */
export const text: Codec<string> = {
  encode: (value) => ENCODER.encode(value),
  decode: (data) => (data === null ? '' : DECODER.decode(data)),
};
