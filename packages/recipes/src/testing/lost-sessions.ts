import type { Client } from '@meerkat/client';
import type { Fleet } from './fleet.ts';

/** Which sessions their clients considered lost, and when. */
export class LostSessions {
  /** The last zxid committed at that time. */
  readonly #zxids = new Map<bigint, number>();

  /**
   * From now on, for all sessions of this client.
   *
   * @returns a function that ends this: sessions of a client that is closed properly do not count as lost
   */
  follow(client: Client, fleet: Fleet): () => void {
    const known = new Set<AbortSignal>();
    let isOver = false;
    const note = (): void => {
      const { session, lostSignal } = client;
      if (session === null || known.has(lostSignal)) return;
      known.add(lostSignal);
      const onLost = (): void => {
        if (!isOver && !this.#zxids.has(session.id)) this.#zxids.set(session.id, fleet.committedZxid);
      };
      if (lostSignal.aborted) onLost();
      else lostSignal.addEventListener('abort', onLost);
    };
    note();
    const listening = client.onState(note);
    return () => {
      isOver = true;
      listening[Symbol.dispose]();
    };
  }

  /** The last zxid committed when a session was first considered lost; infinite if it never was. */
  zxidOf(sessionId: bigint): number {
    return this.#zxids.get(sessionId) ?? Number.POSITIVE_INFINITY;
  }
}
