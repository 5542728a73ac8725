import { ConnectionLossError, NoNodeError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { LossStreak } from './loss-streak.ts';

const ABOUT = { operation: 'send', path: '/mail' };

/** Consecutive attempts of this size whose connections break. */
function lose(losses: LossStreak, count: number, size: number): void {
  for (let i = 0; i < count; i++) losses.noted(new ConnectionLossError({ ...ABOUT, outcome: 'unknown' }), size);
}

test('a large request is aborted after five lost connections in a row', () => {
  const losses = new LossStreak();
  lose(losses, 4, 100_000);
  losses.check(ABOUT);
  losses.noted(new NoNodeError(ABOUT), 100_000);
  lose(losses, 4, 100_000);
  losses.check(ABOUT);
  lose(losses, 1, 100_000);
  expect(() => losses.check(ABOUT)).toThrow('lost 5 times in a row');
});

test('a small request is retried, however often connections break', () => {
  const losses = new LossStreak();
  lose(losses, 100, 1000);
  losses.check(ABOUT);
});

test('a reply ends the streak, and a request with too many losses is reported with its last failure', () => {
  const losses = new LossStreak();
  lose(losses, 4, 100_000);
  losses.end();
  lose(losses, 4, 100_000);
  const loss = new ConnectionLossError({ ...ABOUT, outcome: 'unknown' });
  expect(losses.explain(loss, ABOUT)).toBe(loss);
  lose(losses, 1, 100_000);
  expect(losses.isTooLong).toBe(true);
  expect(losses.explain(loss, ABOUT)).toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'unknown', cause: loss });
});
