import { expect, test } from 'vitest';
import { makeEndError } from './watch-end.ts';

test.each([
  ['closed', 'CLOSED', /the watch ends with it/],
  ['auth-failed', 'AUTHFAILED', /a server refused them; the watch ends with the client/],
  ['removed', 'NOWATCHER', /removed by removeWatches/],
] as const)('the error of a watch whose end is %s has a code and says why', (reason, code, text) => {
  const error = makeEndError(reason, { operation: 'watch', path: '/a' });
  expect([error.code, error.message]).toEqual([code, expect.stringMatching(text)]);
});
