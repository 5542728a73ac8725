import { describe, expect, test } from 'vitest';
import { InputBuffer } from './input-buffer.ts';

/**
 * Appends a frame in chunks.
 *
 * @returns bytes that were moved, and the largest ratio of buffer size to buffered bytes
 */
function fill(input: InputBuffer, { frameBytes, chunkBytes }: { frameBytes: number; chunkBytes: number }) {
  let moved = 0;
  let roomPerByte = 0;
  for (let at = 0; at < frameBytes; at += chunkBytes) {
    const before = input.bytes;
    const left = input.end - input.start;
    const coming = Math.min(chunkBytes, frameBytes - at);
    input.append(new Uint8Array(coming).fill(at / chunkBytes), frameBytes);
    if (input.bytes !== before) moved += left;
    roomPerByte = Math.max(roomPerByte, input.bytes.length / (left + coming));
  }
  return { moved, roomPerByte };
}

describe('the input', () => {
  test('moves each byte of a large frame about once, however small its chunks are', () => {
    for (const chunkBytes of [7, 1024, 64 * 1024]) {
      const input = new InputBuffer();
      const { moved } = fill(input, { frameBytes: 4 * 1024 * 1024, chunkBytes });
      expect(moved, `chunks of ${chunkBytes}`).toBeLessThan(2 * 4 * 1024 * 1024);
      expect(input.end - input.start).toBe(4 * 1024 * 1024);
      for (const at of [0, chunkBytes, 5 * chunkBytes]) expect(input.bytes[input.start + at]).toBe(at / chunkBytes);
    }
  });

  test('uses at most twice the memory of what has arrived, and at most the length of a frame', () => {
    const input = new InputBuffer();
    expect(fill(input, { frameBytes: 3_000_001, chunkBytes: 4096 }).roomPerByte).toBeLessThanOrEqual(2);
    expect(input.bytes.length).toBe(3_000_001);
  });

  test('does not change what has been read', () => {
    const input = new InputBuffer();
    input.append(Uint8Array.of(1, 2, 3));
    input.append(Uint8Array.of(4, 5));
    const read = input.bytes.subarray(input.start, input.start + 4);
    input.start += 4;
    for (let i = 0; i < 20; i++) input.append(Uint8Array.of(9, 9, 9), 100);
    expect([...read]).toEqual([1, 2, 3, 4]);
    expect(input.bytes[input.start]).toBe(5);
  });

  test('takes a chunk that follows its end in memory without a copy, and no other chunk', () => {
    const input = new InputBuffer();
    const memory = new Uint8Array(8);
    input.append(Uint8Array.of(1, 2));
    input.start = 1;
    input.moveTo(memory);
    memory[1] = 3;
    input.append(memory.subarray(1, 2));
    expect(input.bytes).toBe(memory);
    expect([...input.bytes.subarray(input.start, input.end)]).toEqual([2, 3]);
    input.append(new Uint8Array(8).fill(4).subarray(2, 4));
    expect([...input.bytes.subarray(input.start, input.end)]).toEqual([2, 3, 4, 4]);
    input.append(memory.subarray(0, 1));
    expect([...input.bytes.subarray(input.start, input.end)]).toEqual([2, 3, 4, 4, 2]);
  });

  test('gives a reader that asks for more each byte once and in order, and copies little of long chunks', () => {
    const input = new InputBuffer();
    const chunkBytes = 60_000;
    const frameBytes = 1100;
    let next = 0;
    let sent = 0;
    let memories = 0;
    for (let i = 0; i < 50; i++) {
      const chunk = new Uint8Array(chunkBytes).map(() => sent++);
      input.appendPart(chunk);
      // Sometimes nothing is read before the next chunk arrives.
      if (i % 7 === 6) continue;
      for (;;) {
        if (input.end - input.start < frameBytes) {
          if (!input.more()) break;
          continue;
        }
        for (let at = 0; at < frameBytes; at++)
          if (input.bytes[input.start + at] !== (next++ & 0xff)) throw new Error(`byte ${next}`);
        input.start += frameBytes;
      }
      if (input.bytes.buffer === chunk.buffer) memories++;
      expect(next + input.end - input.start).toBe(sent);
    }
    expect(memories).toBeGreaterThan(35);
    expect(input.isEmpty).toBe(input.start === input.end);
  });
});
