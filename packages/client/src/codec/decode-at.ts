import type { Codec } from './codec.ts';
import { DecodeError } from './decode-error.ts';

/**
 * The value of a znode.
 *
 * @param path the user's path
 * @throws DecodeError, or rejects with one when the codec is asynchronous
 */
export function decodeAt<T>(
  codec: Codec<T>,
  data: Uint8Array | null,
  path: string | null,
  operation: string = 'get',
): T | Promise<T> {
  let value: T | Promise<T>;
  try {
    value = codec.decode(data);
  } catch (cause) {
    throw new DecodeError(operation, path, data, cause);
  }
  if (!(value instanceof Promise)) return value;
  return value.catch((cause: unknown) => {
    throw new DecodeError(operation, path, data, cause);
  });
}
