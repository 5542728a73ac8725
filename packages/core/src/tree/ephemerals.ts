import type { ZnodeNumber } from './znode-rows.ts';

const NONE: ReadonlySet<ZnodeNumber> = new Set();

/** Which ephemeral znodes each session owns, so that closing a session costs no search. */
export class Ephemerals {
  readonly #bySession = new Map<bigint, Set<ZnodeNumber>>();
  #count = 0;

  /** Ephemeral znodes of all sessions. */
  get count(): number {
    return this.#count;
  }

  add(sessionId: bigint, z: ZnodeNumber): void {
    const owned = this.#bySession.get(sessionId);
    if (owned === undefined) this.#bySession.set(sessionId, new Set([z]));
    else owned.add(z);
    this.#count++;
  }

  delete(sessionId: bigint, z: ZnodeNumber): void {
    const owned = this.#bySession.get(sessionId);
    if (owned === undefined || !owned.delete(z)) return;
    this.#count--;
    if (owned.size === 0) this.#bySession.delete(sessionId);
  }

  /** In the order of their creation; changes while the tree does. */
  of(sessionId: bigint): ReadonlySet<ZnodeNumber> {
    return this.#bySession.get(sessionId) ?? NONE;
  }

  /** Sessions that own at least one. */
  sessions(): IterableIterator<bigint> {
    return this.#bySession.keys();
  }
}
