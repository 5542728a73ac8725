import type { CallOptions, Client } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { priorityNaming, priorityStem } from './layout.ts';

export interface PutOptions extends CallOptions {
  /** Smaller ones are taken first: 32 bits, signed; in kazoo's layouts 0 to 999. Default 0, in kazoo's layouts 100. */
  readonly priority?: number | undefined;
}

/**
 * A queue whose items have priorities: the smallest number first, and among equals the oldest.
 *
 * @example
 * const queue = new PriorityQueue<Job>(client, '/jobs', { codec: json<Job>() });
 * await queue.put(job, { priority: -5 });
 */
export class PriorityQueue<T = Uint8Array> extends ItemQueue<T> {
  constructor(client: Client, path: string, options: QueueOptions<T> = {}) {
    const { layout = 'curator' } = options;
    if (layout === 'curator-simple') throw new RangeError('items of a SimpleDistributedQueue have no priority');
    super(client, path, priorityNaming(layout), options);
  }

  /** @throws RangeError for a priority that the layout does not support; otherwise as `Queue.put` */
  put(value: T, options: PutOptions = {}): Promise<void> {
    return this.putAll([value], options);
  }

  /** Puts several items, next to each other, all of them or none. */
  async putAll(values: readonly T[], options: PutOptions = {}): Promise<void> {
    const { priority = this.layout === 'curator' ? 0 : 100 } = options;
    await this.putAt(priorityStem(this.layout, priority), values, options);
  }
}
