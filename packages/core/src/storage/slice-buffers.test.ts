import { describe, expect, it } from 'vitest';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

const SLICE_BYTES = 100;

describe('slice buffers', () => {
  it('put a rest before its slice without moving the slice', () => {
    const buffers = new SliceBuffers();
    const first = buffers.room(SLICE_BYTES).fill(1);
    const second = buffers.room(SLICE_BYTES).fill(2).subarray(0, 50);
    const joined = buffers.join(first.subarray(97), second);
    expect(Array.from(joined.subarray(0, 5))).toEqual([1, 1, 1, 2, 2]);
    expect(joined).toHaveLength(53);
    expect(joined.buffer).toBe(second.buffer);
  });

  it('do not overwrite a slice until as many others as may be read ahead have been requested', () => {
    const buffers = new SliceBuffers();
    const first = buffers.room(SLICE_BYTES).fill(1);
    for (let i = 0; i < READS_AHEAD; i++) buffers.room(SLICE_BYTES).fill(2);
    expect(first.every((byte) => byte === 1)).toBe(true);
    expect(buffers.room(SLICE_BYTES).buffer).toBe(first.buffer);
  });

  it('are no larger than the slices of a small file, and grow for a larger one', () => {
    const buffers = new SliceBuffers();
    const first = buffers.room(10);
    expect(first).toHaveLength(10);
    for (let i = 0; i < READS_AHEAD; i++) buffers.room(10);
    expect(buffers.room(5).buffer).toBe(first.buffer);
    for (let i = 0; i < READS_AHEAD; i++) buffers.room(10);
    const second = buffers.room(SLICE_BYTES).fill(2);
    expect(second).toHaveLength(SLICE_BYTES);
    expect(Array.from(buffers.join(Uint8Array.of(1), second)).slice(0, 3)).toEqual([1, 2, 2]);
  });

  it('join what is too long, or not in the buffers, in new memory', () => {
    const buffers = new SliceBuffers();
    const rest = new Uint8Array(70_000).fill(1);
    const slice = buffers.room(SLICE_BYTES).fill(2);
    const joined = buffers.join(rest, slice);
    expect(joined).toHaveLength(70_100);
    expect([joined[0], joined[69_999], joined[70_000], joined[70_099]]).toEqual([1, 1, 2, 2]);
    expect(Array.from(buffers.join(Uint8Array.of(1), Uint8Array.of(2)))).toEqual([1, 2]);
  });

  it('copy a record of very many slices only a few times', () => {
    const buffers = new SliceBuffers();
    const memories = new Set<ArrayBufferLike>();
    let joined = new Uint8Array(70_000).fill(1);
    for (let i = 0; i < 10_000; i++) {
      joined = buffers.join(joined, buffers.room(SLICE_BYTES).fill(i)) as Uint8Array<ArrayBuffer>;
      memories.add(joined.buffer);
    }
    expect(joined).toHaveLength(70_000 + 10_000 * SLICE_BYTES);
    expect([joined[0], joined[69_999], joined[70_000], joined.at(-1)]).toEqual([1, 1, 0, 9999 & 0xff]);
    expect(memories.size).toBeLessThan(6);
    // Its rest is the beginning of the next record.
    const rest = joined.subarray(joined.length - 3);
    expect(Array.from(buffers.join(rest, buffers.room(SLICE_BYTES).fill(5)).subarray(0, 5))).toEqual([
      15, 15, 15, 5, 5,
    ]);
  });
});
