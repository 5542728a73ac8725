import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameGate } from './frame-gate.ts';

const KEPT = 32;

function frame(length: number): Uint8Array {
  const bytes = new Uint8Array(4 + length).fill(7);
  new DataView(bytes.buffer).setInt32(0, length);
  return bytes;
}

describe('the gate', () => {
  test('passes everything in order, and short frames whole', () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 })), cuts, (lengths, sizes) => {
        const sent = Buffer.concat(lengths.map(frame));
        const ends = new Set<number>([0]);
        let end = 0;
        for (const length of lengths) {
          // Inside a frame that exceeds the limit, any part may pass.
          if (length + 4 > KEPT) for (let i = 0; i < length + 4; i++) ends.add(end + i);
          end += length + 4;
          ends.add(end);
        }
        const gate = new FrameGate(KEPT);
        const passed: Uint8Array[] = [];
        let count = 0;
        for (let at = 0, i = 0; at < sent.length; i++) {
          const next = Math.min(sent.length, at + sizes[i % sizes.length]!);
          const bytes = gate.pass(Uint8Array.from(sent.subarray(at, next)));
          passed.push(bytes);
          count += bytes.length;
          expect(ends).toContain(count);
          // No complete frame is kept.
          expect(next - count).toBeLessThan(KEPT);
          at = next;
        }
        expect(Buffer.concat(passed).equals(sent)).toBe(true);
      }),
    );
  });

  test('immediately passes what is not a frame: a four-letter word, a negative length', () => {
    expect(new FrameGate(KEPT).pass(Uint8Array.from(Buffer.from('ruok')))).toHaveLength(4);
    const gate = new FrameGate(KEPT);
    expect(gate.pass(Uint8Array.of(0x80, 0, 0, 0))).toHaveLength(4);
    expect(gate.pass(Uint8Array.of(0))).toHaveLength(1);
  });

  test('keeps no view of a chunk', () => {
    const gate = new FrameGate(KEPT);
    const chunk = Uint8Array.of(0, 0, 0, 2, 1);
    expect(gate.pass(chunk)).toHaveLength(0);
    chunk.fill(9);
    expect([...gate.pass(Uint8Array.of(2))]).toEqual([0, 0, 0, 2, 1, 2]);
  });
});
