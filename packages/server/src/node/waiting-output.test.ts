import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WaitingOutput } from './waiting-output.ts';
import { PIECE_BYTES } from './write-pace.ts';

test('what waits leaves in pieces, chunks that fit one together', () => {
  const output = new WaitingOutput();
  for (const length of [3, 4, PIECE_BYTES, 2 * PIECE_BYTES + 1]) output.push(new Uint8Array(length));
  const lengths: number[] = [];
  while (output.bytes > 0) lengths.push(output.take().length);
  expect(lengths).toEqual([7, PIECE_BYTES, PIECE_BYTES, PIECE_BYTES, 1]);
});

test('the last frame leaves in a piece of its own, and what came behind it meanwhile, too', () => {
  const output = new WaitingOutput();
  output.setLastFrameApart();
  output.push(Buffer.concat([frame(1), frame(2), frame(3)]));
  expect(output.take()).toEqual(Buffer.concat([frame(1), frame(2)]));
  output.push(frame(4));
  output.push(frame(5));
  expect(output.take()).toEqual(Buffer.concat([frame(3), frame(4)]));
  expect(output.take()).toEqual(frame(5));
  expect(output.bytes).toBe(0);
  output.push(frame(6));
  expect(output.take()).toEqual(frame(6));
});

test('all bytes leave in order, and no frame begins inside of a piece behind which nothing waits', () => {
  const lengths = fc.array(fc.oneof(fc.nat(20), fc.integer({ min: PIECE_BYTES - 10, max: PIECE_BYTES + 10 })), {
    minLength: 1,
    maxLength: 12,
    size: 'max',
  });
  const cuts = fc.infiniteStream(
    fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 2 * PIECE_BYTES })),
  );
  const takes = fc.infiniteStream(fc.nat(2));
  fc.assert(
    fc.property(lengths, cuts, takes, (bodies, cut, take) => {
      const all = Buffer.concat(bodies.map((length) => frame(length)));
      const output = new WaitingOutput();
      output.setLastFrameApart();
      const begins = new Set<number>();
      for (let at = 0, i = 0; i < bodies.length; at += 4 + bodies[i++]!) begins.add(at);
      let left = 0;
      let startOfPiece = 0;
      const takeOne = (): void => {
        const piece = output.take();
        expect(Buffer.compare(piece, all.subarray(left, left + piece.length))).toBe(0);
        startOfPiece = left;
        left += piece.length;
      };
      for (let at = 0; at < all.length; ) {
        const end = Math.min(all.length, at + cut.next().value);
        output.push(all.subarray(at, end));
        at = end;
        for (let n = take.next().value; n > 0 && output.bytes > 0; n--) takeOne();
        if (output.bytes === 0) expectFrameApart();
      }
      while (output.bytes > 0) takeOne();
      expect(left).toBe(all.length);
      expectFrameApart();

      function expectFrameApart(): void {
        for (const begin of begins) expect(begin > startOfPiece && begin < left).toBe(false);
      }
    }),
  );
});

/** So many bytes behind their length. */
function frame(length: number): Buffer {
  const bytes = Buffer.alloc(4 + length, length);
  bytes.writeInt32BE(length);
  return bytes;
}
