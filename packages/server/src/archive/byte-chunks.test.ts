import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { unpackedChunks } from './byte-chunks.ts';
import { SnappyPacker } from './snappy.ts';

async function* pieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function unpacked(bytes: Uint8Array, length: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of unpackedChunks(pieces(bytes, length), 'it')) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('what is sent is unpacked if it begins as something packed, however it is cut into pieces', async () => {
  const text = Buffer.from('ZKSN, and more of it');
  for (const bytes of [text, gzipSync(text), new SnappyPacker().take(text, true)])
    for (const length of [1, 3, 1000]) expect(await unpacked(bytes, length)).toBe('ZKSN, and more of it');
  expect(await unpacked(Buffer.from('short'), 2)).toBe('short');
  expect(await unpacked(Buffer.alloc(0), 2)).toBe('');
  await expect(unpacked(gzipSync(text).subarray(0, -1), 7)).rejects.toThrow(
    'it cannot be unpacked: unexpected end of file',
  );
});
