import { describe, expect, test } from 'vitest';
import {
  DELAY_NAMING,
  delayStem,
  fifoNaming,
  idOf,
  idStem,
  orderedItems,
  priorityNaming,
  priorityStem,
} from './layout.ts';

/*
 * Expected names are those of Curator 5.4.0 and kazoo 2.8.0; interop/recipes/queues.long.test.ts tests with the real
 * ones.
 */

describe('names of items', () => {
  test('contain the priority as in Curator and kazoo', () => {
    expect(priorityStem('curator', 7)).toBe('queue-100000007');
    expect(priorityStem('curator', -1)).toBe('queue-0FFFFFFFF');
    expect(priorityStem('kazoo', 7)).toBe('entry-007-');
    expect(() => priorityStem('kazoo', -1)).toThrow(RangeError);
    expect(() => priorityStem('curator', 2 ** 31)).toThrow(RangeError);
  });

  test('contain the time and the id as in Curator', () => {
    expect(delayStem(0x18c2f0a3b40)).toBe('queue-|18C2F0A3B40|');
    expect(delayStem(255)).toBe('queue-|000000FF|');
    expect(DELAY_NAMING.dueMsOf('queue-|18C2F0A3B40|0000000012')).toBe(0x18c2f0a3b40);
    expect(DELAY_NAMING.dueMsOf('queue-0000000012')).toBe(0);
    expect(idStem('a/b|c')).toBe('queue-|a_b_c|');
    expect(idOf('queue-|a_b_c|0000000012')).toBe('a_b_c');
    expect(idOf('queue-0000000012')).toBeNull();
  });
});

describe('the order of items', () => {
  test('is that of their creation, also after the counter has wrapped around, and skips other znodes', () => {
    const names = ['queue-0000000001', 'other', 'queue-4294967295', 'queue-x', 'qn-0000000000', 'queue-0000000000'];
    expect(orderedItems(fifoNaming('curator'), names)).toEqual([
      'queue-4294967295',
      'queue-0000000000',
      'queue-0000000001',
    ]);
  });

  test('is by priority first', () => {
    const curator = ['queue-1000000070000000001', 'queue-0FFFFFFFF0000000003', 'queue-1000000070000000000'];
    expect(orderedItems(priorityNaming('curator'), curator)).toEqual([curator[1], curator[2], curator[0]]);
    const kazoo = ['entry-100-0000000000', 'entry-007-0000000005', 'entry-007-0000000004'];
    expect(orderedItems(priorityNaming('kazoo'), kazoo)).toEqual([kazoo[2], kazoo[1], kazoo[0]]);
  });

  test('is by time first', () => {
    const names = ['queue-|000000FF|0000000000', 'queue-|00000010|0000000001'];
    expect(orderedItems(DELAY_NAMING, names)).toEqual([names[1], names[0]]);
  });
});
