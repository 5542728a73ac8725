import type { MultiOp, MultiSubTxn } from '@meerkat/protocol';

/**
 * How many changes one counts as, where a turn makes a limited number: more for a long path, which has to be looked up,
 * compared, hashed and logged.
 */
export function weightOf(path: string): number {
  return path.length <= SHORT_PATH_CHARS ? 1 : 1 + (path.length >> CHARS_PER_CHANGE_SHIFT);
}

/** Of all operations of a multi, or of all resulting txns. */
export function weightOfAll(parts: readonly (MultiOp | MultiSubTxn)[]): number {
  let weight = 0;
  for (const part of parts) weight += 'path' in part ? weightOf(part.path) : 1;
  return weight;
}

/** Changes that may still be made. An overdraft by one of them is deducted the next time. */
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

/** The longest path that counts as one change. A longer one counts as one more for every 64 of its characters. */
export const SHORT_PATH_CHARS = 256;
const CHARS_PER_CHANGE_SHIFT = 6;
