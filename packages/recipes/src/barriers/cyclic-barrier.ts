import { type CallOptions, type Client, nullableBytes } from '@meerkat/client';
import { Rendezvous } from './rendezvous.ts';

/** The result of passing the barrier. */
export interface Passage {
  /** 0 for the first to arrive. */
  readonly index: number;
  /** Larger than that of every earlier round, and the same for all parties of one round. */
  readonly round: bigint;
}

/**
 * A barrier that opens whenever the required number of parties wait at it, and closes behind them, round after round: a
 * rendezvous without values.
 *
 * A party that cancels or dies while it waits is no longer counted: the others wait for another party.
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

  /** Waits until enough parties do. @throws as `Rendezvous.meet` */
  async wait(options: CallOptions = {}): Promise<Passage> {
    const { index, round } = await this.#rendezvous.meet(null, options);
    return { index, round };
  }
}
