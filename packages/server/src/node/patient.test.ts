import { expect, test, vi } from 'vitest';
import { retryOnShortage } from './patient.ts';

function failing(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

test('what fails for want of a descriptor is attempted again until there is one', () => {
  vi.useFakeTimers();
  try {
    const faults = ['EMFILE', 'ENFILE', 'EMFILE'];
    const results: unknown[] = [];
    retryOnShortage<number>(
      (done) => {
        const code = faults.shift();
        if (code === undefined) done(null, 7);
        else done(failing(code), 0);
      },
      () => false,
      (error, value) => results.push(error, value),
    );
    expect(results).toEqual([]);
    vi.advanceTimersByTime(149);
    expect(results).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(results).toEqual([null, 7]);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ['is another fault', 'ENOENT', false, 1],
  ['is no longer waited for', 'EMFILE', true, 1],
  ['lasts five seconds', 'EMFILE', false, 100],
])('a failure that %s is reported', (_, code, isCancelled, count) => {
  vi.useFakeTimers();
  try {
    const results: unknown[] = [];
    let attempts = 0;
    retryOnShortage<number>(
      (done) => {
        attempts++;
        done(failing(code), 0);
      },
      () => isCancelled,
      (error) => results.push(error?.code),
    );
    vi.advanceTimersByTime(10_000);
    expect([results, attempts]).toEqual([[code], count]);
  } finally {
    vi.useRealTimers();
  }
});
