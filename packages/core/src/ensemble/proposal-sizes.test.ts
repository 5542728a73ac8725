import { expect, test } from 'vitest';
import { ProposalSizes } from './proposal-sizes.ts';

test('proposal sizes are the last, the smallest and the largest since the last reset; −1 before the first', () => {
  const sizes = new ProposalSizes();
  const none = { last: -1, min: -1, max: -1 };
  expect(sizes).toMatchObject(none);
  sizes.onProposed(50);
  expect(sizes).toMatchObject({ last: 50, min: 50, max: 50 });
  for (const bytes of [20, 90, 40]) sizes.onProposed(bytes);
  expect(sizes).toMatchObject({ last: 40, min: 20, max: 90 });
  sizes.reset();
  expect(sizes).toMatchObject(none);
});
