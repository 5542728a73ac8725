import { describe, expect, test } from 'vitest';
import { bytesOf } from '../testing/byte-list.ts';
import { JuteReader } from './reader.ts';

describe('a reader', () => {
  test('reads every primitive in turn and ends where the bytes end', () => {
    const reader = new JuteReader(
      bytesOf((b) =>
        b
          .byte(-1)
          .boolean(true)
          .int(-2)
          .long(-1)
          .long(2 ** 53 - 1)
          .long(-(2n ** 63n))
          .buffer([1, 2])
          .text('/ä'),
      ),
    );
    expect(reader.byte()).toBe(-1);
    expect(reader.boolean()).toBe(true);
    expect(reader.int()).toBe(-2);
    expect(reader.long()).toBe(-1);
    expect(reader.long()).toBe(Number.MAX_SAFE_INTEGER);
    expect(reader.longBig()).toBe(-(2n ** 63n));
    expect(reader.buffer()).toEqual(Uint8Array.of(1, 2));
    expect(reader.ustring()).toBe('/ä');
    expect(reader.remaining).toBe(0);
    expect(reader.failed).toBe(false);
  });

  test('reads any byte but 0 as true', () => {
    const reader = new JuteReader(Uint8Array.of(0, 1, 2, 255));
    expect([reader.boolean(), reader.boolean(), reader.boolean(), reader.boolean()]).toEqual([false, true, true, true]);
  });

  test('distinguishes null and empty', () => {
    const reader = new JuteReader(bytesOf((b) => b.buffer(null).buffer([]).text(null).text('')));
    expect(reader.buffer()).toBeNull();
    expect(reader.buffer()).toEqual(new Uint8Array(0));
    expect(reader.ustring()).toBeNull();
    expect(reader.ustring()).toBe('');
    expect(reader.failed).toBe(false);
  });

  test.each([2n ** 53n, 2n ** 63n - 1n, -(2n ** 53n), -(2n ** 63n)])(
    'fails on the long %s, which is no exact number',
    (value) => {
      const reader = new JuteReader(bytesOf((b) => b.long(value)));
      expect(reader.long()).toBe(0);
      expect(reader.failed).toBe(true);
    },
  );

  test.each([
    [2n ** 53n, Number.MAX_SAFE_INTEGER],
    [2n ** 63n - 1n, Number.MAX_SAFE_INTEGER],
    [-(2n ** 63n), Number.MIN_SAFE_INTEGER],
    [-1n, -1],
    [0xffffffffffn, 0xffffffffff],
  ])('reads the long %s as %s if it is only compared', (value, expected) => {
    const reader = new JuteReader(bytesOf((b) => b.long(value)));
    expect(reader.longClamped()).toBe(expected);
    expect(reader.failed).toBe(false);
  });

  test.each([
    ['byte', 0],
    ['int', 3],
    ['long', 7],
    ['longClamped', 7],
    ['longBig', 7],
    ['buffer', 3],
    ['ustring', 3],
  ] as const)('fails when %s finds only %i bytes, and reads nothing beyond them', (method, count) => {
    // The bytes behind the end would complete the value.
    const reader = new JuteReader(new Uint8Array(32));
    reader.reset(reader.bytes, 4, 4 + count);
    reader[method]();
    expect(reader.failed).toBe(true);
    expect(reader.position).toBeLessThanOrEqual(4 + count);
  });

  test.each([-2, -(2 ** 31), 5, 2 ** 31 - 1])('fails on a field of length %i with four bytes behind it', (length) => {
    const bytes = bytesOf((b) => b.int(length).raw([1, 2, 3, 4]));
    const buffers = new JuteReader(bytes);
    expect(buffers.buffer()).toBeNull();
    expect(buffers.failed).toBe(true);
    const texts = new JuteReader(bytes);
    expect(texts.ustring()).toBeNull();
    expect(texts.failed).toBe(true);
  });

  test('fails on a field longer than the limit, although its bytes are present', () => {
    const bytes = bytesOf((b) => b.buffer(new Uint8Array(11)));
    expect(new JuteReader(bytes, 11).buffer()).toHaveLength(11);
    const reader = new JuteReader(bytes, 10);
    expect(reader.buffer()).toBeNull();
    expect(reader.failed).toBe(true);
  });

  test('reads a negative count as an empty vector', () => {
    for (const count of [0, -1, -2, -(2 ** 31)]) {
      const reader = new JuteReader(bytesOf((b) => b.int(count)));
      expect(reader.vectorLength(1)).toBe(0);
      expect(reader.failed).toBe(false);
    }
  });

  test('refuses a count of elements for which the bytes cannot suffice', () => {
    const reader = new JuteReader(bytesOf((b) => b.int(2).raw(new Uint8Array(8))));
    expect(reader.vectorLength(4)).toBe(2);
    reader.reset(reader.bytes, 0, 11);
    expect(reader.vectorLength(4)).toBe(0);
    expect(reader.failed).toBe(true);
    const hostile = new JuteReader(bytesOf((b) => b.int(2 ** 31 - 1).raw(new Uint8Array(100))));
    expect(hostile.vectorLength(4)).toBe(0);
    expect(hostile.failed).toBe(true);
  });

  test('clears a failure on reset', () => {
    const reader = new JuteReader(new Uint8Array(0));
    reader.int();
    expect(reader.failed).toBe(true);
    reader.reset(Uint8Array.of(0, 0, 0, 7), 0, 4);
    expect(reader.int()).toBe(7);
    expect(reader.failed).toBe(false);
  });
});

