import type { Client } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import type { Fleet } from './fleet.ts';
import { LostSessions } from './lost-sessions.ts';

/**
 * The checker of locks with a delay after a death, whose parent's data say whether a holder died: `held …` from the taking on,
 * `free` from a release on. The client that comes next after `held …` waits for the whole delay.
 *
 * It holds: the client that has given the lock back while it was his, or has given up waiting for it, and had not lost his session,
 * leaves `free` behind, in the txn that deletes the znode which stood for him.
 */
export class OrderlyEnds {
  readonly #parent: string;
  readonly #lost = new LostSessions();
  readonly #taken = new Set<bigint>();
  readonly #givenBack = new Set<bigint>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  follow(client: Client, fleet: Fleet): void {
    this.#lost.follow(client, fleet);
  }

  onTaken({ token }: Held): void {
    this.#taken.add(token);
  }

  /** It was his for certain when he did so. */
  onGivenBack({ token }: Held): void {
    this.#givenBack.add(token);
  }

  /** @param marked whether the parent said at some time that the znode of this name, made at this zxid, stands for the holder */
  check(tree: CommittedTree, marked: (name: string, czxid: number, words: ReadonlySet<string>) => boolean): void {
    const sayingAt = (zxid: number): string => new TextDecoder().decode(tree.stateAt(this.#parent, zxid)?.data ?? NONE);
    const words = new Set(tree.changesOf(this.#parent).map(({ zxid }) => sayingAt(zxid)));
    for (const path of tree.paths()) {
      if (!path.startsWith(`${this.#parent}/`)) continue;
      for (const { type, zxid } of tree.changesOf(path)) {
        if (type !== 'deleted') continue;
        const { czxid, owner } = tree.stateAt(path, tree.zxidBefore(zxid))!;
        const token = BigInt(czxid);
        const isLost = zxid > this.#lost.zxidOf(owner) || tree.sessions.get(owner)?.closedZxid === zxid;
        const isLapsed = this.#taken.has(token) && !this.#givenBack.has(token);
        if (isLost || isLapsed || !marked(path.slice(this.#parent.length + 1), czxid, words)) continue;
        expect(sayingAt(zxid), `what is said of the lock when ${path} is deleted at ${zxid}`).toBe('free');
      }
    }
  }
}

const NONE = new Uint8Array();
