/**
 * The results that producers and consumers of a queue got, by the key of each item; checks that no item has two
 * holders.
 */
export class Books {
  /** Puts that were reported to have succeeded, and those of unknown outcome. */
  readonly put = new Set<string>();
  readonly doubtfulPuts = new Set<string>();
  readonly done = new Map<string, number>();
  readonly doubtfulDones = new Set<string>();
  /** Items that were put together. */
  readonly batches: (readonly string[])[] = [];
  /** Calls of `done` that were refused. */
  readonly refusals: { readonly name: string; readonly token: bigint }[] = [];
  /** Items that consumers got, and the last zxid that was certainly committed when they asked. */
  readonly takes: { readonly name: string; readonly token: bigint; readonly sinceZxid: number }[] = [];
  /**
   * Calls that found nothing to take, and the last zxid that may have been committed when they returned. `sinceMs` is
   * the virtual time of the call.
   */
  readonly misses: { readonly sinceZxid: number; readonly untilZxid: number; readonly sinceMs: number }[] = [];
  /** The current holders, as far as they are certain. */
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
