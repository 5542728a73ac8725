import { expect, test } from 'vitest';
import { DIGEST, ZnodeRows } from './znode-rows.ts';

/** More than fit into two chunks of 65,536. */
const MANY = 140_000;

test('numbers are consecutive from 1, and rows keep their values while the table grows beyond one and two chunks', () => {
  const rows = new ZnodeRows();
  for (let i = 1; i <= MANY; i++) {
    const z = rows.allocate();
    if (z !== i) throw new Error(`number ${z} follows ${i - 1}`);
    rows.reset(z, 0);
    rows.set(z, DIGEST, -z);
  }
  expect(rows.end).toBe(MANY + 1);
  const wrong = Array.from({ length: MANY }, (_, i) => i + 1).filter((z) => rows.get(z, DIGEST) !== -z);
  expect(wrong).toEqual([]);
});

test('freed numbers are reused before the table grows, with an empty row', () => {
  const rows = new ZnodeRows();
  const numbers = Array.from({ length: 300 }, () => rows.allocate());
  for (const z of numbers) {
    rows.reset(z, 7);
    rows.set(z, DIGEST, 1);
  }
  const freed = [2, 256, 300];
  for (const z of freed) rows.free(z);
  const reused = freed.map(() => rows.allocate());
  expect(reused.toSorted((a, b) => a - b)).toEqual(freed);
  for (const z of reused) rows.reset(z, 9);
  expect(reused.map((z) => rows.get(z, DIGEST))).toEqual([0, 0, 0]);
  expect(rows.allocate()).toBe(301);
});
