/**
 * Builds the bytes that a test expects, from the protocol's tables and DataView alone, so that no test relies on our
 * own encoder.
 */
export class ByteList {
  readonly #bytes: number[] = [];

  byte(value: number): this {
    return this.#view(1, (view) => view.setInt8(0, value));
  }

  boolean(value: boolean): this {
    return this.byte(value ? 1 : 0);
  }

  int(value: number): this {
    return this.#view(4, (view) => view.setInt32(0, value));
  }

  long(value: number | bigint): this {
    return this.#view(8, (view) => view.setBigInt64(0, BigInt(value)));
  }

  /** A buffer field; null is length −1. */
  buffer(value: ArrayLike<number> | null): this {
    if (value === null) return this.int(-1);
    return this.int(value.length).raw(value);
  }

  /** A ustring field in UTF-8; null is length −1. */
  text(value: string | null): this {
    return this.buffer(value === null ? null : new TextEncoder().encode(value));
  }

  texts(...values: readonly (string | null)[]): this {
    this.int(values.length);
    for (const value of values) this.text(value);
    return this;
  }

  /** An ACL list of [perms, scheme, id]. */
  acl(...entries: readonly (readonly [number, string | null, string | null])[]): this {
    this.int(entries.length);
    for (const [perms, scheme, id] of entries) this.int(perms).text(scheme).text(id);
    return this;
  }

  raw(values: ArrayLike<number>): this {
    for (let i = 0; i < values.length; i++) this.#bytes.push(values[i] as number);
    return this;
  }

  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  #view(size: number, set: (view: DataView) => void): this {
    const view = new DataView(new ArrayBuffer(size));
    set(view);
    return this.raw(new Uint8Array(view.buffer));
  }
}

/** The bytes that `build` describes. */
export function bytesOf(build: (list: ByteList) => ByteList): Uint8Array {
  return build(new ByteList()).toBytes();
}
