/**
 * Builds jute records byte by byte, for tests.
 *
 * It shares no code with `@meerkat/protocol`, so that sent and expected bytes never come from the encoder under test.
 * It can also write invalid records: wrong lengths, missing fields and trailing bytes.
 */
export class RecordBuilder {
  readonly #parts: Buffer[] = [];

  byte(value: number): this {
    this.#parts.push(Buffer.from([value & 0xff]));
    return this;
  }

  bool(value: boolean): this {
    return this.byte(value ? 1 : 0);
  }

  int(value: number): this {
    const part = Buffer.alloc(4);
    part.writeInt32BE(value | 0);
    this.#parts.push(part);
    return this;
  }

  long(value: bigint): this {
    const part = Buffer.alloc(8);
    part.writeBigInt64BE(BigInt.asIntN(64, value));
    this.#parts.push(part);
    return this;
  }

  /** A length and the bytes; null is the length −1. */
  buffer(value: Uint8Array | string | null): this {
    if (value === null) return this.int(-1);
    const bytes = Buffer.from(value as Uint8Array);
    return this.int(bytes.length).raw(bytes);
  }

  ustring(value: string | null): this {
    return this.buffer(value === null ? null : Buffer.from(value, 'utf8'));
  }

  /** A count and the elements; null is the count −1. */
  vector<T>(items: readonly T[] | null, write: (builder: RecordBuilder, item: T) => void): this {
    if (items === null) return this.int(-1);
    this.int(items.length);
    for (const item of items) write(this, item);
    return this;
  }

  strings(items: readonly (string | null)[] | null): this {
    return this.vector(items, (builder, item) => builder.ustring(item));
  }

  acls(items: readonly AclEntry[] | null): this {
    return this.vector(items, (builder, item) => builder.int(item.perms).ustring(item.scheme).ustring(item.id));
  }

  /** Raw bytes, without a length. */
  raw(bytes: Uint8Array): this {
    this.#parts.push(Buffer.from(bytes));
    return this;
  }

  build(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** One entry of an ACL; null fields are legal on the wire. */
export interface AclEntry {
  readonly perms: number;
  readonly scheme: string | null;
  readonly id: string | null;
}

export const OPEN_ACL: readonly AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];

export function record(): RecordBuilder {
  return new RecordBuilder();
}
