import type { MultiOp, MultiSubTxn } from '@meerkat/protocol';

/**
 * How many changes one counts as, where as many are made as others can wait for: more when its path is long, for that is looked for,
 * compared, hashed and logged.
 */
export function weightOf(path: string): number {
  return path.length <= SHORT_PATH_CHARS ? 1 : 1 + (path.length >> CHARS_PER_CHANGE_SHIFT);
}

/** Of all operations of a multi, or of all that became of them. */
export function weightOfAll(parts: readonly (MultiOp | MultiSubTxn)[]): number {
  let weight = 0;
  for (const part of parts) weight += 'path' in part ? weightOf(part.path) : 1;
  return weight;
}

/** Changes that may still be made. What one of them has cost beyond that is missing the next time. */
export class ChangeAllowance {
  #left = 0;

  get isUsed(): boolean {
    return this.#left <= 0;
  }

  renew(changes: number): void {
    this.#left = Math.min(this.#left, 0) + changes;
  }

  spend(weight: number): void {
    this.#left -= weight;
  }
}

/** Characters of a path that are part of what any change costs, and how many more are one: 64. */
export const SHORT_PATH_CHARS = 256;
const CHARS_PER_CHANGE_SHIFT = 6;
