import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeRing, RingReader, RingWriter } from './byte-ring.ts';

const CAPACITY = 256;

describe('a ring', () => {
  test('returns what was put, in any sizes and batches', () => {
    const record = fc.record({ kind: fc.integer({ min: 1, max: 127 }), length: fc.integer({ min: 0, max: 56 }) });
    const action = fc.oneof(
      fc.record({ do: fc.constant('append' as const), record, number: fc.option(fc.integer()) }),
      fc.constant({ do: 'publish' as const }),
      fc.constant({ do: 'take' as const }),
      fc.constant({ do: 'reuse' as const }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200, size: 'max' }), fc.integer(), (actions, seed) => {
        const ring = makeRing(CAPACITY);
        // Positions that cross 2**31 and 2**32.
        const begin = (seed & ~7) | 0;
        new Int32Array(ring).set([begin], 0);
        new Int32Array(ring).set([begin], 16);
        const writer = new RingWriter(ring);
        const reader = new RingReader(ring, 64);
        const put: unknown[][] = [];
        let published = 0;
        let taken = 0;
        const held: { bytes: Uint8Array; was: Uint8Array }[] = [];
        for (const step of actions) {
          if (step.do === 'append') {
            const { kind, length } = step.record;
            const bytes = Uint8Array.from({ length }, (_, i) => put.length + i);
            if (step.number !== null && writer.hasRoom(4)) {
              writer.putNumber(kind, put.length, step.number);
              put.push([kind, put.length, step.number | 0]);
            } else if (step.number === null && writer.append(kind, put.length, bytes)) {
              put.push([kind, put.length, bytes]);
            }
          } else if (step.do === 'publish') {
            writer.publish();
            published = put.length;
          } else if (step.do === 'take') {
            reader.take();
            while (reader.next()) {
              const [kind, connection, value] = put[taken]!;
              expect([reader.kind, reader.connection]).toEqual([kind, connection]);
              if (typeof value === 'number') expect(reader.number()).toBe(value);
              else {
                expect(reader.bytes()).toEqual(value);
                held.push({ bytes: reader.bytes(), was: value as Uint8Array });
              }
              taken++;
            }
            expect(taken).toBeLessThanOrEqual(published);
          } else {
            held.length = 0;
            reader.reuseMemory();
          }
          // The memory of views in use is not overwritten.
          for (const { bytes, was } of held) expect(bytes).toEqual(was);
        }
        writer.publish();
        while (reader.take()) while (reader.next()) taken++;
        expect(taken).toBe(put.length);
      }),
    );
  });

  test('has room for the longest record once it is empty, wherever its positions are', () => {
    const ring = makeRing(CAPACITY);
    const writer = new RingWriter(ring);
    const reader = new RingReader(ring);
    const longest = new Uint8Array(writer.recordBytesMax);
    for (let i = 0; i < 100; i++) {
      expect(writer.append(1, i, new Uint8Array(i % 8))).toBe(true);
      expect(writer.append(1, i, longest)).toBe(true);
      writer.publish();
      while (reader.take()) while (reader.next()) expect(reader.connection).toBe(i);
    }
  });

  test('is a power of two long', () => {
    expect(() => makeRing(100)).toThrow('a ring of 100 bytes: expected a power of two, at least 32');
  });

  test('is read in batches up to the limit of its reader', () => {
    const ring = makeRing(1024);
    const writer = new RingWriter(ring);
    const reader = new RingReader(ring, 256);
    for (let i = 1; i <= 5; i++) writer.append(1, i, new Uint8Array(100));
    writer.publish();
    const batches: number[] = [];
    while (reader.take()) {
      let records = 0;
      while (reader.next()) records++;
      batches.push(records);
    }
    expect(batches).toEqual([2, 2, 1]);
  });
});
