import { expect, test } from 'vitest';
import type * as freePorts from './free-ports.ts';
import { findFreePorts } from './index.ts';

test('several calls are given ports that differ', async () => {
  const given: number[] = [];
  for (let i = 0; i < 500; i++) given.push(...(await findFreePorts(2)));
  expect(new Set(given).size).toBe(1_000);
});

test('what another process has been given is not given here, nor there what was given here', async () => {
  // A second instance of the module, as another process has one.
  const again = './free-ports.ts?again';
  const other: typeof freePorts = await import(/* @vite-ignore */ again);
  expect(other.findFreePorts).not.toBe(findFreePorts);
  const given: number[] = [];
  for (let i = 0; i < 200; i++) given.push(...(await findFreePorts(1)), ...(await other.findFreePorts(1)));
  expect(new Set(given).size).toBe(400);
});

test('after 2,016 ports the first ones are given again', async () => {
  const anew = './free-ports.ts?anew';
  const fresh: typeof freePorts = await import(/* @vite-ignore */ anew);
  const given = new Set<number>();
  for (let i = 0; i < 30; i++) for (const port of await fresh.findFreePorts(100)) given.add(port);
  expect(given.size).toBeLessThanOrEqual(2_016);
  expect(given.size).toBeGreaterThan(1_000);
});
