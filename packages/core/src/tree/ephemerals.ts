import type { ZnodeNumber } from './znode-rows.ts';

const NONE: ReadonlySet<ZnodeNumber> = new Set();

/** Which ephemeral znodes each session owns, so that closing a session costs no search. */
export class Ephemerals {
  readonly #bySession = new Map<bigint, Set<ZnodeNumber>>();
  #count = 0;
  /** The last session asked for, and what it owns: creates and session ends come in runs of one session. */
  #lastId = 0n;
  #lastOwned: Set<ZnodeNumber> | null = null;

  /** Ephemeral znodes of all sessions. */
  get count(): number {
    return this.#count;
  }

  add(sessionId: bigint, z: ZnodeNumber): void {
    const owned = this.#find(sessionId);
    if (owned === null) this.#bySession.set(sessionId, new Set([z]));
    else owned.add(z);
    this.#count++;
  }

  delete(sessionId: bigint, z: ZnodeNumber): void {
    const owned = this.#find(sessionId);
    if (owned === null || !owned.delete(z)) return;
    this.#count--;
    if (owned.size > 0) return;
    this.#bySession.delete(sessionId);
    this.#lastOwned = null;
  }

  /** In the order of their creation; a live view. */
  of(sessionId: bigint): ReadonlySet<ZnodeNumber> {
    return this.#find(sessionId) ?? NONE;
  }

  /** Sessions that own at least one. */
  sessions(): IterableIterator<bigint> {
    return this.#bySession.keys();
  }

  #find(sessionId: bigint): Set<ZnodeNumber> | null {
    if (this.#lastOwned === null || sessionId !== this.#lastId) {
      this.#lastId = sessionId;
      this.#lastOwned = this.#bySession.get(sessionId) ?? null;
    }
    return this.#lastOwned;
  }
}
