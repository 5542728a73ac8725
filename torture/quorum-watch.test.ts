import { expect, test } from 'vitest';
import { QuorumWatch } from './quorum-watch.ts';

/** A watch, and a function that feeds it: servers that are down, pairs that are cut. */
function watching(voters: readonly number[]) {
  const watch = new QuorumWatch();
  const look = (nowMs: number, down: readonly number[] = [], cut: readonly string[] = []): void =>
    watch.look(nowMs, {
      voters,
      isAble: (server) => !down.includes(server),
      areLinked: (one, other) => !cut.includes(`${Math.min(one, other)}${Math.max(one, other)}`),
    });
  return { watch, look };
}

test('time without a write counts while one majority could work', () => {
  const { watch, look } = watching([1, 2, 3]);
  for (let ms = 0; ms <= 1000; ms += 100) look(ms, [3]);
  expect([watch.longestMs, watch.longest]).toEqual([1000, 'servers 1,2 of 1,2,3, until 1.0 s']);
  watch.onWrite(1000);
  for (let ms = 1100; ms <= 1900; ms += 100) look(ms);
  expect(watch.longestMs).toBe(1000);
});

test('it does not count while no majority can work, nor across successive majorities', () => {
  const { watch, look } = watching([1, 2, 3]);
  for (let ms = 0; ms < 10_000; ms += 100) look(ms, [2, 3]);
  expect(watch.longestMs).toBe(0);
  // 1 and 2, then 2 and 3, for 400 ms each.
  for (let ms = 0; ms < 10_000; ms += 100) look(ms, [], ms % 800 < 400 ? ['13', '23'] : ['12', '13']);
  expect(watch.longestMs).toBe(300);
});

test('two participants need both, five need three that reach each other', () => {
  const two = watching([1, 2]);
  for (let ms = 0; ms < 5000; ms += 100) two.look(ms, ms % 1000 < 200 ? [2] : []);
  expect(two.watch.longestMs).toBe(700);
  const five = watching([1, 2, 3, 4, 5]);
  for (let ms = 0; ms <= 1000; ms += 100) five.look(ms, [5], ['12', '34']);
  expect(five.watch.longestMs, 'a server that links two halves is no majority').toBe(0);
  for (let ms = 1100; ms <= 2000; ms += 100) five.look(ms, [5], ['12']);
  expect([five.watch.longestMs, five.watch.longest]).toEqual([900, 'servers 1,3,4 of 1,2,3,4,5, until 2.0 s']);
});
