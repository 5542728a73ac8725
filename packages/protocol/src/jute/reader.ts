/**
 * Reads jute, ZooKeeper's record encoding: big-endian integers, no tags, no padding (BinaryInputArchive).
 *
 * One cursor over bytes owned by the caller. A read past the end, a length out of range or a number that is not exact
 * sets `failed` and returns an empty value. Decoders check `failed` once, at the end of a record, so that malformed
 * input does not throw. Buffers are views into the bytes, not copies.
 */
export class JuteReader {
  /** The bytes under the cursor, owned by the caller. */
  bytes: Uint8Array;
  position: number;
  /** Where the record's frame ends; nothing beyond it is read. */
  end: number;
  /** True once any read has failed. Sticky until the next `reset`. */
  failed: boolean;
  /** Largest length of a buffer or string, in bytes. */
  readonly #fieldBytesMax: number;

  constructor(bytes: Uint8Array = EMPTY_BYTES, fieldBytesMax: number = DEFAULT_FIELD_BYTES_MAX) {
    this.bytes = bytes;
    this.position = 0;
    this.end = bytes.length;
    this.failed = false;
    this.#fieldBytesMax = fieldBytesMax;
  }

  /** Points the cursor at `bytes[position, end)` and clears `failed`. */
  reset(bytes: Uint8Array, position: number, end: number): void {
    this.bytes = bytes;
    this.position = position;
    this.end = end;
    this.failed = false;
  }

  get remaining(): number {
    return this.end - this.position;
  }

  byte(): number {
    const at = this.position;
    if (at + 1 > this.end) return this.#fail();
    this.position = at + 1;
    return (this.bytes[at]! << 24) >> 24;
  }

  /** Any non-zero byte is true. */
  boolean(): boolean {
    return this.byte() !== 0;
  }

  int(): number {
    const at = this.position;
    if (at + 4 > this.end) return this.#fail();
    this.position = at + 4;
    const b = this.bytes;
    return (b[at]! << 24) | (b[at + 1]! << 16) | (b[at + 2]! << 8) | b[at + 3]!;
  }

  /** A long that must be an exact number (a zxid, a time, a length); a larger one sets `failed`. */
  long(): number {
    const high = this.int();
    const low = this.int() >>> 0;
    const value = high * 0x100000000 + low;
    if (!Number.isSafeInteger(value)) return this.#fail();
    return value;
  }

  /** A long that is only compared (a ttl, a relative zxid): the nearest exact number. */
  longClamped(): number {
    const high = this.int();
    const low = this.int() >>> 0;
    const value = high * 0x100000000 + low;
    return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  }

  /** A long that uses all 64 bits (a session id, an ephemeral owner, a digest). */
  longBig(): bigint {
    HALVES[1] = this.int();
    HALVES[0] = this.int();
    return WHOLE[0]!;
  }

  /** A view of the field's bytes, or null for length −1. */
  buffer(): Uint8Array | null {
    const length = this.int();
    if (length < 0) {
      if (length !== -1) this.#fail();
      return null;
    }
    const at = this.position;
    if (length > this.#fieldBytesMax || at + length > this.end) {
      this.#fail();
      return null;
    }
    this.position = at + length;
    // Creating a view costs more than reading the rest of the field.
    return length === 0 ? EMPTY_BYTES : this.bytes.subarray(at, at + length);
  }

  /** Text, or null for length −1. Bytes that are not UTF-8 become U+FFFD, as in Apache's server. */
  ustring(): string | null {
    const length = this.int();
    if (length < 0) {
      if (length !== -1) this.#fail();
      return null;
    }
    const at = this.position;
    if (length > this.#fieldBytesMax || at + length > this.end) {
      this.#fail();
      return null;
    }
    this.position = at + length;
    return decodeText(this.bytes, at, at + length);
  }

