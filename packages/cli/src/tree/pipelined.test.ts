import { expect, test } from 'vitest';
import { pipelined } from './pipelined.ts';

test('results come in the order of the things, with so many in the works at most', async () => {
  const begun: { readonly thing: number; readonly finish: () => void }[] = [];
  const work = (thing: number): Promise<number> =>
    new Promise((resolve) => begun.push({ thing, finish: () => resolve(thing * 10) }));
  const results = pipelined([1, 2, 3, 4], work, 3);
  const first = results.next();
  expect(begun.map(({ thing }) => thing)).toEqual([1, 2, 3]);
  begun[2]?.finish();
  begun[0]?.finish();
  expect(await first).toEqual({ value: 10, done: false });
  const second = results.next();
  expect(begun).toHaveLength(4);
  begun[1]?.finish();
  begun[3]?.finish();
  expect(await second).toEqual({ value: 20, done: false });
  expect(await results.next()).toEqual({ value: 30, done: false });
  expect(await results.next()).toEqual({ value: 40, done: false });
  expect(await results.next()).toEqual({ value: undefined, done: true });
});

test('a failure comes when its turn does, and those behind it end nothing', async () => {
  const work = async (thing: number): Promise<number> => {
    if (thing > 1) throw new Error(`no ${thing}`);
    return thing;
  };
  const results = pipelined([1, 2, 3], work);
  expect(await results.next()).toEqual({ value: 1, done: false });
  await expect(results.next()).rejects.toThrow('no 2');
});
