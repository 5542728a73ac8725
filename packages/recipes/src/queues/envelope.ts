/*
 * The format in which Curator's DistributedQueue and related queues store one or several items in a znode. Numbers are
 * big-endian.
 *
 *     00 01 00 01                  version 1.1
 *     01  <length: 4 bytes>  …     an item, any number of times
 *     02                           the end
 */

/** One znode's data for these items. */
export function writeEnvelope(items: readonly Uint8Array[]): Uint8Array {
  const length = items.reduce((sum, item) => sum + ITEM_HEADER_BYTES + item.length, VERSION_BYTES + 1);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, VERSION);
  let at = VERSION_BYTES;
  for (const item of items) {
    view.setUint8(at, ITEM);
    view.setUint32(at + 1, item.length);
    bytes.set(item, at + ITEM_HEADER_BYTES);
    at += ITEM_HEADER_BYTES + item.length;
  }
  view.setUint8(at, END);
  return bytes;
}

/** The items of a znode. @throws Error when the data is not such an envelope */
export function readEnvelope(data: Uint8Array | null): Uint8Array[] {
  const bytes = data ?? new Uint8Array(0);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < VERSION_BYTES || view.getUint32(0) !== VERSION) throw notAnEnvelope('its version is not 1.1');
  const items: Uint8Array[] = [];
  let at = VERSION_BYTES;
  for (;;) {
    const mark = bytes[at];
    if (mark === END) return items;
    if (mark !== ITEM) throw notAnEnvelope(mark === undefined ? 'it has no end' : `byte ${at} is ${mark}`);
    if (at + ITEM_HEADER_BYTES > bytes.length) throw notAnEnvelope('it ends inside a length');
    const start = at + ITEM_HEADER_BYTES;
    at = start + view.getUint32(at + 1);
    if (at > bytes.length) throw notAnEnvelope('it ends inside an item');
    items.push(bytes.subarray(start, at));
  }
}

function notAnEnvelope(why: string): Error {
  return new Error(`the data is no item of a Curator queue: ${why}`);
}

const VERSION = 0x00010001;
const VERSION_BYTES = 4;
const ITEM = 1;
const END = 2;
/** The mark and the length. */
const ITEM_HEADER_BYTES = 5;
