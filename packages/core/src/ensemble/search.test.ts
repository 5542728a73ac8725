import { expect, test } from 'vitest';
import { Search } from './search.ts';

const NEVER = Number.POSITIVE_INFINITY;

test('read-only mode is due once, when the search has taken so long', () => {
  const search = new Search();
  search.begin(2000);
  expect([search.nextDeadlineMs, search.takeReadOnly(1999)]).toEqual([2000, false]);
  expect([search.takeReadOnly(2000), search.takeReadOnly(2001), search.nextDeadlineMs]).toEqual([true, false, NEVER]);
});

test('a search that continues has the deadline of its beginning', () => {
  const search = new Search();
  search.begin(2000);
  search.schedule(1000);
  expect([search.isDue(999), search.isDue(1000)]).toEqual([false, true]);
  search.begin(3000);
  expect([search.isDue(1000), search.nextDeadlineMs]).toEqual([false, 2000]);
});

test.each(['end', 'cancel'] as const)('after %s no read-only mode is due, however long joining takes', (how) => {
  const search = new Search();
  search.begin(2000);
  search[how]();
  expect([search.takeReadOnly(9000), search.nextDeadlineMs]).toEqual([false, NEVER]);
});
