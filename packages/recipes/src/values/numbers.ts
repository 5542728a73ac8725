/**
 * The formats of counters in znodes: those of Curator and kazoo. A znode without data is a counter that is not set yet.
 */
import type { Codec } from '@meerkat/client';

/** Curator's SharedCount, and kazoo's Counter with `support_curator`: 4 bytes, big-endian, signed. */
export const int32: Codec<number> = {
  encode(value) {
    if (value !== (value | 0)) throw new RangeError(`${value} is no whole number of 32 bits`);
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setInt32(0, value);
    return bytes;
  },
  decode(data) {
    if (data?.length !== 4) throw new SyntaxError(`a count has 4 bytes, not ${data?.length ?? 0}`);
    return viewOf(data).getInt32(0);
  },
};

/** Curator's DistributedAtomicLong: 8 bytes, big-endian, signed. Overflow is refused, where Java wraps. */
export const int64: Codec<bigint> = {
  encode(value) {
    if (value !== BigInt.asIntN(64, value)) throw new RangeError(`${value} is no whole number of 64 bits`);
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, value);
    return bytes;
  },
  decode(data) {
    if (data?.length !== 8) throw new SyntaxError(`a long has 8 bytes, not ${data?.length ?? 0}`);
    return viewOf(data).getBigInt64(0);
  },
};

/** kazoo's Counter with an int: its decimal digits, of any length. */
export const decimalInteger: Codec<bigint> = {
  encode: (value) => ENCODER.encode(value.toString()),
  decode(data) {
    const written = textOf(data);
    if (!/^[+-]?\d+$/.test(written)) throw new SyntaxError(`"${written}" is no whole number`);
    return BigInt(written.replace(/^\+/, ''));
  },
};

/** kazoo's Counter with a float: the output of Python's repr, which has a point or an exponent. */
export const decimalFloat: Codec<number> = {
  encode(value) {
    if (!Number.isFinite(value)) throw new RangeError(`${value} is no number to count with`);
    const written = String(value);
    return ENCODER.encode(/[.e]/.test(written) ? written : `${written}.0`);
  },
  decode(data) {
    const written = textOf(data);
    const value = Number(written);
    if (written === '' || !Number.isFinite(value)) throw new SyntaxError(`"${written}" is no number`);
    return value;
  },
};

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Python's int and float ignore white space, too. */
function textOf(data: Uint8Array | null): string {
  return data === null ? '' : DECODER.decode(data).trim();
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}
