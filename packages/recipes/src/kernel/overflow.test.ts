import { afterEach, expect, test, vi } from 'vitest';
import { Remedy, SequenceExhaustedError, warnIfHigh } from './overflow.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('warns from 80 % of 2147483647 on, once per path, with the remedy', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
  warnIfHigh('/a', 1_717_986_917, Remedy.itself);
  expect(warn).not.toHaveBeenCalled();
  warnIfHigh('/a', 1_717_986_918, Remedy.itself);
  warnIfHigh('/a', 1_717_986_919, Remedy.itself);
  warnIfHigh('/b', 4_294_967_295, Remedy.elsewhere);
  expect(warn.mock.calls.map(([message]) => message)).toEqual([
    '/a has given 1717986918 sequence numbers, 80 % of those that an Apache server has. The znode will be recreated as soon ' +
      'as the line is empty.',
    '/b has given 4294967295 sequence numbers, 200 % of those that an Apache server has. Use another path before they end: ' +
      'recreated, the znode would give the same numbers again.',
  ]);
  expect(warn.mock.calls[0]?.[1]).toEqual({ type: 'SequenceWarning', code: 'MEERKAT_SEQUENCE' });
});

test('reports exhausted numbers with the path and the remedy', () => {
  const error = new SequenceExhaustedError('/a', 'so that nothing is new. Use another path');
  expect(error.message).toBe(
    '/a: the server has used up the sequence numbers of this znode (2147483647 is given twice), so that nothing is new. Use ' +
      'another path. Meerkat servers continue counting.',
  );
  expect(error).toMatchObject({ name: 'SequenceExhaustedError', path: '/a' });
});
