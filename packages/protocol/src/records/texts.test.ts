import { describe, expect, test } from 'vitest';
import { JuteReader } from '../jute/reader.ts';
import { JuteWriter } from '../jute/writer.ts';
import { readTexts } from './texts.ts';

describe.each([3, 5000])('a vector of %i texts', (count) => {
  const texts = Array.from({ length: count }, (_, i) => (i % 2 === 0 ? `/a-${i}` : `/ä-${i}`));
  const bytes = bytesOf(texts);

  test('is read in order, and the reader ends behind it', () => {
    const reader = new JuteReader(Uint8Array.of(...bytesOf([]), ...bytes, 7), 1 << 20);
    reader.int();
    const read = readTexts(reader);
    expect([...read]).toEqual(texts);
    expect([...read]).toEqual(texts);
    expect(read.length).toBe(count);
    expect([reader.failed, reader.byte()]).toEqual([false, 7]);
  });

  test('is a copy, independent of the bytes', () => {
    const taken = bytes.slice();
    const read = readTexts(new JuteReader(taken));
    taken.fill(0);
    expect([...read]).toEqual(texts);
  });

  test('fails the record when it ends early, or one is null', () => {
    for (const length of [bytes.length - 1, bytes.length >> 1, 5]) {
      const reader = new JuteReader(bytes.subarray(0, length));
      readTexts(reader);
      expect(reader.failed, `${length} bytes`).toBe(true);
    }
    const hole = new JuteReader(bytesOf([...texts, null]));
    readTexts(hole);
    expect(hole.failed).toBe(true);
  });
});

function bytesOf(texts: readonly (string | null)[]): Uint8Array {
  const writer = new JuteWriter();
  writer.int(texts.length);
  for (const text of texts) writer.ustring(text);
  return writer.toBytes();
}
