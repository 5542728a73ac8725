import { TRAITS, type Trait } from '../traits.ts';

/** All pairs of traits. Among many drawn traits one can hide what two others do together. */
export const PAIRS: readonly (readonly Trait[])[] = TRAITS.flatMap((first, at) =>
  TRAITS.slice(at + 1).map((second) => [first, second]),
);

/** By the seed without its last digit, so that ten seeds in a row run one pair in each ensemble. */
export function pairOf(seed: number): readonly Trait[] {
  return PAIRS[Math.floor(seed / 10) % PAIRS.length]!;
}
