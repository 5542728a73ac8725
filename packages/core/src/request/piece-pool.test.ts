import { expect, test } from 'vitest';
import { PiecePool } from './piece-pool.ts';

const KIB = 1024;

test('a returned piece is reused for a request of about the same size, and is empty', () => {
  const pool = new PiecePool();
  const piece = pool.take(1_000_000);
  expect(piece.bytes.length).toBeGreaterThanOrEqual(1_000_000);
  piece.int(7);
  pool.give(piece);
  expect(pool.take(100_000)).not.toBe(piece);
  const again = pool.take(1_000_001);
  expect(again).toBe(piece);
  expect(again.position).toBe(0);
  expect(pool.take(1_000_000)).not.toBe(piece);
});

test('the pool size is limited, and pieces of the least recently used size are dropped first', () => {
  const pool = new PiecePool(512 * KIB);
  const [small, large] = [64, 256].map((kib) => Array.from({ length: 3 }, () => pool.take(kib * KIB))) as [
    ReturnType<PiecePool['take']>[],
    ReturnType<PiecePool['take']>[],
  ];
  for (const piece of [...small, ...large]) pool.give(piece);
  expect([large.includes(pool.take(256 * KIB)), large.includes(pool.take(256 * KIB))]).toEqual([true, true]);
  expect(large.includes(pool.take(256 * KIB))).toBe(false);
  expect(small.includes(pool.take(64 * KIB))).toBe(false);
});

test('pieces that have grown to an unused size or are larger than the pool are not kept', () => {
  const pool = new PiecePool(512 * KIB);
  const grown = pool.take(64 * KIB);
  grown.raw(new Uint8Array(200_001));
  const large = pool.take(1024 * KIB);
  for (const piece of [grown, large]) pool.give(piece);
  expect(pool.take(grown.bytes.length)).not.toBe(grown);
  expect(pool.take(1024 * KIB)).not.toBe(large);
});
