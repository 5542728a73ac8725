import { expect, test } from 'vitest';
import { type PacedWriter, PIECE_BYTES, WritePace } from './write-pace.ts';

test('what leaves in a turn is bounded, and those that wait take turns', () => {
  const pace = new WritePace(50);
  const written: string[] = [];
  const makeWriter = (name: string, pieces: number): PacedWriter => {
    let left = pieces;
    const writer: PacedWriter = {
      writePiece() {
        written.push(name);
        if (--left > 0) pace.wait(writer);
        return 10;
      },
    };
    pace.wait(writer);
    return writer;
  };
  makeWriter('long', 7);
  makeWriter('short', 2);
  makeWriter('shorter', 1);
  expect(written).toEqual([]);
  expect(pace.onTurnEnd()).toBe(true);
  expect(written.splice(0)).toEqual(['long', 'short', 'shorter', 'long', 'short']);
  expect(pace.onTurnEnd()).toBe(false);
  expect(written.splice(0)).toEqual(['long', 'long', 'long', 'long', 'long']);
  expect(pace.onTurnEnd()).toBe(false);
});

test('two megabytes leave in a turn: as much again as is read for replies', () => {
  const pace = new WritePace();
  let bytes = 0;
  const writer: PacedWriter = {
    writePiece() {
      pace.wait(writer);
      bytes += PIECE_BYTES;
      return PIECE_BYTES;
    },
  };
  pace.wait(writer);
  for (const turns of [1, 2, 3]) {
    expect(pace.onTurnEnd()).toBe(true);
    expect(bytes).toBe(turns * 2 * 1024 * 1024);
  }
});
