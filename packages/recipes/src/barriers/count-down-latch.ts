import {
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NodeExistsError,
  NoNodeError,
  parentOf,
  type Transaction,
  TransactionError,
  type TransactionResult,
  text,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreExisting } from '../kernel/failures.ts';
import { Tally } from '../queues/tally.ts';

/**
 * A counter that is counted down; waiting callers continue when it reaches 0, and so does every later caller.
 *
 *     /latch             the remaining count, in decimal digits
 *       open             exists when it is 0
 *       tallies          makes each count apply exactly once (see queues/tally.ts)
 *
 * Waiters watch `open`, so that counting wakes no client before the end.
 *
 * @example
 * const latch = new CountDownLatch(client, '/imports/monday', 20);
 * await latch.countDown(); // by each of twenty workers
 * await latch.wait(); // by the client that continues when all are ready
 */
export class CountDownLatch {
  readonly path: string;
  readonly #client: Client;
  readonly #count: number;
  readonly #tally: Tally;

  /** @param count the initial count; that of the client that creates the znode is used */
  constructor(client: Client, path: string, count: number) {
    if (!Number.isSafeInteger(count) || count < 0)
      throw new RangeError(`a latch counts down from 0 or more, not ${count}`);
    this.path = path;
    this.#client = client;
    this.#count = count;
    const tallies = joinPath(path, 'tallies');
    // Only below an existing latch: recreating a latch that was just deleted would leave one without a count.
    this.#tally = new Tally(client, tallies, (call) => makeContainer(client, tallies, call));
  }

  /**
   * Counts down by one, exactly once; does nothing at 0.
   *
   * @returns the remaining count
   * @throws SessionLostError of outcome 'unknown' when the session ended before the reply; AbortedError, TimeoutError
   *   and ClosedError likewise, of outcome 'not-applied' when no request was in flight
   */
  async countDown(options: CallOptions = {}): Promise<number> {
    const attempt = this.#attempt(options, 'countDown');
    for (;;) {
      const left = await this.#countOnce(attempt);
      if (left !== null) return left;
    }
  }

  /** @returns null when another client has counted down or deleted the latch */
  async #countOnce(attempt: Attempt): Promise<number | null> {
    const { left, version } = await this.#read(attempt);
    if (left === 0) return 0;
    const count = (transaction: Transaction<[]>): Transaction<TransactionResult[]> => {
      const growing = transaction as Transaction<TransactionResult[]>;
      growing.set(this.path, `${left - 1}`, { version });
      if (left === 1) growing.create(joinPath(this.path, OPEN), '');
      return growing;
    };
    try {
      await this.#tally.commit(count, attempt.next(), { mayBeApplied: false }, attempt.about);
      return left - 1;
    } catch (error) {
      const cause = error instanceof TransactionError ? error.cause : error;
      if (cause instanceof BadVersionError || cause instanceof NoNodeError) return null;
      throw cause;
    }
  }

  /** The remaining count. */
  async count(options: CallOptions = {}): Promise<number> {
    return (await this.#read(this.#attempt(options, 'count'))).left;
  }

  /**
   * Waits until the count is 0. Survives lost connections and sessions. A client that is disconnected while the latch
   * is opened and deleted does not notice, and waits for the next latch at this path.
   *
   * @throws AbortedError, TimeoutError
   */
  async wait(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'wait');
    // Not older than the call: an earlier latch may have been opened and deleted.
    let read: 'linearizable' | 'local' = 'linearizable';
    for (;;) {
      using open = await attempt.through((call) =>
        this.#client.exists(joinPath(this.path, OPEN), { ...call, watch: true, read }),
      );
      if (open.stat !== null) return;
      let wasOpened = false;
      const noted = open.changed.then(({ type }) => {
        wasOpened = type === 'created';
      });
      noted.catch(() => {});
      // A latch created with count 0 by an older program may lack `open`.
      if (read === 'linearizable' && (await this.#read(attempt)).left === 0) return;
      read = 'local';
      attempt.obstacle = 'it is not counted down';
      await attempt.any([noted]);
      // A faster client may have deleted the latch already.
      if (wasOpened) return;
    }
  }

  /** Creates the latch where it is missing. */
  async #read(attempt: Attempt): Promise<{ readonly left: number; readonly version: number }> {
    for (;;) {
      try {
        const { data, stat } = await attempt.through((call) =>
          this.#client.get(this.path, { ...call, codec: text, read: 'linearizable' }),
        );
        const left = /^\d+$/.test(data) ? Number(data) : Number.NaN;
        if (!Number.isSafeInteger(left)) throw new Error(`${this.path} is no latch: it holds ${data}`);
        return { left, version: stat.version };
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        await this.#make(attempt);
      }
    }
  }

  async #make(attempt: Attempt): Promise<void> {
    await attempt.prepare(async (call) => {
      await this.#client.ensurePath(parentOf(this.path), call);
      const transaction = this.#client.transaction().create(this.path, `${this.#count}`);
      const making = this.#count > 0 ? transaction : transaction.create(joinPath(this.path, OPEN), '');
      try {
        await making.commit(call);
      } catch (error) {
        if (!(error instanceof TransactionError)) throw error;
        // Another client has created it and chosen its count, or an earlier attempt of ours has.
        if (!(error.cause instanceof NodeExistsError || error.cause instanceof NoNodeError)) throw error.cause;
      }
    });
  }

  #attempt(options: CallOptions, operation: string): Attempt {
    return new Attempt(this.#client, options, { operation: `CountDownLatch.${operation}`, path: this.path });
  }
}

async function makeContainer(client: Client, path: string, call: CallOptions): Promise<void> {
  await client.create(path, '', { ...call, mode: 'container' }).catch(ignoreExisting);
}

const OPEN = 'open';
