import { expect, test } from 'vitest';
import { describePartialDeletion } from './partial-deletion.ts';

test('a delete that ends early says what is gone for certain, and what may be left', () => {
  expect(describePartialDeletion('/a', { deleted: 10, found: 5001 })).toBe(
    'deleted at least 10 znodes; of /a, at most 4,991 are left',
  );
  expect(describePartialDeletion('/b', { deleted: 0, found: 7 }, 20)).toBe(
    'deleted at least 20 znodes; of /b, at most 7 are left',
  );
});

test('a delete that ends before all znodes are found has deleted none of them', () => {
  expect(describePartialDeletion('/a', { deleted: 0, found: 0 })).toBe('nothing was deleted');
  expect(describePartialDeletion('/b', { deleted: 0, found: 0 }, 1200)).toBe(
    'deleted 1,200 znodes; of /b, nothing was deleted',
  );
});
