import { describe, expect, test } from 'vitest';
import { bytesOf } from '../testing/byte-list.ts';
import { getInt, getLong, getLongBig, JuteWriter, putInt, putLong, putLongBig } from './writer.ts';

describe('a writer', () => {
  test('returns the same view while length and buffer are the same', () => {
    const writer = new JuteWriter(8);
    expect(writer.written()).toEqual(Uint8Array.of());
    writer.int(1);
    const first = writer.written();
    expect(first).toEqual(Uint8Array.of(0, 0, 0, 1));
    writer.position = 0;
    writer.int(2);
    expect(writer.written()).toBe(first);
    expect(first).toEqual(Uint8Array.of(0, 0, 0, 2));
    writer.int(3);
    expect(writer.written()).toEqual(Uint8Array.of(0, 0, 0, 2, 0, 0, 0, 3));
    writer.int(4);
    writer.position = 8;
    expect(writer.written().buffer).toBe(writer.bytes.buffer);
  });

  test('writes every primitive, for any initial size', () => {
    const writer = new JuteWriter(1);
    writer.byte(-1);
    writer.boolean(true);
    writer.boolean(false);
    writer.int(-2);
    writer.long(-1);
    writer.long(Number.MAX_SAFE_INTEGER);
    writer.long(Number.MIN_SAFE_INTEGER);
    writer.longBig(-(2n ** 63n));
    writer.buffer(null);
    writer.buffer(Uint8Array.of());
    writer.buffer(Uint8Array.of(1, 2));
    writer.ustring(null);
    writer.ustring('');
    writer.ustring('/a');
    writer.ustring('/ä€');
    writer.raw(Uint8Array.of(9));
    expect(writer.toBytes()).toEqual(
      bytesOf((b) =>
        b
          .byte(-1)
          .boolean(true)
          .boolean(false)
          .int(-2)
          .long(-1)
          .long(Number.MAX_SAFE_INTEGER)
          .long(Number.MIN_SAFE_INTEGER)
          .long(-(2n ** 63n))
          .buffer(null)
          .buffer([])
          .buffer([1, 2])
          .text(null)
          .text('')
          .text('/a')
          .text('/ä€')
          .raw([9]),
      ),
    );
  });

  test('fills in the length of a frame afterwards, even if the buffer was replaced meanwhile', () => {
    const writer = new JuteWriter(8);
    writer.int(7);
    const at = writer.beginFrame();
    writer.buffer(new Uint8Array(100));
    writer.endFrame(at);
    expect(writer.toBytes()).toEqual(bytesOf((b) => b.int(7).int(104).buffer(new Uint8Array(100))));
  });

  test('writes non-ASCII text at the very end of its buffer', () => {
    const writer = new JuteWriter(6);
    writer.ustring('a€');
    expect(writer.toBytes()).toEqual(bytesOf((b) => b.text('a€')));
  });
});

describe('numbers at a place in a byte array', () => {
  test.each([0, 1, -1, 2 ** 31 - 1, -(2 ** 31)])('the int %i', (value) => {
    const bytes = new Uint8Array(6);
    putInt(bytes, 1, value);
    expect(bytes).toEqual(bytesOf((b) => b.byte(0).int(value).byte(0)));
    expect(getInt(bytes, 1)).toBe(value);
  });

  test.each([0, 1, -1, 2 ** 32, -(2 ** 32), 2 ** 32 - 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])(
    'the long %i as a number and as a bigint',
    (value) => {
      const bytes = new Uint8Array(10);
      putLong(bytes, 1, value);
      expect(bytes).toEqual(bytesOf((b) => b.byte(0).long(value).byte(0)));
      expect(getLong(bytes, 1)).toBe(value);
      expect(getLongBig(bytes, 1)).toBe(BigInt(value));
    },
  );

  test.each([2n ** 63n - 1n, -(2n ** 63n), 0x0123456789abcdefn])('the long %s', (value) => {
    const bytes = new Uint8Array(8);
    putLongBig(bytes, 0, value);
    expect(bytes).toEqual(bytesOf((b) => b.long(value)));
    expect(getLongBig(bytes, 0)).toBe(value);
  });
});
