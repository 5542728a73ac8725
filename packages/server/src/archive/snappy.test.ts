import { expect, test } from 'vitest';
import { unpackBlock, unpackSnappy } from './snappy.ts';

const text = (bytes: Uint8Array | null): string | null => (bytes === null ? null : Buffer.from(bytes).toString());

/** As the description of the format has them: literals, and copies with one, two and four bytes of distance. */
test.each([
  ['a literal', [5, 4 << 2, ...Buffer.from('hello')], 'hello'],
  ['a run, copied from one byte before', [10, 0, 0x61, ((9 - 1) << 2) | 2, 1, 0], 'a'.repeat(10)],
  ['a copy of 4 to 11 bytes with a short distance', [8, 3 << 2, ...Buffer.from('abcd'), 1, 4], 'abcdabcd'],
  ['a copy with a long distance', [6, 2 << 2, ...Buffer.from('xyz'), (2 << 2) | 3, 3, 0, 0, 0], 'xyzxyz'],
  ['a long literal', [0x80, 1, 60 << 2, 127, ...Buffer.from('q'.repeat(128))], 'q'.repeat(128)],
])('%s is unpacked', (_name, bytes, expected) => {
  expect(text(unpackBlock(Uint8Array.from(bytes)))).toBe(expected);
});

test.each([
  ['one that ends early', [5, 4 << 2, 0x68]],
  ['a copy from before the beginning', [4, 1, 4]],
  ['a copy from where it stands', [5, 0, 0x61, 1, 0]],
  ['more than it says', [1, 1 << 2, 0x61, 0x62]],
  ['less than it says', [9, 0, 0x61]],
  ['a length that cannot be', [0xff, 0xff, 0xff, 0xff, 0x7f]],
])('%s is refused', (_name, bytes) => {
  expect(unpackBlock(Uint8Array.from(bytes))).toBeNull();
});

async function* pieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

test('a stream is unpacked however it is cut into pieces, and one that ends early is refused', async () => {
  const block = [5, 4 << 2, ...Buffer.from('hello')];
  const stream = Uint8Array.from([
    ...[0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1],
    ...[0, 0, 0, block.length, ...block, 0, 0, 0, block.length, ...block],
  ]);
  const unpacked = async (bytes: Uint8Array, length: number): Promise<string> => {
    let found = '';
    for await (const piece of unpackSnappy(pieces(bytes, length), 'x.snappy')) found += text(piece);
    return found;
  };
  for (const length of [1, 3, 17, 1000]) expect(await unpacked(stream, length)).toBe('hellohello');
  await expect(unpacked(stream.subarray(0, -1), 7)).rejects.toThrow('x.snappy at position 27: it is cut short');
  await expect(unpacked(Uint8Array.from(stream.toReversed()), 7)).rejects.toThrow('it is no stream of snappy');
});
