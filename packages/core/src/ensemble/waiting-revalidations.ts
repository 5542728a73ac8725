import { Fifo, type Zxid } from '@meerkat/protocol';
import type { LinkId } from '../zab/leader-host.ts';

interface Question {
  readonly zxid: Zxid;
  readonly sessionId: bigint;
}

/**
 * Sessions that resume at a learner once it has been told of everything up to a zxid: REVALIDATE that waits for its answer.
 *
 * A learner's questions wait for zxids in ascending order, as it is told of txns in that order. So only the oldest of each
 * learner is looked at, however many sessions move at once.
 */
export class WaitingRevalidations {
  readonly #ofLink = new Map<LinkId, Fifo<Question>>();

  add(link: LinkId, zxid: Zxid, sessionId: bigint): void {
    const questions = this.#ofLink.get(link) ?? new Fifo<Question>();
    this.#ofLink.set(link, questions);
    questions.push({ zxid, sessionId });
  }

  /** Answers, in their order, those whose learner has been told enough. */
  answer(hasTold: (link: LinkId, zxid: Zxid) => boolean, answer: (link: LinkId, sessionId: bigint) => void): void {
    for (const [link, questions] of this.#ofLink) {
      for (
        let oldest = questions.peek();
        oldest !== undefined && hasTold(link, oldest.zxid);
        oldest = questions.peek()
      ) {
        questions.shift();
        answer(link, oldest.sessionId);
      }
      if (questions.peek() === undefined) this.#ofLink.delete(link);
    }
  }

  /** The learner has gone, and asks again over another link. */
  forget(link: LinkId): void {
    this.#ofLink.delete(link);
  }
}
