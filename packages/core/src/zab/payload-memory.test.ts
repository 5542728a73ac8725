import { makeZxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PayloadMemory } from './payload-memory.ts';

/** Writes payloads of these lengths and drops each after `kept` more. @returns the buffers that they used */
function write(sizes: readonly number[], kept: number): ReadonlySet<ArrayBufferLike> {
  const memory = new PayloadMemory();
  const memories = new Set<ArrayBufferLike>();
  const payloads: Uint8Array[] = [];
  sizes.forEach((bytes, i) => {
    memory.begin().raw(new Uint8Array(bytes).fill(i));
    const payload = memory.end(makeZxid(1, i));
    memories.add(payload.buffer);
    payloads.push(payload);
    const dropped = i - kept;
    if (dropped >= 0) memory.drop(makeZxid(1, dropped));
    for (let k = Math.max(0, dropped + 1); k <= i; k++) {
      expect(payloads[k]!.length).toBe(sizes[k]);
      expect(payloads[k]!.every((byte) => byte === (k & 0xff))).toBe(true);
    }
  });
  return memories;
}

describe('the memory of payloads', () => {
  test('keeps each payload unchanged until its txn is dropped, for all lengths', () => {
    const size = fc.oneof(fc.nat(300), fc.nat(60_000), fc.constant(300_000));
    fc.assert(
      fc.property(
        fc.array(size, { minLength: 1, maxLength: 40, size: 'max' }),
        fc.nat(6),
        (sizes, kept) => void write(sizes, kept),
      ),
      { numRuns: 12 },
    );
  });

  test('is reused: its size depends on the txns that are kept, however many are written', () => {
    expect(write(new Array<number>(3000).fill(1000), 2).size).toBeLessThanOrEqual(3);
  });
});
