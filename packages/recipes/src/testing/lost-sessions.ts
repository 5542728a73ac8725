import type { Client } from '@meerkat/client';
import type { Fleet } from './fleet.ts';

/** Which sessions their clients have taken for lost, and when. */
export class LostSessions {
  /** How far was committed then. */
  readonly #zxids = new Map<bigint, number>();

  /**
   * From now on, of all sessions that this client has.
   *
   * @returns ends that: what a client that is closed in an orderly way had is no excuse for anything
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

  /** How far was committed when a session was first taken for lost; infinite if it never was. */
  zxidOf(sessionId: bigint): number {
    return this.#zxids.get(sessionId) ?? Number.POSITIVE_INFINITY;
  }
}
