import { Fifo, type Zxid } from '@meerkat/protocol';
import type { LinkId } from '../zab/leader-host.ts';

interface Question {
  readonly zxid: Zxid;
  readonly sessionId: bigint;
}

/**
 * REVALIDATE answers that wait until the learner has been sent everything up to a zxid, so that the session can resume
 * there.
 *
 * A learner's answers wait for zxids in ascending order, because it is sent txns in that order. So only the oldest of
 * each learner is checked, however many sessions move at once.
 */
export class WaitingRevalidations {
  readonly #ofLink = new Map<LinkId, Fifo<Question>>();

  add(link: LinkId, zxid: Zxid, sessionId: bigint): void {
    const questions = this.#ofLink.get(link) ?? new Fifo<Question>();
    this.#ofLink.set(link, questions);
    questions.push({ zxid, sessionId });
  }

  /** Sends, in order, the answers whose learner has been sent enough. */
  answer(
    hasSentCommit: (link: LinkId, zxid: Zxid) => boolean,
    answer: (link: LinkId, sessionId: bigint) => void,
  ): void {
    for (const [link, questions] of this.#ofLink) {
      for (
        let oldest = questions.peek();
        oldest !== undefined && hasSentCommit(link, oldest.zxid);
        oldest = questions.peek()
      ) {
        questions.shift();
        answer(link, oldest.sessionId);
      }
      if (questions.peek() === undefined) this.#ofLink.delete(link);
    }
  }

  /** The learner has disconnected, and will ask again over another link. */
  forget(link: LinkId): void {
    this.#ofLink.delete(link);
  }
}