describe('the text of a field', () => {
  const read = (bytes: Uint8Array) => new JuteReader(bytesOf((b) => b.buffer(bytes))).ustring();

  test('that is not UTF-8 has U+FFFD instead of the invalid bytes', () => {
    expect(read(Uint8Array.of(0x2f, 0xff, 0x61))).toBe('/\ufffda');
    // A supplementary character as Apache's writer encodes it: each half of the pair on its own.
    expect(read(Uint8Array.of(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80))).toMatch(/^\ufffd+$/);
  });

  test('keeps a byte order mark', () => {
    expect(read(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\ufeffa');
  });

  test('is right even when texts evict each other from the cache, in any order', () => {
    // Far more texts than the cache has slots, of many lengths, ASCII and not.
    const texts = Array.from({ length: 50_000 }, (_, i) => `/${i.toString(36)}${i % 3 === 0 ? 'é' : ''}`);
    for (const text of [...texts, ...texts.toReversed()]) {
      if (read(Buffer.from(text)) !== text) throw new Error(`${text} was read as something else`);
    }
  });

  test('is not taken from the cache when one byte differs, wherever', () => {
    // At each place there are texts with the same slot that differ there and nowhere else.
    const texts = Array.from({ length: 100_000 }, (_, i) => String(i).padStart(5, '0'));
    for (const text of texts) {
      const bytes = Buffer.from(text);
      for (const time of ['first', 'second', 'third']) {
        const found = read(bytes);
        if (found !== text) throw new Error(`${text} was read as ${found} at its ${time} occurrence`);
      }
    }
  });

  test('is not taken from the cache when a byte differs only in its highest bit', () => {
    expect(read(Buffer.from('/abc'))).toBe('/abc');
    expect(read(Uint8Array.of(0x2f, 0x61, 0x62, 0xe3))).toBe('/ab\ufffd');
    expect(read(Uint8Array.of(0x2f, 0xc3, 0xa9))).toBe('/é');
    expect(read(Uint8Array.of(0x2f, 0xc3, 0xa9))).toBe('/é');
  });

  test('may be longer than a cached text', () => {
    const long = `/${'x'.repeat(5000)}é`;
    expect(read(Buffer.from(long))).toBe(long);
  });
});
