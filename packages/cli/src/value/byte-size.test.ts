import { expect, test } from 'vitest';
import { parseByteSize } from './byte-size.ts';

test('sizes have units of 1024, in any case', () => {
  const sizes = ['0', '512', '10k', '10K', '1.5M', '1 MiB', '2gb', '7B'].map((text) => parseByteSize(text, '--larger'));
  expect(sizes).toEqual([0, 512, 10_240, 10_240, 1_572_864, 1_048_576, 2_147_483_648, 7]);
});

test('what is no size is refused with the option it belongs to', () => {
  for (const text of ['', '-1', 'k', '10x', '1e3', '99999999999999999g']) {
    expect(() => parseByteSize(text, '--larger')).toThrow('--larger: expected a size such as 512, 10k or 1M');
  }
});