  /** Skips a text or a buffer, with the same checks as reading it. */
  skipField(): void {
    const length = this.int();
    if (length < -1 || length > this.#fieldBytesMax || length > this.remaining) this.#fail();
    else this.position += Math.max(length, 0);
  }

  /** Number of elements of a vector; −1 (a null vector) and every other negative count read as 0. */
  vectorLength(elementBytesMin: number): number {
    const count = this.int();
    if (count <= 0) return 0;
    if (count * elementBytesMin > this.remaining) return this.#fail();
    return count;
  }

  #fail(): number {
    this.failed = true;
    return 0;
  }
}

/** jute.maxbuffer and as much again for the record around the data (zookeeper.jute.maxbuffer.extrasize). */
export const DEFAULT_FIELD_BYTES_MAX: number = 2 * 0xfffff;

export const EMPTY_BYTES: Uint8Array = new Uint8Array(0);

const HALVES = new Int32Array(2);
const WHOLE = new BigInt64Array(HALVES.buffer);
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/*
 * Most texts on the wire are paths that were seen a moment ago. A small cache from bytes to strings saves the call into
 * the decoder (about 100 ns) and the hashing that a new string costs at its first look-up in a Map. Direct mapped: a
 * slot holds the last ASCII text with its hash. The bytes are compared with the characters of the string, which are
 * accessed next anyway, while a copy of the bytes would cause another cache miss.
 *
 *     TEXTS        [ text          | text          | … ]   TEXT_SLOTS; an unused slot holds ''
 *     TEXT_HASHES  [ hash          | hash          | … ]   of the last text, cached or not
 *
 * A text is cached when it occurs a second time. Otherwise a million different paths in a row (log replay) would keep
 * 8192 strings alive from one garbage collection to the next without benefit.
 */
const TEXT_SLOTS = 8192;
const MEMO_BYTES_MAX = 128;
const TEXTS: string[] = new Array<string>(TEXT_SLOTS).fill('');
const TEXT_HASHES = new Int32Array(TEXT_SLOTS);
/** An odd number whose bits are evenly spread (2**32 divided by the golden ratio). */
const HASH_FACTOR = 0x9e3779b1 | 0;

function decodeText(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length > MEMO_BYTES_MAX) return DECODER.decode(bytes.subarray(start, end));
  const hash = hashOf(bytes, start, end);
  const slot = (hash ^ (hash >>> 16)) & (TEXT_SLOTS - 1);
  const known = TEXTS[slot]!;
  if (isTextOf(known, bytes, start, length)) return known;
  const text = decodeAscii(bytes, start, length);
  if (text === null) return DECODER.decode(bytes.subarray(start, end));
  if (TEXT_HASHES[slot] === hash) TEXTS[slot] = text;
  else TEXT_HASHES[slot] = hash;
  return text;
}

/** One array per length, holding the arguments of one call: 35 ns for a path, where the decoder takes 100. */
const CODES: number[][] = Array.from({ length: MEMO_BYTES_MAX + 1 }, (_, length) => new Array<number>(length).fill(0));

/** The text of bytes that are all ASCII; null when they are not. */
function decodeAscii(bytes: Uint8Array, start: number, length: number): string | null {
  const codes = CODES[length]!;
  let seen = 0;
  for (let i = 0; i < length; i++) {
    const code = bytes[start + i]!;
    seen |= code;
    codes[i] = code;
  }
  return seen > 0x7f ? null : String.fromCharCode.apply(null, codes);
}

/** Four bytes per step: the multiplications depend on each other, the loads do not. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (const last = end - 3; i < last; i += 4) {
    const four = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    hash = Math.imul(hash ^ four, HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  for (; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, HASH_FACTOR);
  return hash;
}

function isTextOf(ascii: string, bytes: Uint8Array, start: number, length: number): boolean {
  if (ascii.length !== length) return false;
  // From the end, where paths of one tree differ.
  for (let i = length - 1; i >= 0; i--) if (ascii.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
