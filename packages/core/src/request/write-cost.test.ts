import { type MultiOp, OpCode } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { WorkMeter } from './work-meter.ts';
import { addMulti, pauseFor } from './write-cost.ts';

test('a pause ends early enough for a reply before the client disconnects, after two thirds of its timeout', () => {
  const longest = (timeoutMs: number): number => pauseFor(1e6, 0, true, timeoutMs, 0);
  expect(longest(4000)).toBe(1600);
  expect(longest(10_000)).toBe(4000);
  expect(longest(24_000)).toBe(11_000);
  expect(longest(30_000)).toBe(15_000);
  expect(longest(60_000)).toBe(15_000);
});

test('the events of a multi are counted until it is costly enough to be applied alone', () => {
  const ops = (count: number): MultiOp[] =>
    Array.from({ length: count }, (_, i) => ({ op: OpCode.setData, path: `/${i}`, data: null, version: -1 }));
  const countedOf = (count: number, events: number): [counted: number, units: number] => {
    let counted = 0;
    const eventCountOf = () => {
      counted++;
      return events;
    };
    const watches = { costOf: () => 0, eventCountOf };
    const units = addMulti(ops(count), new WorkMeter(), watches);
    return [counted, units];
  };
  expect(countedOf(10, 8)).toEqual([10, 40]);
  expect(countedOf(4096, 8)).toEqual([512, 2048]);
  expect(countedOf(4097, 8)).toEqual([0, 2048]);
});
