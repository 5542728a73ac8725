/**
 * How a value lies in a znode.
 *
 * `encode` is synchronous, so that requests leave in the order of the calls. `decode` may take its time.
 *
 * @example
 * const port: Codec<number> = {
 *   encode: (value) => new TextEncoder().encode(String(value)),
 *   decode: (data) => Number(new TextDecoder().decode(data ?? new Uint8Array(0))),
 * };
 * const { data } = await client.get('/port', { codec: port }); // data: number
 */
export interface Codec<T> {
  /** null: the znode holds nothing, which is not the same as empty in ZooKeeper. May throw for a value that has no form in bytes. */
  encode(value: T): Uint8Array | null;
  /** Throws or rejects when the data is no such value; the read then rejects with a DecodeError. */
  decode(data: Uint8Array | null): T | Promise<T>;
}

/** The type of the values of a codec: `CodecValue<typeof text>` is `string`. */
export type CodecValue<C> = C extends Codec<infer T> ? T : never;
