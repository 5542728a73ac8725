import type { CallOptions, Client } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { fifoNaming, fixId, idOf, idStem } from './layout.ts';

/** Only Curator has a compatible queue. */
export type IdQueueOptions<T> = Omit<QueueOptions<T>, 'layout'>;

/**
 * A FIFO queue whose items have an id, by which they can be found and removed until they are taken. Ids need not be
 * unique.
 *
 * @example
 * await queue.put('order-7', job);
 * await queue.remove('order-7'); // the customer has changed her mind
 */
export class IdQueue<T = Uint8Array> extends ItemQueue<T> {
  constructor(client: Client, path: string, options: IdQueueOptions<T> = {}) {
    super(client, path, fifoNaming('curator'), options);
  }

  /** @param id slashes and vertical bars in it become underscores, as in Curator. @throws as `Queue.put` */
  async put(id: string, value: T, options: CallOptions = {}): Promise<void> {
    await this.putAt(idStem(id), [value], options);
  }

  /**
   * Removes the items with this id that are not taken yet.
   *
   * @returns their number
   * @throws as `QueueItem.done`: some of them may still exist
   */
  remove(id: string, options: CallOptions = {}): Promise<number> {
    const fixed = fixId(id);
    const about = { operation: 'IdQueue.remove', path: this.path };
    return this.consumer.remove((name) => idOf(name) === fixed, options, about);
  }

  /** Whether there is an item with this id, also one that is taken under a lease. */
  async has(id: string, options: CallOptions = {}): Promise<boolean> {
    const fixed = fixId(id);
    const names = await this.consumer.names(options, { operation: 'IdQueue.has', path: this.path });
    return names.some((name) => idOf(name) === fixed);
  }
}
