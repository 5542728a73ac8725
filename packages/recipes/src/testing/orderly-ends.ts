import type { Client } from '@meerkat/client';
import type { CommittedTree } from '@meerkat/simulator';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import type { Fleet } from './fleet.ts';
import { LostSessions } from './lost-sessions.ts';

/**
 * The checker of locks with a delay after a death, whose parent's data records whether a holder died: `held …` after an
 * acquisition, `free` after a release. The next client after `held …` waits for the whole delay.
 *
 * It checks that a client that released the lock while it was certain to hold it, or cancelled its wait, without having
 * lost its session, leaves `free` behind, in the txn that deletes its znode.
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

  /** Called when a client that was certain to hold it released it. */
  onGivenBack({ token }: Held): void {
    this.#givenBack.add(token);
  }

  /**
   * @param marked whether the parent's data has named, at some time, the znode of this name and czxid as the holder's
   */
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
        expect(sayingAt(zxid), `the state of the lock when ${path} is deleted at ${zxid}`).toBe('free');
      }
    }
  }
}

const NONE = new Uint8Array();
