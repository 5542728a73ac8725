/**
 * Data for a znode: bytes, text that is sent as UTF-8, or null for none, which ZooKeeper distinguishes from empty data.
 */
export type Data = string | Uint8Array | null;

const ENCODER = new TextEncoder();

export function toBytes(data: Data): Uint8Array | null {
  return typeof data === 'string' ? ENCODER.encode(data) : data;
}
