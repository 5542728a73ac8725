import { InvocationFailure } from './command-failure.ts';

/** @param origin what it belongs to, for the error: `--depth` @returns at least `min` */
export function parseWholeNumber(text: string, origin: string, min = 0): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && Number.isSafeInteger(value)) return value;
  throw new InvocationFailure(`${origin}: expected a whole number from ${min} on, found "${text}"`);
}
