/**
 * Writes jute into one growing buffer (BinaryOutputArchive); lengths that are not known yet are patched afterwards.
 *
 * Strings are written as standard UTF-8. Apache's writer encodes each half of a surrogate pair on its own; no legal
 * path contains one, and Apache's reader decodes standard UTF-8.
 */
export class JuteWriter {
  /** The buffer; replaced by a larger one when it is full, so never keep a reference across writes. */
  bytes: Uint8Array;
  /** Number of bytes written. */
  position: number;
  #written: Uint8Array = NOTHING;

  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(capacity);
    this.position = 0;
  }

  /** Makes room for `count` more bytes. */
  ensure(count: number): void {
    const needed = this.position + count;
    if (needed > this.bytes.length) this.#grow(needed);
  }

  byte(value: number): void {
    this.ensure(1);
    this.bytes[this.position++] = value;
  }

  boolean(value: boolean): void {
    this.byte(value ? 1 : 0);
  }

  int(value: number): void {
    this.ensure(4);
    putInt(this.bytes, this.position, value);
    this.position += 4;
  }

  /** A long given as an exact number, negative ones included. */
  long(value: number): void {
    this.ensure(8);
    putLong(this.bytes, this.position, value);
    this.position += 8;
  }

  longBig(value: bigint): void {
    this.ensure(8);
    putLongBig(this.bytes, this.position, value);
    this.position += 8;
  }

  /** Length and bytes; null is length −1, distinct from empty. */
  buffer(value: Uint8Array | null): void {
    if (value === null) {
      this.int(-1);
      return;
    }
    this.int(value.length);
    this.raw(value);
  }

  ustring(value: string | null): void {
    if (value === null) {
      this.int(-1);
      return;
    }
    const length = value.length;
    this.ensure(4 + length * 3);
    const bytes = this.bytes;
    const start = this.position + 4;
    if (length > SHORT_TEXT) {
      const written = ENCODER.encodeInto(value, bytes.subarray(start)).written;
      putInt(bytes, this.position, written);
      this.position = start + written;
      return;
    }
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) {
        const written = ENCODER.encodeInto(value, bytes.subarray(start)).written;
        putInt(bytes, this.position, written);
        this.position = start + written;
        return;
      }
      bytes[start + i] = code;
    }
    putInt(bytes, this.position, length);
    this.position = start + length;
  }

  /** Bytes as they are, without a length. */
  raw(value: Uint8Array): void {
    this.ensure(value.length);
    this.bytes.set(value, this.position);
    this.position += value.length;
  }

  /** Reserves a length that `endFrame` fills in; returns its offset. */
  beginFrame(): number {
    this.ensure(4);
    const at = this.position;
    this.position = at + 4;
    return at;
  }

  /** Writes at offset `at` the number of bytes that follow it. */
  endFrame(at: number): void {
    putInt(this.bytes, at, this.position - at - 4);
  }

  /** A copy of what was written. */
  toBytes(): Uint8Array {
    return this.bytes.slice(0, this.position);
  }

  /**
   * What has been written, as a view of the buffer. The last view is reused if it has the same length, so frames of
   * equal length, as to all watchers of a znode, need no object each.
   */
  written(): Uint8Array {
    if (this.#written.length !== this.position) this.#written = this.bytes.subarray(0, this.position);
    return this.#written;
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.position));
    this.bytes = larger;
    this.#written = NOTHING;
  }
}

const NOTHING = new Uint8Array(0);
const ENCODER = new TextEncoder();
/**
 * Texts up to this length are encoded in JS: the native encoder is eight times as fast for 8,000 characters, but slow
 * to call.
 */
const SHORT_TEXT = 256;
const HALVES = new Int32Array(2);
const WHOLE = new BigInt64Array(HALVES.buffer);

export function putInt(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function putLong(bytes: Uint8Array, at: number, value: number): void {
  putInt(bytes, at, Math.floor(value / 0x100000000));
  putInt(bytes, at + 4, value >>> 0);
}

export function putLongBig(bytes: Uint8Array, at: number, value: bigint): void {
  WHOLE[0] = value;
  putInt(bytes, at, HALVES[1]!);
  putInt(bytes, at + 4, HALVES[0]!);
}

export function getInt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** A long that is known to be exact: the field was written by `putLong`. */
export function getLong(bytes: Uint8Array, at: number): number {
  return getInt(bytes, at) * 0x100000000 + (getInt(bytes, at + 4) >>> 0);
}

export function getLongBig(bytes: Uint8Array, at: number): bigint {
  HALVES[1] = getInt(bytes, at);
  HALVES[0] = getInt(bytes, at + 4);
  return WHOLE[0]!;
}
