import type { CallOptions, Client } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { fifoNaming, fifoStem } from './layout.ts';

/**
 * A queue: first in, first out.
 *
 * What one producer puts is taken in the order in which it was put. Several consumers work at the same time, so that the
 * order in which they come to an end is theirs.
 *
 * @example
 * const queue = new Queue<Job>(client, '/jobs', { codec: json<Job>() });
 * await queue.put({ image: 'cat.png' });
 * for await (const item of queue) {
 *   await resize(item.value);
 *   await item.done();
 * }
 */
export class Queue<T = Uint8Array> extends ItemQueue<T> {
  constructor(client: Client, path: string, options: QueueOptions<T> = {}) {
    super(client, path, fifoNaming(options.layout ?? 'curator'), options);
  }

  /**
   * Puts an item at the end, exactly once; waits while the queue is full.
   *
   * @throws AbortedError, TimeoutError: of outcome 'not-applied' while it waited for its turn; SessionLostError of outcome
   *   'unknown' when the session ended before the answer
   */
  put(value: T, options: CallOptions = {}): Promise<void> {
    return this.putAll([value], options);
  }

  /** Puts several items, next to each other, all of them or none. */
  async putAll(values: readonly T[], options: CallOptions = {}): Promise<void> {
    await this.putAt(fifoStem(this.layout), values, options);
  }
}
