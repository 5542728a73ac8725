import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareBySequence, compareSequences, sequenceOf, withoutSequence } from './sequence.ts';

describe('the number of a sequential znode', () => {
  test('is the last ten digits of its name', () => {
    expect(sequenceOf('lock-0000000007')).toBe(7);
    expect(sequenceOf('qn-0000000007')).toBe(7);
    expect(sequenceOf('0000000000')).toBe(0);
    expect(sequenceOf('_c_5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21-lock-4294967295')).toBe(4294967295);
    expect(sequenceOf('entry-0990000000012')).toBe(12);
  });

  test('is null for a name without such a suffix', () => {
    for (const name of ['', 'lock', 'lock-7', '-000000001', 'lock-000000000x', '4294967296']) {
      expect(sequenceOf(name), name).toBeNull();
    }
  });

  test('is removed by withoutSequence', () => {
    expect(withoutSequence('lock-0000000007')).toBe('lock-');
    expect(withoutSequence('lock')).toBe('lock');
  });
});

describe('the order of sequential znodes', () => {
  test('is that of their creation, also after the counter has wrapped around', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 32 - 1), fc.integer({ min: 1, max: 2 ** 31 - 1 }), (first, distance) => {
        const later = (first + distance) % 2 ** 32;
        expect(compareSequences(first, later)).toBeLessThan(0);
        expect(compareSequences(later, first)).toBeGreaterThan(0);
        expect(compareSequences(first, first)).toBe(0);
      }),
    );
  });

  test('ignores the text before the number', () => {
    const names = ['b-0000000000', 'z-4294967295', 'a-0000000001', 'stray', 'c-4294967294'];
    expect(names.sort(compareBySequence)).toEqual([
      'c-4294967294',
      'z-4294967295',
      'b-0000000000',
      'a-0000000001',
      'stray',
    ]);
  });
});
