/** The pzxid up to which all creations and deletions of children are known; only of znodes that were looked at. */
export class KnownChildren {
  readonly #asOf: Map<string, bigint> = new Map();

  /** True when no child came or went since they were listed. */
  isAsOf(path: string, pzxid: bigint): boolean {
    return this.#asOf.get(path) === pzxid;
  }

  note(path: string, pzxid: bigint): void {
    this.#asOf.set(path, pzxid);
  }

  /** A change of children that was reported. Of a znode that was not looked at it says nothing of the others. */
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
