import { type CallOptions, type Client, nullableBytes } from '@meerkat/client';
import { Rendezvous } from './rendezvous.ts';

/** The result of coming through. */
export interface Passage {
  /** The first to come has 0. */
  readonly index: number;
  /** Larger than that of every round before, and the same for all who came through together. */
  readonly round: bigint;
}

/**
 * A barrier that opens whenever so many wait at it, and closes behind them, round after round. It is a rendezvous to which
 * no client brings anything.
 *
 * A party that gives up, or dies, while it waits is not counted any more: the others wait for another party.
 *
 * @example
 * const barrier = new CyclicBarrier(client, '/steps', 4);
 * for (const step of steps) {
 *   await step();
 *   await barrier.wait(); // all four have done it
 * }
 */
export class CyclicBarrier {
  readonly #rendezvous: Rendezvous<Uint8Array | null>;

  constructor(client: Client, path: string, partyCount: number) {
    this.#rendezvous = new Rendezvous<Uint8Array | null>(client, path, partyCount, { codec: nullableBytes });
  }

  get path(): string {
    return this.#rendezvous.path;
  }

  get partyCount(): number {
    return this.#rendezvous.partyCount;
  }

  /** Waits until enough do. @throws as `Rendezvous.meet` */
  async wait(options: CallOptions = {}): Promise<Passage> {
    const { index, round } = await this.#rendezvous.meet(null, options);
    return { index, round };
  }
}
