import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteArena, copyBytes, PAGE_BYTES } from './byte-arena.ts';

describe('a byte arena', () => {
  it('allocates blocks that never overlap, in any order of allocating and freeing', () => {
    const sizes = fc.oneof(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1, max: 20_000 }), fc.constant(100_000));
    const steps = fc.array(fc.record({ bytes: sizes, frees: fc.boolean(), which: fc.nat() }), {
      maxLength: 400,
      size: 'max',
    });
    fc.assert(
      fc.property(steps, (list) => {
        const arena = new ByteArena();
        const blocks: { reference: number; bytes: number; mark: number }[] = [];
        let mark = 0;
        for (const { bytes, frees, which } of list) {
          if (frees && blocks.length > 0) {
            const [block] = blocks.splice(which % blocks.length, 1);
            arena.free(block!.reference, block!.bytes);
          } else {
            const reference = arena.allocate(bytes);
            mark = (mark % 255) + 1;
            arena.page(reference).fill(mark, arena.offset(reference), arena.offset(reference) + bytes);
            blocks.push({ reference, bytes, mark });
          }
        }
        for (const block of blocks) {
          const start = arena.offset(block.reference);
          const content = arena.page(block.reference).subarray(start, start + block.bytes);
          expect(content.length).toBe(block.bytes);
          expect(content.every((byte) => byte === block.mark)).toBe(true);
        }
        for (const { reference, bytes } of blocks) arena.free(reference, bytes);
        expect(arena.pageBytes).toBe(0);
      }),
    );
  });

  it('wastes at most an eighth of a block, and fills a page before it takes the next', () => {
    for (const bytes of [16, 172, 176, 512, 513, 577, 1100, 4097, 9000, 16_384]) {
      const arena = new ByteArena();
      const perPage = Math.floor(PAGE_BYTES / Math.max(Math.ceil(bytes / 16) * 16, Math.ceil((bytes * 9) / 8)));
      for (let i = 0; i < perPage; i++) arena.allocate(bytes);
      expect([bytes, arena.pageBytes]).toEqual([bytes, PAGE_BYTES]);
    }
  });

  it('gives a block beyond the classes a page of exactly its size, and frees it', () => {
    const arena = new ByteArena();
    const reference = arena.allocate(1_000_003);
    expect(arena.page(reference).length).toBe(1_000_003);
    expect(arena.isSameRoom(1_000_003, 1_000_002)).toBe(false);
    arena.free(reference, 1_000_003);
    expect(arena.pageBytes).toBe(0);
  });

  it('reuses a freed block before it takes a fresh one', () => {
    const arena = new ByteArena();
    const [first, second] = [arena.allocate(100), arena.allocate(100)];
    arena.free(first, 100);
    expect(arena.allocate(112)).toBe(first);
    expect(arena.isSameRoom(97, 112)).toBe(true);
    expect(arena.isSameRoom(96, 112)).toBe(false);
    expect(second).not.toBe(first);
  });
});

describe('copyBytes', () => {
  it('copies short and long ranges to where they belong', () => {
    const source = Uint8Array.from({ length: 300 }, (_, i) => i & 0xff);
    for (const length of [0, 1, 47, 48, 49, 200, 300]) {
      const target = new Uint8Array(310);
      copyBytes(source, 300 - length, 300, target, 5);
      expect([...target.subarray(5, 5 + length)]).toEqual([...source.subarray(300 - length)]);
      expect(target[5 + length]).toBe(0);
    }
  });
});
