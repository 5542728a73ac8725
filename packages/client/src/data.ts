/** What a znode is given to hold: bytes, text that is sent as UTF-8, or nothing, which is not the same as empty in ZooKeeper. */
export type Data = string | Uint8Array | null;

const ENCODER = new TextEncoder();

export function toBytes(data: Data): Uint8Array | null {
  return typeof data === 'string' ? ENCODER.encode(data) : data;
}
