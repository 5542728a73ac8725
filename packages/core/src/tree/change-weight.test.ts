import { type MultiOp, OpCode } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { remove, setData } from '../testing/core-requests.ts';
import { ChangeAllowance, weightOf, weightOfAll } from './change-weight.ts';

const pathOf = (length: number): string => `/${'x'.repeat(length - 1)}`;

describe('a change', () => {
  test('of a path of up to 256 characters counts once, and of a longer one once more per 64 characters', () => {
    expect([1, 256].map((length) => weightOf(pathOf(length)))).toEqual([1, 1]);
    expect([319, 320, 8000].map((length) => weightOf(pathOf(length)))).toEqual([5, 6, 126]);
  });

  test('of a multi counts like any other, and so does a failed part, which has no path', () => {
    const ops: readonly MultiOp[] = [remove(pathOf(10)), setData(pathOf(320))];
    expect(weightOfAll(ops)).toBe(7);
    expect(weightOfAll([{ type: OpCode.error, error: 0 }])).toBe(1);
  });
});

describe('an allowance', () => {
  test('is used once its changes are made, not one later', () => {
    const allowance = new ChangeAllowance();
    expect(allowance.isUsed).toBe(true);
    allowance.renew(2);
    allowance.spend(1);
    expect(allowance.isUsed).toBe(false);
    allowance.spend(1);
    expect(allowance.isUsed).toBe(true);
  });

  test('is smaller the next time by what was overdrawn, if need be several times', () => {
    const allowance = new ChangeAllowance();
    allowance.renew(10);
    allowance.spend(25);
    allowance.renew(10);
    expect(allowance.isUsed).toBe(true);
    allowance.renew(10);
    allowance.spend(4);
    expect(allowance.isUsed).toBe(false);
    allowance.spend(1);
    expect(allowance.isUsed).toBe(true);
  });

  test('is not larger the next time by what was left', () => {
    const allowance = new ChangeAllowance();
    allowance.renew(10);
    allowance.renew(10);
    allowance.spend(10);
    expect(allowance.isUsed).toBe(true);
  });
});
