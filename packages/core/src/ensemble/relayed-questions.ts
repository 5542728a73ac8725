import { Fifo, type ForwardedRequestPacket, OpCode } from '@meerkat/protocol';
import type { LinkId } from '../zab/leader-host.ts';

/** Who asks the leader through a follower: an observer that hangs on it, or (null) the follower itself. */
export type Asker = LinkId | null;

/**
 * Whose the questions are that a follower has sent to its leader, its own and those of its observers. The leader answers
 * syncs in their order, and those about one session in theirs.
 *
 * For the leader all of them are the follower's. So it is seen to here that what a session has asked for through one of them
 * is not done once its client has gone on to another: that would come behind what the client asks there.
 */
export class RelayedQuestions {
  readonly #syncs: Fifo<Asker> = new Fifo();
  #asked = 0;
  #answered = 0;
  #ownAnswered = 0;
  readonly #revalidations = new Map<bigint, Asker[]>();
  /** Of sessions that were created or gone on with through an observer. */
  readonly #askerOf = new Map<bigint, Asker>();

  /** @returns the ticket: the number of syncs that were asked for until now */
  onSync(asker: Asker): number {
    this.#syncs.push(asker);
    return ++this.#asked;
  }

  /** @param count syncs that are answered since the role began @returns how many of them are the follower's own */
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
   * @param isValid false: there is no such session, and nothing is remembered of it
   * @returns who has asked whether this session lives
   */
  takeRevalidation(sessionId: bigint, isValid: boolean): Asker {
    const askers = this.#revalidations.get(sessionId);
    const asker = askers?.shift() ?? null;
    if (askers?.length === 0) this.#revalidations.delete(sessionId);
    if (!isValid && !this.#revalidations.has(sessionId)) this.#askerOf.delete(sessionId);
    return asker;
  }

  /** @returns false of a request whose client has gone on elsewhere; nobody waits for an answer to it */
  mayAsk(link: LinkId, { op, cxid, sessionId }: ForwardedRequestPacket): boolean {
    if (op === OpCode.createSession) this.#askerOf.set(sessionId, link);
    const asker = this.#askerOf.get(sessionId);
    // A server that ends a session on its own account, with xid 0, need not be the one of its client.
    return asker === undefined || asker === link || (op === OpCode.closeSession && cxid === 0);
  }

  onSessionClosed(sessionId: bigint): void {
    this.#askerOf.delete(sessionId);
  }
}
