import { Fifo, type ForwardedRequestPacket, OpCode } from '@meerkat/protocol';
import type { LinkId } from '../zab/leader-host.ts';

/** Who asks the leader through a follower: one of its observers, or the follower itself (null). */
export type Asker = LinkId | null;

/**
 * Tracks who asked the questions that a follower has sent to its leader: the follower itself or one of its observers.
 * The leader answers syncs in order, and the questions about one session in order.
 *
 * To the leader they all come from the follower. So this class drops requests that a session made through one of them
 * after its client has moved to another: they would be carried out after what the client requests there.
 */
export class RelayedRequests {
  readonly #syncs: Fifo<Asker> = new Fifo();
  #asked = 0;
  #answered = 0;
  #ownAnswered = 0;
  readonly #revalidations = new Map<bigint, Asker[]>();
  /** For sessions that were created or resumed through an observer. */
  readonly #askerOf = new Map<bigint, Asker>();

  /** @returns the ticket: the number of syncs requested so far */
  onSync(asker: Asker): number {
    this.#syncs.push(asker);
    return ++this.#asked;
  }

  /**
   * Returns how many of the answered syncs are the follower's own.
   *
   * @param count syncs answered since the role began
   */
  onSynced(count: number): number {
    for (; this.#answered < count; this.#answered++) if (this.#syncs.shift() === null) this.#ownAnswered++;
    return this.#ownAnswered;
  }

  onRevalidate(asker: Asker, sessionId: bigint): void {
    const askers = this.#revalidations.get(sessionId);
    if (askers === undefined) this.#revalidations.set(sessionId, [asker]);
    else askers.push(asker);
    if (asker !== null || this.#askerOf.has(sessionId)) this.#askerOf.set(sessionId, asker);
  }

  /**
   * The leader has answered.
   *
   * @param isValid false: there is no such session, and it is forgotten here
   * @returns who asked about this session
   */
  takeRevalidation(sessionId: bigint, isValid: boolean): Asker {
    const askers = this.#revalidations.get(sessionId);
    const asker = askers?.shift() ?? null;
    if (askers?.length === 0) this.#revalidations.delete(sessionId);
    if (!isValid && !this.#revalidations.has(sessionId)) this.#askerOf.delete(sessionId);
    return asker;
  }

  /** @returns false for a request whose client has moved to another server and no longer waits for the answer */
  mayAsk(link: LinkId, { op, cxid, sessionId }: ForwardedRequestPacket): boolean {
    if (op === OpCode.createSession) this.#askerOf.set(sessionId, link);
    const asker = this.#askerOf.get(sessionId);
    // A server that ends a session by itself (xid 0) need not be the one that the client is connected to.
    return asker === undefined || asker === link || (op === OpCode.closeSession && cxid === 0);
  }

  onSessionClosed(sessionId: bigint): void {
    this.#askerOf.delete(sessionId);
  }
}
