import type { AclEntry } from './record-builder.ts';

/** The 68 bytes of a Stat. */
export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly ctime: bigint;
  readonly mtime: bigint;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: bigint;
}

/** The counterpart of `RecordBuilder`: reads jute fields in order, throws a `RangeError` at the end of the bytes. */
export class RecordReader {
  readonly #bytes: Buffer;
  #position: number;

  constructor(bytes: Buffer, position = 0) {
    this.#bytes = bytes;
    this.#position = position;
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  byte(): number {
    this.#position += 1;
    return this.#bytes.readUInt8(this.#position - 1);
  }

  bool(): boolean {
    return this.byte() !== 0;
  }

  int(): number {
    this.#position += 4;
    return this.#bytes.readInt32BE(this.#position - 4);
  }

  long(): bigint {
    this.#position += 8;
    return this.#bytes.readBigInt64BE(this.#position - 8);
  }

  buffer(): Buffer | null {
    const length = this.int();
    if (length < 0) return null;
    if (length > this.remaining) throw new RangeError(`a buffer of ${length} bytes, ${this.remaining} are left`);
    this.#position += length;
    return this.#bytes.subarray(this.#position - length, this.#position);
  }

  ustring(): string | null {
    return this.buffer()?.toString('utf8') ?? null;
  }

  vector<T>(read: (reader: RecordReader) => T): T[] | null {
    const count = this.int();
    if (count < 0) return null;
    const items: T[] = [];
    for (let i = 0; i < count; i++) items.push(read(this));
    return items;
  }

  strings(): (string | null)[] | null {
    return this.vector((reader) => reader.ustring());
  }

  acls(): AclEntry[] | null {
    return this.vector((reader) => ({ perms: reader.int(), scheme: reader.ustring(), id: reader.ustring() }));
  }

  stat(): Stat {
    return {
      czxid: this.long(),
      mzxid: this.long(),
      ctime: this.long(),
      mtime: this.long(),
      version: this.int(),
      cversion: this.int(),
      aversion: this.int(),
      ephemeralOwner: this.long(),
      dataLength: this.int(),
      numChildren: this.int(),
      pzxid: this.long(),
    };
  }

  rest(): Buffer {
    const rest = this.#bytes.subarray(this.#position);
    this.#position = this.#bytes.length;
    return rest;
  }
}
