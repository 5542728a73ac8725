import { Budget, type CallOptions, type Client, type Surroundings } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { DELAY_NAMING, delayStem } from './layout.ts';

export interface DelayedPutOptions extends CallOptions {
  /** No client gets the item before so many milliseconds have passed. */
  readonly delayMs?: number | undefined;
  /** No client gets the item before this time: a date, or milliseconds since 1970. Instead of `delayMs`. */
  readonly at?: Date | number | undefined;
}

/** Only Curator has such a queue. */
export type DelayQueueOptions<T> = Omit<QueueOptions<T>, 'layout'>;

/**
 * A queue whose items are not to be taken before their time: the earliest first.
 *
 * What time it is, the servers say: every consumer asks them, so that it does not matter whose clock is wrong. The time of
 * an item is part of its name, as in Curator's DistributedDelayQueue, whose consumers go by their own clocks.
 *
 * @example
 * const reminders = new DelayQueue<string>(client, '/reminders', { codec: text });
 * await reminders.put('tea is ready', { delayMs: 180_000 });
 */
export class DelayQueue<T = Uint8Array> extends ItemQueue<T> {
  readonly #surroundings: Surroundings;

  constructor(client: Client, path: string, options: DelayQueueOptions<T> = {}) {
    super(client, path, DELAY_NAMING, options);
    this.#surroundings = client.surroundings;
  }

  /** Without `delayMs` and `at` it may be taken at once. @throws RangeError for what is no time; otherwise as `Queue.put` */
  put(value: T, options: DelayedPutOptions = {}): Promise<void> {
    return this.putAll([value], options);
  }

  /** Puts several items of one time, all of them or none. */
  async putAll(values: readonly T[], { delayMs, at, ...options }: DelayedPutOptions = {}): Promise<void> {
    if (delayMs !== undefined && at !== undefined) throw new RangeError('an item has either delayMs or at');
    // Asking for the time and putting have one limit.
    const budget = new Budget(options, this.#surroundings, { operation: 'DelayQueue.put', path: this.path });
    const dueMs = at === undefined ? await this.#dueMs(delayMs ?? 0, budget.next()) : Number(at);
    await this.putAt(delayStem(Math.ceil(dueMs)), values, budget.next());
  }

  /** Not before the delay has passed wherever the clock of the service stands; but what has no delay is due by now. */
  async #dueMs(delayMs: number, options: CallOptions): Promise<number> {
    const { earliestMs, latestMs } = await this.tally.serverTime(options);
    return delayMs <= 0 ? earliestMs : latestMs + delayMs;
  }
}
