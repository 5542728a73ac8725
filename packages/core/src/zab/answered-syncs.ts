import { Fifo, type Zxid } from '@meerkat/protocol';

/**
 * Syncs of a learner that its leader has answered. Each is told once everything is told as committed that was committed
 * when the answer came.
 */
export class AnsweredSyncs {
  readonly #waiting: Fifo<Zxid> = new Fifo();
  #told = 0;

  /** @param committed what the leader had said to be committed by then */
  add(committed: Zxid): void {
    this.#waiting.push(committed);
  }

  /** @returns how many are to be told, from the beginning of the role; null when it is no more than before */
  take(lastCommitted: Zxid): number | null {
    const before = this.#told;
    for (let next = this.#waiting.peek(); next !== undefined && next <= lastCommitted; next = this.#waiting.peek()) {
      this.#waiting.shift();
      this.#told++;
    }
    return this.#told > before ? this.#told : null;
  }
}
