import { describe, expect, it } from 'vitest';
import { ShardedMap } from './sharded-map.ts';

describe('ShardedMap', () => {
  it('equals a map, before and after it has been split', () => {
    const map = new ShardedMap<number>();
    const plain = new Map<string, number>();
    for (let i = 0; i < 3000; i++) {
      map.set(`/n${i % 2500}`, i);
      plain.set(`/n${i % 2500}`, i);
      if (i % 3 !== 0) continue;
      map.delete(`/n${i >> 1}`);
      plain.delete(`/n${i >> 1}`);
    }
    expect(map.size).toBe(plain.size);
    expect(new Map(map.entries())).toEqual(plain);
    for (const key of ['', '/', '/a', ...plain.keys()]) expect(map.get(key)).toBe(plain.get(key));
    for (const key of plain.keys()) map.delete(key);
    expect([...map.entries()]).toEqual([]);
  });
});
