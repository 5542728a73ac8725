import { expect, test } from 'vitest';
import type * as freePorts from './free-ports.ts';
import { findFreePorts } from './index.ts';

/** A second instance of the module, as another process has one. */
function another(name: string): Promise<typeof freePorts> {
  const path = `./free-ports.ts?${name}`;
  return import(/* @vite-ignore */ path);
}

test('several calls are given ports that differ, at the same time too', async () => {
  const { findFreePorts: find } = await another('differ');
  const given: number[] = [];
  for (let i = 0; i < 80; i++) given.push(...(await find(2)));
  for (const ports of await Promise.all(Array.from({ length: 80 }, () => find(2)))) given.push(...ports);
  expect(new Set(given).size).toBe(320);
});

test('what one process has been given is given to no other', async () => {
  const other = await another('other');
  expect(other.findFreePorts).not.toBe(findFreePorts);
  const given = await findFreePorts(200);
  const there = await other.findFreePorts(500);
  expect(there.filter((port) => given.includes(port))).toEqual([]);
});

test('after 511 ports the first ones are given again', async () => {
  const { findFreePorts: find } = await another('again');
  const given = new Set<number>();
  for (let i = 0; i < 12; i++) for (const port of await find(100)) given.add(port);
  expect(given.size).toBeLessThanOrEqual(511);
  expect(given.size).toBeGreaterThan(400);
});

test('more ports than a process is given are refused', async () => {
  await expect(findFreePorts(512)).rejects.toThrow('free ports from');
});
