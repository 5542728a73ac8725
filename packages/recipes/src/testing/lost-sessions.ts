import type { Client } from '@meerkat/client';
import type { CommitMark } from './commit-mark.ts';

/** Which sessions their clients have taken for lost, and when. */
export class LostSessions {
  /** How far was committed then. */
  readonly #zxids = new Map<bigint, number>();

  /** From now on, of all sessions that this client has. */
  follow(client: Client, mark: Pick<CommitMark, 'zxid'>): void {
    const known = new Set<AbortSignal>();
    const note = (): void => {
      const { session, lostSignal } = client;
      if (session === null || known.has(lostSignal)) return;
      known.add(lostSignal);
      const onLost = (): void => {
        if (!this.#zxids.has(session.id)) this.#zxids.set(session.id, mark.zxid);
      };
      if (lostSignal.aborted) onLost();
      else lostSignal.addEventListener('abort', onLost);
    };
    note();
    client.onState(note);
  }

  /** How far was committed when a session was first taken for lost; infinite if it never was. */
  zxidOf(sessionId: bigint): number {
    return this.#zxids.get(sessionId) ?? Number.POSITIVE_INFINITY;
  }
}
