import type { CallOptions, Client } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { fifoNaming, fifoStem } from './layout.ts';

/**
 * A FIFO queue.
 *
 * Items of one producer are taken in the order in which they were put. Several consumers work concurrently, so the
 * order of completion may differ.
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
   * @throws AbortedError, TimeoutError: of outcome 'not-applied' while it waited for its turn; SessionLostError of
   *   outcome 'unknown' when the session ended before the reply
   */
  put(value: T, options: CallOptions = {}): Promise<void> {
    return this.putAll([value], options);
  }

  /** Puts several items, next to each other, all of them or none. */
  async putAll(values: readonly T[], options: CallOptions = {}): Promise<void> {
    await this.putAt(fifoStem(this.layout), values, options);
  }
}
