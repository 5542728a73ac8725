import { JuteReader } from '@meerkat/protocol';
import type { FourLetterWords } from '../base/server-view.ts';

/** A four-letter word in the place of a connect request. */
export interface AskedWord {
  readonly word: string;
  /** The mask behind `stmk`; null where there is none. */
  readonly argument: bigint | null;
}

/** A word of which the argument has not come as a whole. */
export const INCOMPLETE = 'incomplete';

/** @returns the word that the bytes, of which there are four, begin with; null when they begin with none */
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
