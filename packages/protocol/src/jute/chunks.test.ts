import { expect, test } from 'vitest';
import { JuteChunks } from './chunks.ts';

test('a long value behind short ones gets a piece with room for it, so that no piece must grow', () => {
  const chunks = new JuteChunks();
  chunks.writer.int(7);
  const short = chunks.writer;
  const value = new Uint8Array(1_000_000).fill(1);
  const writer = chunks.writerFor(value.length + 4);
  const room = writer.bytes;
  writer.buffer(value);
  expect(writer).not.toBe(short);
  expect(writer.bytes).toBe(room);
  chunks.writer.int(8);

  const all = Buffer.concat(chunks.pieces);
  expect(all.length).toBe(chunks.bytes);
  expect([all.readInt32BE(0), all.readInt32BE(4), all.at(-5), all.readInt32BE(all.length - 4)]).toEqual([7, 1e6, 1, 8]);
});

test('short values share a piece', () => {
  const chunks = new JuteChunks();
  for (let i = 0; i < 100; i++) chunks.writerFor(1000).raw(new Uint8Array(1000));
  expect(chunks.pieces).toHaveLength(1);
});
