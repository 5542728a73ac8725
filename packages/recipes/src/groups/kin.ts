import { type Client, NoAuthError, NoNodeError, type Stat } from '@meerkat/client';
import { hasOwner } from './owner-mark.ts';

/** Who we are: the sessions of this client, and the owner whose mark our processes put on their znodes. */
export class Kin {
  readonly #client: Client;
  /** null: only the sessions. */
  readonly #owner: string | null;
  /** Sessions in which a znode of ours may have come to be. */
  readonly #sessions: Set<bigint> = new Set();

  constructor(client: Client, owner: string | null) {
    this.#client = client;
    this.#owner = owner;
  }

  /** A znode of ours may come to be in the session that stands. */
  noteSession(): void {
    const id = this.#client.session?.id;
    if (id !== undefined) this.#sessions.add(id);
  }

  /** A znode of ours has come to be. */
  noteZnode({ ephemeralOwner }: Stat): void {
    this.#sessions.add(ephemeralOwner);
  }

  /** Nothing of ours can have come to be. */
  get hasMadeNothing(): boolean {
    return this.#sessions.size === 0;
  }

  /** Whether a session of this client has made it. */
  hasMade({ ephemeralOwner }: Stat): boolean {
    return this.#sessions.has(ephemeralOwner);
  }

  /** Whether an earlier session or process of ours has made what stands there; null when it has gone meanwhile. */
  async hasLeft(path: string, stat: Stat, signal: AbortSignal): Promise<boolean | null> {
    if (this.hasMade(stat)) return true;
    if (this.#owner === null) return false;
    try {
      const found = await this.#client.getAcl(path, { signal });
      return found.stat.czxid === stat.czxid ? hasOwner(found.acl, this.#owner) : null;
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      if (error instanceof NoAuthError) return false;
      throw error;
    }
  }
}
