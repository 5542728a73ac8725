import { JuteWriter } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { OutputPool } from './output-pool.ts';

const KILOBYTE = 1024;
const MEGABYTE = 1024 * KILOBYTE;

describe('a buffer that is returned', () => {
  test('is used again, from its start, however many bytes have passed through the pool', () => {
    const pool = new OutputPool();
    const first = pool.take();
    first.raw(new Uint8Array(100 * KILOBYTE));
    pool.give(first);
    // 100 MB in total.
    for (let round = 0; round < 1000; round++) {
      const writer = pool.take();
      expect(writer).toBe(first);
      expect(writer.position).toBe(0);
      writer.raw(new Uint8Array(10));
      pool.give(writer);
    }
  });

  test('is not kept if it has grown beyond the limit of the pool', () => {
    const pool = new OutputPool(4 * KILOBYTE);
    const [kept, grown] = [new JuteWriter(4 * KILOBYTE), new JuteWriter(4 * KILOBYTE + 1)];
    pool.give(kept);
    pool.give(grown);
    expect(pool.take()).toBe(kept);
    expect(pool.take()).not.toBe(grown);
  });

  test('is not kept if the pool holds 16 megabytes', () => {
    const pool = new OutputPool(MEGABYTE);
    const given = Array.from({ length: 17 }, () => new JuteWriter(MEGABYTE));
    for (const writer of given) pool.give(writer);
    const taken = new Set(given.map(() => pool.take()));
    expect(given.filter((writer) => taken.has(writer))).toHaveLength(16);
  });
});
