import { Fifo, type Zxid } from '@meerkat/protocol';

/**
 * Syncs of a learner that its leader has answered. Each is reported after everything that was committed when the answer
 * arrived has been reported as committed.
 */
export class AnsweredSyncs {
  readonly #waiting: Fifo<Zxid> = new Fifo();
  #answered = 0;

  /** @param committed up to where the leader had announced commits by then */
  add(committed: Zxid): void {
    this.#waiting.push(committed);
  }

  /** @returns how many are to be reported, counted from the beginning of the role; null when none is new */
  take(lastCommitted: Zxid): number | null {
    const before = this.#answered;
    for (let next = this.#waiting.peek(); next !== undefined && next <= lastCommitted; next = this.#waiting.peek()) {
      this.#waiting.shift();
      this.#answered++;
    }
    return this.#answered > before ? this.#answered : null;
  }
}
