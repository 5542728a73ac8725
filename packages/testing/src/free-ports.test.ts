import { expect, test } from 'vitest';
import { findFreePorts } from './index.ts';

test('several calls are given ports that differ', async () => {
  const given: number[] = [];
  for (let i = 0; i < 500; i++) given.push(...(await findFreePorts(2)));
  expect(new Set(given).size).toBe(1_000);
});
