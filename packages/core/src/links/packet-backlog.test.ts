import { JuteWriter } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PacketBacklog } from './packet-backlog.ts';

it('returns what was written, in order, and counts what is left', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('write' as const), bytes: fc.integer({ min: 1, max: 100_000 }) }),
    fc.record({ kind: fc.constant('move' as const), bytes: fc.integer({ min: 1, max: 300_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
      const backlog = new PacketBacklog();
      const written: number[] = [];
      const moved = new JuteWriter();
      let value = 0;
      let total = 0;
      for (const { kind, bytes } of [...steps, { kind: 'move' as const, bytes: 4_000_000 }]) {
        if (kind === 'write') {
          backlog.writer().raw(new Uint8Array(bytes).fill(++value));
          written.push(bytes);
          total += bytes;
        } else {
          backlog.moveTo(moved, bytes);
        }
        expect(backlog.bytes).toBe(total - moved.position);
        expect(backlog.isEmpty).toBe(backlog.bytes === 0);
      }
      expect(backlog.isEmpty).toBe(true);
      const expected = Buffer.concat(written.map((bytes, i) => Buffer.alloc(bytes, i + 1)));
      expect(Buffer.compare(moved.toBytes(), expected)).toBe(0);
    }),
    { numRuns: 100 },
  );
});
