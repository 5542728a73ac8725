import type { Stat } from '@meerkat/client';
import { expect, test } from 'vitest';
import { InvocationFailure } from '../run/command-failure.ts';
import { type ConditionWords, describeState, parseConditions, type ZnodeState } from './conditions.ts';

function state(version: number, numChildren: number, data: string | Uint8Array): ZnodeState {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  return { stat: { version, numChildren, dataLength: bytes.length } as Stat, data: bytes };
}

const GONE: ZnodeState = { stat: null, data: null };

function holds(words: ConditionWords, of: ZnodeState): boolean {
  return parseConditions(words).every((condition) => condition.holds(of));
}

test('waits for the znode to be there when nothing is said', () => {
  expect([holds({}, GONE), holds({}, state(0, 0, ''))]).toEqual([false, true]);
  expect([holds({ gone: true }, GONE), holds({ gone: true }, state(0, 0, ''))]).toEqual([true, false]);
});

test.each([
  ['3', [3]],
  ['=3', [3]],
  ['!=3', [2, 4]],
  ['>= 3', [3, 4]],
  ['>3', [4]],
  ['<3', [2]],
  ['<=3', [2, 3]],
])('compares numbers: %s', (comparison, fitting) => {
  const found = [2, 3, 4].filter((number) => holds({ children: comparison }, state(0, number, '')));
  expect(found).toEqual(fitting);
  expect([2, 3, 4].filter((number) => holds({ dataVersion: comparison }, state(number, 0, '')))).toEqual(fitting);
  expect(holds({ children: comparison }, GONE)).toBe(false);
});

test('compares data byte by byte, and finds patterns in text only', () => {
  expect(holds({ value: 'ä' }, state(0, 0, 'ä'))).toBe(true);
  expect(holds({ value: 'ä' }, state(0, 0, 'ä\n'))).toBe(false);
  expect(holds({ valueMatches: '^done.*x$' }, state(0, 0, 'done\nx'))).toBe(true);
  expect(holds({ valueMatches: '.' }, state(0, 0, Uint8Array.of(0, 1)))).toBe(false);
  expect(holds({ value: '', children: '0' }, state(0, 0, ''))).toBe(true);
  expect(holds({ value: '', children: '1' }, state(0, 0, ''))).toBe(false);
});

test.each([
  { children: 'many' },
  { dataVersion: '=>3' },
  { valueMatches: '(' },
  { gone: true, children: '3' },
  { gone: true, exists: true },
])('refuses %j', (words) => {
  expect(() => parseConditions(words)).toThrow(InvocationFailure);
});

test('says what a znode is like', () => {
  expect(describeState(GONE)).toBe('it is not there');
  expect(describeState(state(4, 1, 'on'))).toBe('it is there, with version 4, 1 child and 2 B');
});
