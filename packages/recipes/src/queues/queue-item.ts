import type { CallOptions } from '@meerkat/client';
import type { Guarded } from '../kernel/guarded.ts';
import type { Claim } from './claim.ts';

/**
 * An item that was taken off a queue.
 *
 * Under a lease it is still in the queue, and no other client gets it while the lease lasts: until `done`, until it is given
 * back, or until the session of this client is over. So a consumer that dies loses nothing, and the client that leaves the scope
 * of an item without having called `done` has given it back.
 *
 * @example
 * await using item = await queue.take();
 * await send(item.value, { signal: item.signal });
 * await item.done();
 */
export class QueueItem<T> implements AsyncDisposable {
  /** What the codec refused, or what is no item of this layout; null when the value is good. Such an item can be `done`. */
  readonly error: Error | null;
  readonly #values: readonly T[];
  readonly #claim: Claim;

  /** Made by the queues. */
  constructor(claim: Claim, values: readonly T[], error: Error | null) {
    this.#claim = claim;
    this.#values = values;
    this.error = error;
  }

  /** Of the znode in the queue. */
  get name(): string {
    return this.#claim.name;
  }

  get path(): string {
    return this.#claim.path;
  }

  /** @throws what `error` reports; Error when the znode holds several items, as Curator's `putMulti` makes it */
  get value(): T {
    const { values, path } = this;
    if (values.length !== 1) throw new Error(`${path} holds ${values.length} items: look at its values`);
    return values[0] as T;
  }

  /** One, but for what Curator's `putMulti` has made. @throws what `error` reports */
  get values(): readonly T[] {
    if (this.error !== null) throw this.error;
    return this.#values;
  }

  /** As it lies in the znode. */
  get data(): Uint8Array | null {
    return this.#claim.data;
  }

  /**
   * Larger than that of the client that had this item before: a store that refuses smaller ones than it has seen for an item is
   * fenced. It is the zxid of the creation of the lease; without leases that of the item.
   */
  get token(): bigint {
    return this.#claim.token;
  }

  /** Whether it is ours for certain, at this moment. */
  get isHeld(): boolean {
    return this.#claim.isHeld;
  }

  /** Aborts as soon as it is not ours for certain. */
  get signal(): AbortSignal {
    return this.#claim.signal;
  }

  /** Writes that the service refuses once the lease is over; null without leases. */
  get guarded(): Guarded | null {
    return this.#claim.guarded;
  }

  /**
   * It is dealt with: takes it off the queue, exactly once.
   *
   * @throws NotHeldError when the lease had ended before: another client has the item, or will get it; SessionLostError of
   *   outcome 'unknown' when the session ended before the answer
   */
  done(options: CallOptions = {}): Promise<void> {
    return this.#claim.done(options);
  }

  /**
   * Lets others have it, at its old place; without leases at the end of the queue. Nothing happens after `done`.
   *
   * @throws what the service refuses, so that no other client gets the item; it may be tried again
   */
  giveBack(options: CallOptions = {}): Promise<void> {
    return this.#claim.giveBack(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.giveBack();
  }
}
