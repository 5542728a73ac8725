import type { ItemQueue } from '../queues/item-queue.ts';
import type { Fleet } from './fleet.ts';

/** Takes all items, in order. */
export async function drain<T>(queue: ItemQueue<T>): Promise<T[]> {
  const values: T[] = [];
  for (;;) {
    await using item = await queue.tryTake();
    if (item === null) return values;
    values.push(item.value);
    await item.done();
  }
}

/** Partitions the first client from the service for this long. */
export function cutOff({ world }: Fleet, durationMs: number): void {
  world.network.block('client1', 'zk1');
  world.network.block('zk1', 'client1');
  world.timeline.plan(durationMs, () => world.network.heal());
}
