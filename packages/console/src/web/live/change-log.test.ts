import { expect, test } from 'vitest';
import type { ChangeInfo } from '../../api/messages.ts';
import { ChangeLog } from './change-log.ts';

const CHANGE = { type: 'changed', path: '/a', atMs: 0, value: 'x' } as ChangeInfo;

test('a page keeps the last 20,000 changes, at most twice as many, and counts all', () => {
  const log = new ChangeLog();
  for (let i = 0; i < 100; i++) {
    log.add(new Array<ChangeInfo>(1000).fill(CHANGE));
    expect(log.total - log.dropped).toBeLessThanOrEqual(40_000);
    expect(log.total - log.dropped).toBeGreaterThanOrEqual(Math.min(log.total, 20_000));
  }
  expect(log.total).toBe(100_000);
});
