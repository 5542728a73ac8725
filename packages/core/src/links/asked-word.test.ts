import { expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import type { FourLetterWords } from '../base/server-view.ts';
import { findWord, INCOMPLETE } from './asked-word.ts';

const WORDS: FourLetterWords = {
  isWord: (word) => word === 'ruok' || word === 'stmk',
  hasArgument: (word) => word === 'stmk',
  answer: () => [],
};

/** Finds a word in a text and a mask that follow three other bytes. */
function found(text: string, mask: bigint, end: number): ReturnType<typeof findWord> {
  const bytes = bytesOf((b) => b.raw([1, 2, 3]).raw(new TextEncoder().encode(text)).long(mask));
  return findWord(WORDS, bytes, 3, 3 + end);
}

test('a known word is found, with or without bytes after it, and nothing else', () => {
  expect(found('ruok', 7n, 4)).toEqual({ word: 'ruok', argument: null });
  expect(found('ruok', 7n, 12)).toEqual({ word: 'ruok', argument: null });
  expect(found('RUOK', 7n, 12)).toBeNull();
});

test('a word with a mask waits until all 8 bytes of the mask have arrived', () => {
  for (const end of [4, 5, 11]) expect(found('stmk', -2n, end)).toBe(INCOMPLETE);
  expect(found('stmk', -2n, 12)).toEqual({ word: 'stmk', argument: -2n });
  expect(found('stmk', 2n ** 62n, 12)).toEqual({ word: 'stmk', argument: 2n ** 62n });
});
