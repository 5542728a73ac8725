/**
 * How a value is stored in a znode.
 *
 * `encode` is synchronous, so that requests are sent in the order of the calls. `decode` may be asynchronous.
 *
 * @example
 * const port: Codec<number> = {
 *   encode: (value) => new TextEncoder().encode(String(value)),
 *   decode: (data) => Number(new TextDecoder().decode(data ?? new Uint8Array(0))),
 * };
 * const { data } = await client.get('/port', { codec: port }); // data: number
 */
export interface Codec<T> {
  /** null: no data, which ZooKeeper distinguishes from empty data. May throw for a value that cannot be encoded. */
  encode(value: T): Uint8Array | null;
  /** Throws or rejects when the data is invalid; the read then rejects with a DecodeError. */
  decode(data: Uint8Array | null): T | Promise<T>;
}

/** The type of the values of a codec: `CodecValue<typeof text>` is `string`. */
export type CodecValue<C> = C extends Codec<infer T> ? T : never;
