import type { CallOptions } from '@meerkat/client';
import type { Guarded } from '../kernel/guarded.ts';
import type { Claim } from './claim.ts';

/**
 * An item taken from a queue.
 *
 * Under a lease it is still in the queue, and no other client gets it while the lease lasts: until `done`, until it is
 * released, or until the session of this client is over. So a consumer that dies loses nothing, and leaving the scope
 * of an item without `done` releases it.
 *
 * @example
 * await using item = await queue.take();
 * await send(item.value, { signal: item.signal });
 * await item.done();
 */
export class QueueItem<T> implements AsyncDisposable {
  /** Why the codec, or the layout, refuses the data; null when the value is valid. Such an item can be `done`. */
  readonly error: Error | null;
  readonly #values: readonly T[];
  readonly #claim: Claim;

  /** Created by the queues. */
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

  /** @throws what `error` reports; Error when the znode holds several items, as written by Curator's `putMulti` */
  get value(): T {
    const { values, path } = this;
    if (values.length !== 1) throw new Error(`${path} holds ${values.length} items: look at its values`);
    return values[0] as T;
  }

  /** One value, except for items of Curator's `putMulti`. @throws what `error` reports */
  get values(): readonly T[] {
    if (this.error !== null) throw this.error;
    return this.#values;
  }

  /** As stored in the znode. */
  get data(): Uint8Array | null {
    return this.#claim.data;
  }

  /**
   * Fencing token, larger than those of earlier consumers of this item: a store that refuses smaller ones than it has
   * seen for an item is fenced. It is the czxid of the lease; without leases that of the item.
   */
  get token(): bigint {
    return this.#claim.token;
  }

  /** Whether it is certain to be ours at this moment. */
  get isHeld(): boolean {
    return this.#claim.isHeld;
  }

  /** Aborts when it is no longer certain to be ours. */
  get signal(): AbortSignal {
    return this.#claim.signal;
  }

  /** Writes that the service refuses once the lease is over; null without leases. */
  get guarded(): Guarded | null {
    return this.#claim.guarded;
  }

  /**
   * Completes the item: removes it from the queue, exactly once.
   *
   * @throws NotHeldError when the lease had ended before: another client has the item, or will get it; SessionLostError
   *   of outcome 'unknown' when the session ended before the reply
   */
  done(options: CallOptions = {}): Promise<void> {
    return this.#claim.done(options);
  }

  /**
   * Releases it for others, at its old place; without leases at the end of the queue. Does nothing after `done`.
   *
   * @throws what the service refuses, so that no other client gets the item; it may be retried
   */
  release(options: CallOptions = {}): Promise<void> {
    return this.#claim.release(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
