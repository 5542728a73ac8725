import { expect, test } from 'vitest';
import { nearestTo } from './nearest.ts';

const NAMES = ['get', 'set', 'getAcl', 'setAcl', 'removewatches', 'addWatch'];

test('a mistyped name is taken for the nearest one, in either case', () => {
  expect(nearestTo('getacl', NAMES)).toBe('getAcl');
  expect(nearestTo('removeWatch', NAMES)).toBe('removewatches');
  expect(nearestTo('gte', ['get'])).toBeNull();
  expect(nearestTo('gett', NAMES)).toBe('get');
});

test('a name that is like none has none', () => {
  expect(nearestTo('frobnicate', NAMES)).toBeNull();
});
