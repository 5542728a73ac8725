/**
 * Names of the children of one znode at any zxid. They are derived from those of the last query, as most queries are
 * for a zxid shortly after the previous one.
 */
export class ChildHistory {
  /** Ascending. */
  readonly #steps: { readonly zxid: number; readonly name: string; readonly isThere: boolean }[] = [];
  /** What is there after the first `#at` steps. */
  readonly #names: Set<string> = new Set();
  #at = 0;

  /** A child is created or deleted, by a txn that is not before any that was noted. */
  note(zxid: number, name: string, isThere: boolean): void {
    this.#steps.push({ zxid, name, isThere });
  }

  /** After everything up to `zxid`, in no order. */
  namesAt(zxid: number): string[] {
    const steps = this.#steps;
    while (this.#at < steps.length && steps[this.#at]!.zxid <= zxid) {
      const { name, isThere } = steps[this.#at++]!;
      this.#put(name, isThere);
    }
    while (this.#at > 0 && steps[this.#at - 1]!.zxid > zxid) {
      const { name, isThere } = steps[--this.#at]!;
      this.#put(name, !isThere);
    }
    return [...this.#names];
  }

  #put(name: string, isThere: boolean): void {
    if (isThere) this.#names.add(name);
    else this.#names.delete(name);
  }
}
