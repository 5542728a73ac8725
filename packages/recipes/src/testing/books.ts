/** What producers and consumers of a queue believe, by the key of each item; checked where two of them are sure of one. */
export class Books {
  /** Puts that were reported to have succeeded, and those of unknown outcome. */
  readonly put = new Set<string>();
  readonly doubtfulPuts = new Set<string>();
  readonly done = new Map<string, number>();
  readonly doubtfulDones = new Set<string>();
  /** What was put together. */
  readonly batches: (readonly string[])[] = [];
  /** Those who were told that an item is not theirs to be done. */
  readonly refusals: { readonly name: string; readonly token: bigint }[] = [];
  /** What consumers have got, and what was committed for certain when they asked for it. */
  readonly takes: { readonly name: string; readonly token: bigint; readonly sinceZxid: number }[] = [];
  /**
   * Those who asked and were told that there is nothing to take, and what was committed at most when they were told so.
   * `sinceMs` is the virtual time of the question.
   */
  readonly misses: { readonly sinceZxid: number; readonly untilZxid: number; readonly sinceMs: number }[] = [];
  /** Who has an item in hand at this moment, as far as the holders are certain. */
  readonly #holders = new Map<string, { readonly token: bigint; readonly isHeld: () => boolean }>();
  readonly #tokens = new Map<string, bigint>();

  take(key: string, token: bigint, isHeld: () => boolean): void {
    const holder = this.#holders.get(key);
    if (holder?.isHeld() === true && isHeld()) throw new Error(`two consumers have ${key} at one time`);
    const last = this.#tokens.get(key) ?? 0n;
    if (token <= last) throw new Error(`token ${token} of ${key} follows ${last}`);
    this.#tokens.set(key, token);
    this.#holders.set(key, { token, isHeld });
  }
}
