import { Budget, type CallOptions, type Client, type Surroundings } from '@meerkat/client';
import { ItemQueue, type QueueOptions } from './item-queue.ts';
import { DELAY_NAMING, delayStem } from './layout.ts';

export interface DelayedPutOptions extends CallOptions {
  /** The item is not delivered before this many milliseconds have passed. */
  readonly delayMs?: number | undefined;
  /** The item is not delivered before this time: a date, or milliseconds since 1970. Instead of `delayMs`. */
  readonly at?: Date | number | undefined;
}

/** Only Curator has a compatible queue. */
export type DelayQueueOptions<T> = Omit<QueueOptions<T>, 'layout'>;

/**
 * A queue whose items are not delivered before their time: the earliest first.
 *
 * The time is that of the servers: every consumer asks them, so that local clocks do not matter. The time of an item is
 * part of its name, as in Curator's DistributedDelayQueue, whose consumers use their own clocks.
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

  /**
   * Without `delayMs` and `at` it may be taken at once.
   *
   * @throws RangeError for an invalid time; otherwise as `Queue.put`
   */
  put(value: T, options: DelayedPutOptions = {}): Promise<void> {
    return this.putAll([value], options);
  }

  /** Puts several items with the same time, all of them or none. */
  async putAll(values: readonly T[], { delayMs, at, ...options }: DelayedPutOptions = {}): Promise<void> {
    if (delayMs !== undefined && at !== undefined) throw new RangeError('an item has either delayMs or at');
    // Reading the clock and putting share one deadline.
    const budget = new Budget(options, this.#surroundings, { operation: 'DelayQueue.put', path: this.path });
    const dueMs = at === undefined ? await this.#dueMs(delayMs ?? 0, budget.next()) : Number(at);
    await this.putAt(delayStem(Math.ceil(dueMs)), values, budget.next());
  }

  /**
   * Not before the delay has passed wherever the clock of the service is; but an item without a delay is due at once.
   */
  async #dueMs(delayMs: number, options: CallOptions): Promise<number> {
    const { earliestMs, latestMs } = await this.tally.serverTime(options);
    return delayMs <= 0 ? earliestMs : latestMs + delayMs;
  }
}
