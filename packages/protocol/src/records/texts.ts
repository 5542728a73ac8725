import { JuteReader } from '../jute/reader.ts';

/** A vector of texts, in order. */
export interface Texts extends Iterable<string> {
  readonly length: number;
}

/** Reads a vector of texts, lazily if there are many; a null element fails the record. */
export function readTexts(reader: JuteReader): Texts {
  const count = reader.vectorLength(TEXT_BYTES_MIN);
  return count <= FEW_TEXTS ? readAll(reader, count) : skipTexts(reader, count);
}

function readAll(reader: JuteReader, count: number): readonly string[] {
  const texts: string[] = [];
  for (let i = 0; i < count; i++) {
    const text = reader.ustring();
    if (text === null) {
      reader.failed = true;
      break;
    }
    texts.push(text);
  }
  return texts;
}

function skipTexts(reader: JuteReader, count: number): Texts {
  const start = reader.position;
  for (let i = 0; i < count && !reader.failed; i++) {
    // A negative length.
    if (reader.bytes[reader.position]! > 0x7f) reader.failed = true;
    reader.skipField();
  }
  return new ManyTexts(reader.bytes.slice(start, reader.position), count);
}

/** Decoding a megabyte of short texts takes 20 ms: callers iterate in slices. */
class ManyTexts implements Texts {
  readonly length: number;
  readonly #bytes: Uint8Array;

  /** @param bytes whole texts, none of them null */
  constructor(bytes: Uint8Array, length: number) {
    this.#bytes = bytes;
    this.length = length;
  }

  *[Symbol.iterator](): Iterator<string> {
    const reader = new JuteReader(this.#bytes, this.#bytes.length);
    for (let i = 0; i < this.length; i++) yield reader.ustring()!;
  }
}

const TEXT_BYTES_MIN = 4;
const FEW_TEXTS = 1000;
