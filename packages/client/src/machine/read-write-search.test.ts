import { expect, test } from 'vitest';
import { ReadWriteSearch } from './read-write-search.ts';

const [here, second, third] = ['a', 'b', 'c'].map((host) => ({ host, port: 2181 }));
const address = { ...here!, address: '127.0.0.1' };

/** Milliseconds between the questions to other servers. */
function pausesOf(search: ReadWriteSearch, startMs: number, count: number): readonly number[] {
  search.begin(startMs);
  let nowMs = startMs;
  return Array.from({ length: count }, () => {
    const pauseMs = search.nextAtMs - nowMs;
    nowMs = search.nextAtMs;
    search.next(nowMs, address);
    return pauseMs;
  });
}

test('asks more and more seldom, at least once a minute, and quickly again over a new connection', () => {
  const search = new ReadWriteSearch([here!, second!, third!]);
  const pauses = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000];
  expect(pausesOf(search, 1000, pauses.length)).toEqual(pauses);
  expect(pausesOf(search, 1e6, 3)).toEqual([100, 200, 400]);
});

test('asks the other servers in turn', () => {
  const search = new ReadWriteSearch([here!, second!, third!]);
  search.begin(0);
  expect([1, 2, 3].map((atMs) => search.next(atMs, address))).toEqual([second, third, second]);
  expect(new ReadWriteSearch([here!]).next(0, address)).toBeUndefined();
});
