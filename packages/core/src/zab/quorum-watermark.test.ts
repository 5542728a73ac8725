import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Electorate } from '../election/electorate.ts';
import { makeQuorum } from '../election/quorum.ts';
import { QuorumWatermark } from './quorum-watermark.ts';

const majority = (...voters: number[]): Electorate => new Electorate(makeQuorum({ voters }));

describe('the watermark of a quorum', () => {
  test('of three servers it is the second highest value', () => {
    const watermark = new QuorumWatermark(majority(1, 2, 3));
    expect(watermark.reached).toBe(-1);
    watermark.raise(1, 7);
    expect(watermark.reached).toBe(-1);
    watermark.raise(3, 4);
    expect(watermark.reached).toBe(4);
    watermark.raise(2, 5);
    expect(watermark.reached).toBe(5);
  });

  test('an acknowledgement that comes twice, or late, changes nothing', () => {
    const watermark = new QuorumWatermark(majority(1, 2, 3));
    watermark.raise(1, 7);
    watermark.raise(1, 3);
    watermark.raise(1, 7);
    expect(watermark.reached).toBe(-1);
    watermark.raise(2, 6);
    expect(watermark.reached).toBe(6);
  });

  test('servers without a vote do not count', () => {
    const watermark = new QuorumWatermark(majority(1, 2, 3));
    watermark.raise(1, 7);
    watermark.raise(9, 7);
    expect(watermark.reached).toBe(-1);
  });

  test('a voter whose connection is gone no longer counts', () => {
    const watermark = new QuorumWatermark(majority(1, 2, 3));
    watermark.raise(1, 7);
    watermark.raise(2, 7);
    watermark.forget(2);
    expect(watermark.reached).toBe(-1);
  });

  test('while a configuration is proposed, quorums of both must have reached it', () => {
    const electorate = new Electorate(makeQuorum({ voters: [1, 2, 3] }), makeQuorum({ voters: [3, 4, 5] }));
    const watermark = new QuorumWatermark(electorate);
    for (const id of [1, 2, 3]) watermark.raise(id, 9);
    expect(watermark.reached).toBe(-1);
    watermark.raise(4, 6);
    expect(watermark.reached).toBe(6);
  });

  test('it is the highest value that a quorum has reached, for every kind of quorum', () => {
    const groups = makeQuorum({
      voters: [1, 2, 3, 4, 5, 6],
      groups: [[1, 2, 3], [4, 5], [6]],
      weights: new Map([
        [1, 3],
        [5, 0],
      ]),
    });
    const electorates = [
      majority(1, 2, 3, 4, 5),
      new Electorate(groups),
      new Electorate(groups, makeQuorum({ voters: [2, 6, 7] })),
    ];
    const event = fc.record({ id: fc.integer({ min: 1, max: 8 }), value: fc.integer({ min: -1, max: 9 }) });
    const events = fc.array(event, { maxLength: 60, size: 'max' });
    fc.assert(
      fc.property(fc.constantFrom(...electorates), events, (electorate, list) => {
        const watermark = new QuorumWatermark(electorate);
        const values = new Map<number, number>();
        for (const { id, value } of list) {
          if (value < 0) {
            watermark.forget(id);
            values.delete(id);
          } else {
            watermark.raise(id, value);
            values.set(id, Math.max(values.get(id) ?? -1, value));
          }
          const holders = (least: number): number[] =>
            [...values].filter(([, reached]) => reached >= least).map(([holder]) => holder);
          const expected = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0].find((least) => electorate.isQuorum(holders(least)));
          expect(watermark.reached).toBe(expected ?? -1);
        }
      }),
    );
  });
});
