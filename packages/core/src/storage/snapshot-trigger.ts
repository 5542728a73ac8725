/**
 * When a snapshot is due (SyncRequestProcessor): after half of `snapCount` txns and a random part of the other half, so
 * that the servers of an ensemble do not all write at the same time; likewise for the bytes of the log.
 */
import type { CoreOptions } from '../base/options.ts';
import type { Random } from '../base/ports.ts';

/** Apache raises a smaller `snapCount` to this. */
const SNAP_COUNT_MIN = 2;
const RANDOM_SPAN = 2 ** 32;

export class SnapshotTrigger {
  readonly #random: Random;
  readonly #options: Pick<CoreOptions, 'snapCount' | 'snapBytesMax'>;
  #txns = 0;
  #bytes = 0;
  #txnsMax = 0;
  #bytesMax = 0;

  constructor(random: Random, options: Pick<CoreOptions, 'snapCount' | 'snapBytesMax'>) {
    this.#random = random;
    this.#options = options;
    this.reset();
  }

  /** @param bytes size of the txn's entry in the log */
  onAppended(bytes: number): void {
    this.#txns++;
    this.#bytes += bytes;
  }

  get isDue(): boolean {
    return this.#txns > this.#txnsMax || this.#bytes > this.#bytesMax;
  }

  /** A snapshot begins; the next one is counted from here. */
  reset(): void {
    this.#txns = 0;
    this.#bytes = 0;
    const { snapCount, snapBytesMax } = this.#options;
    this.#txnsMax = this.#halfAndPart(Math.max(snapCount, SNAP_COUNT_MIN));
    this.#bytesMax = snapBytesMax > 0 ? this.#halfAndPart(snapBytesMax) : Number.POSITIVE_INFINITY;
  }

  #halfAndPart(whole: number): number {
    const half = Math.floor(whole / 2);
    return half + Math.floor((this.#random.uint32() / RANDOM_SPAN) * half);
  }
}
