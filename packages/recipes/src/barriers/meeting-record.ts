/*
 * The record that a round leaves for its parties. Numbers are big-endian.
 *
 *     <count: 4 bytes>
 *     <length: 4 bytes> <name of the arrival>  <length: 4 bytes, 0xFFFFFFFF for null> <data>    for each, in their order
 */

export interface Arrival {
  /** Of the znode. */
  readonly name: string;
  readonly data: Uint8Array | null;
}

export function writeMeeting(arrivals: readonly Arrival[]): Uint8Array {
  const names = arrivals.map(({ name }) => new TextEncoder().encode(name));
  let length = 4;
  for (const [i, { data }] of arrivals.entries()) length += 8 + names[i]!.length + (data?.length ?? 0);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  let at = 0;
  const number = (value: number): void => {
    view.setUint32(at, value);
    at += 4;
  };
  const field = (value: Uint8Array): void => {
    bytes.set(value, at);
    at += value.length;
  };
  number(arrivals.length);
  for (const [i, { data }] of arrivals.entries()) {
    number(names[i]!.length);
    field(names[i]!);
    number(data === null ? NULL : data.length);
    if (data !== null) field(data);
  }
  return bytes;
}

/** @throws RangeError when the data is not such a record */
export function readMeeting(bytes: Uint8Array): Arrival[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const number = (): number => {
    at += 4;
    return view.getUint32(at - 4);
  };
  const field = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new RangeError(`a field of ${length} bytes at ${at} passes the end`);
    at += length;
    return bytes.subarray(at - length, at);
  };
  const arrivals: Arrival[] = [];
  for (let left = number(); left > 0; left--) {
    const name = new TextDecoder().decode(field(number()));
    const length = number();
    arrivals.push({ name, data: length === NULL ? null : field(length) });
  }
  return arrivals;
}

const NULL = 0xffffffff;
