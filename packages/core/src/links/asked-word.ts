import { JuteReader } from '@meerkat/protocol';
import type { FourLetterWords } from '../base/server-view.ts';

/** A four-letter word in place of a connect request. */
export interface AskedWord {
  readonly word: string;
  /** The mask after `stmk`; null for other words. */
  readonly argument: bigint | null;
}

/** A word whose argument has not arrived completely. */
export const INCOMPLETE = 'incomplete';

/** @returns the word at `start`, where at least four bytes are available; null when there is no known word */
export function findWord(
  words: FourLetterWords,
  bytes: Uint8Array,
  start: number,
  end: number,
): AskedWord | typeof INCOMPLETE | null {
  const word = String.fromCharCode(...bytes.subarray(start, start + WORD_BYTES));
  if (!words.isWord(word)) return null;
  if (!words.hasArgument(word)) return { word, argument: null };
  const argumentStart = start + WORD_BYTES;
  if (end - argumentStart < ARGUMENT_BYTES) return INCOMPLETE;
  const reader = new JuteReader(bytes.subarray(argumentStart, argumentStart + ARGUMENT_BYTES));
  return { word, argument: reader.longBig() };
}

const WORD_BYTES = 4;
/** A long. */
const ARGUMENT_BYTES = 8;
