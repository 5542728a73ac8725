import {
  AbortedError,
  bytes,
  type CallOptions,
  type Client,
  ClosedError,
  type Codec,
  DecodeError,
} from '@meerkat/client';
import { checkLimit } from '../kernel/bounds.ts';
import { heldSettings } from '../kernel/settings.ts';
import type { Claim } from './claim.ts';
import { Consumer } from './consumer.ts';
import { readEnvelope, writeEnvelope } from './envelope.ts';
import { hasEnvelope, type ItemNaming, makePaths, type QueueLayout } from './layout.ts';
import { LeaseClaimer } from './lease-claimer.ts';
import { Producer } from './producer.ts';
import { QueueItem } from './queue-item.ts';
import { RemovalClaimer } from './removal-claimer.ts';
import { Tally } from './tally.ts';

export interface QueueOptions<T> {
  /** How values are stored in a znode. Default: bytes. */
  readonly codec?: Codec<T> | undefined;
  /** The library that it is shared with. Default 'curator'. */
  readonly layout?: QueueLayout | undefined;
  /**
   * With leases an item stays in the queue until it is `done`, and is available again when its consumer dies. Without,
   * it is deleted when it is taken. Has to be the same for all consumers, including those of other libraries: Curator's
   * with a lock path and kazoo's LockingQueue have leases, all others have none. Default true.
   */
  readonly leases?: boolean | undefined;
  /** The parent of the leases: Curator's lock path. Default `<path>-leases`, in kazoo's layout `<path>/taken`. */
  readonly leasesPath?: string | undefined;
  /**
   * Safety margin: how long before the client's deadline a lease ends, in milliseconds; see docs/recipes/README.md.
   * Default 0.
   */
  readonly marginMs?: number | undefined;
  /** Producers wait while there are this many items, including taken ones. Default: no limit. */
  readonly itemsMax?: number | undefined;
}

/** Common to all queues: consumers and znodes. */
export abstract class ItemQueue<T> implements AsyncIterable<QueueItem<T>> {
  readonly path: string;
  readonly layout: QueueLayout;
  protected readonly consumer: Consumer;
  protected readonly producer: Producer;
  protected readonly tally: Tally;
  readonly #codec: Codec<T>;

  protected constructor(client: Client, path: string, naming: ItemNaming, options: QueueOptions<T>) {
    const { layout = 'curator', leases = true, itemsMax = Number.POSITIVE_INFINITY } = options;
    const { marginMs } = heldSettings(options);
    checkLimit('itemsMax', itemsMax);
    const paths = makePaths(path, layout, options.leasesPath);
    this.path = path;
    this.layout = layout;
    // Without a codec T is Uint8Array.
    this.#codec = options.codec ?? (bytes as unknown as Codec<T>);
    this.tally = new Tally(client, paths.tallies);
    const claimer = leases ? new LeaseClaimer(client, paths, marginMs) : new RemovalClaimer(client, paths, this.tally);
    this.consumer = new Consumer(client, { paths, naming, claimer, tally: this.tally, hasLeases: leases });
    this.producer = new Producer(client, paths, this.tally, itemsMax);
  }

  /**
   * The first free item; waits until there is one.
   *
   * @throws AbortedError, TimeoutError, ClosedError: nothing was taken, or it is released, so that `outcome` is
   *   'not-applied'. Without leases it is 'unknown' while an item is being deleted: it is put into the queue again when
   *   that has happened, unless the client is closed before
   * @example
   * await using item = await queue.take({ timeoutMs: 60_000 });
   */
  async take(options: CallOptions = {}): Promise<QueueItem<T>> {
    return this.#open(await this.consumer.take(options, this.#about('take')));
  }

  /** The first free item; null when there is none, or other clients were faster with all that it found. */
  async tryTake(options: CallOptions = {}): Promise<QueueItem<T> | null> {
    const claim = await this.consumer.tryTake(options, this.#about('tryTake'));
    return claim === null ? null : this.#open(claim);
  }

  /** The number of items, including those that are taken under a lease. */
  async size(options: CallOptions = {}): Promise<number> {
    return (await this.consumer.names(options, this.#about('size'))).length;
  }

  /**
   * One item after the other, until the loop is left, the signal is aborted or the client is closed. An item that is
   * not `done` when the loop continues is released; without leases the loop waits for that, also for an item that
   * came too late for the signal, and rejects when the client is closed before: the item is nowhere else.
   *
   * @example
   * for await (const item of queue.items({ signal })) {
   *   await send(item.value);
   *   await item.done();
   * }
   */
  async *items({ signal }: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<QueueItem<T>, void> {
    for (;;) {
      let item: QueueItem<T>;
      try {
        item = await this.take({ signal });
      } catch (error) {
        if (!isEnd(error)) throw error;
        await this.consumer.whenReturned();
        return;
      }
      try {
        yield item;
      } finally {
        await item.release();
      }
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<QueueItem<T>, void> {
    return this.items();
  }

  /** Puts items, all of them or none. */
  protected putAt(stem: string, values: readonly T[], options: CallOptions): Promise<void> {
    const items = values.map((value) => ({ stem, data: this.#encode(value) }));
    return this.producer.put(items, options, this.#about('put'));
  }

  #encode(value: T): Uint8Array | null {
    const data = this.#codec.encode(value);
    return hasEnvelope(this.layout) ? writeEnvelope([data ?? new Uint8Array(0)]) : data;
  }

  async #open(claim: Claim): Promise<QueueItem<T>> {
    const { data, path } = claim;
    try {
      const parts: readonly (Uint8Array | null)[] = hasEnvelope(this.layout) ? readEnvelope(data) : [data];
      const values = await Promise.all(parts.map((part) => this.#codec.decode(part)));
      return new QueueItem(claim, values, null);
    } catch (cause) {
      return new QueueItem<T>(claim, [], new DecodeError('take', path, data, cause));
    }
  }

  #about(operation: string): { readonly operation: string; readonly path: string } {
    return { operation: `${this.constructor.name}.${operation}`, path: this.path };
  }
}

/** Ended by the caller or the client, with no item that may be lost. */
function isEnd(error: unknown): boolean {
  if (error instanceof AbortedError) return true;
  return error instanceof ClosedError && error.outcome === 'not-applied';
}
