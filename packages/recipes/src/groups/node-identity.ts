import { type Client, NoAuthError, NoNodeError, type Stat } from '@meerkat/client';
import { hasOwner } from './owner-mark.ts';

/** Our identity: the sessions of this client, and the owner whose mark our processes put on their znodes. */
export class NodeIdentity {
  readonly #client: Client;
  /** null: only the sessions. */
  readonly #owner: string | null;
  /** Sessions in which a znode of ours may have been created. */
  readonly #sessions: Set<bigint> = new Set();

  constructor(client: Client, owner: string | null) {
    this.#client = client;
    this.#owner = owner;
  }

  /** A znode of ours may be created in the current session. */
  noteSession(): void {
    const id = this.#client.session?.id;
    if (id !== undefined) this.#sessions.add(id);
  }

  /** A znode of ours was created. */
  noteZnode({ ephemeralOwner }: Stat): void {
    this.#sessions.add(ephemeralOwner);
  }

  /** No znode of ours can have been created. */
  get hasMadeNothing(): boolean {
    return this.#sessions.size === 0;
  }

  /** Whether a session of this client has created it. */
  hasMade({ ephemeralOwner }: Stat): boolean {
    return this.#sessions.has(ephemeralOwner);
  }

  /** Whether an earlier session or process of ours has created this znode; null when it is gone by now. */
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
