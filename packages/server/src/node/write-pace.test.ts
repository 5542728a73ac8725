import { expect, test } from 'vitest';
import { type PacedWriter, WritePace } from './write-pace.ts';

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
