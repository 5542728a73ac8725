/** The pzxid up to which all creations and deletions of children are known; only for znodes that were read. */
export class KnownChildren {
  readonly #asOf: Map<string, bigint> = new Map();

  /** True when no child was created or deleted since they were listed. */
  isAsOf(path: string, pzxid: bigint): boolean {
    return this.#asOf.get(path) === pzxid;
  }

  note(path: string, pzxid: bigint): void {
    this.#asOf.set(path, pzxid);
  }

  /** A reported change of children. For a znode that was not read it says nothing about the other children. */
  advance(path: string, pzxid: bigint): void {
    if (this.#asOf.has(path)) this.#asOf.set(path, pzxid);
  }

  forget(path: string): void {
    this.#asOf.delete(path);
  }

  /** Events from this zxid on may have been missed. */
  forgetFrom(zxid: bigint): void {
    for (const [path, asOf] of this.#asOf) if (asOf >= zxid) this.#asOf.delete(path);
  }
}
