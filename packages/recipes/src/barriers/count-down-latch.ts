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
 * A number that is counted down; a caller that waits continues when it is 0, and so does everyone who comes later.
 *
 *     /latch             what is left, in decimal digits
 *       open             it is 0
 *       tallies          so that everyone who counts does so exactly once (see queues/tally.ts)
 *
 * Who waits watches `open`, so that counting wakes no client before the end.
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

  /** @param count where it begins; the client that creates the znode decides */
  constructor(client: Client, path: string, count: number) {
    if (!Number.isSafeInteger(count) || count < 0)
      throw new RangeError(`a latch counts down from 0 or more, not ${count}`);
    this.path = path;
    this.#client = client;
    this.#count = count;
    const tallies = joinPath(path, 'tallies');
    // Below the latch alone: what was made in the place of one that was just deleted would be a latch without a number.
    this.#tally = new Tally(client, tallies, (call) => makeContainer(client, tallies, call));
  }

  /**
   * Counts down by one, exactly once; nothing happens at 0.
   *
   * @returns what is left
   * @throws SessionLostError of outcome 'unknown' when the session ended before the answer; AbortedError, TimeoutError and
   *   ClosedError likewise, of outcome 'not-applied' when nothing was under way
   */
  async countDown(options: CallOptions = {}): Promise<number> {
    const attempt = this.#attempt(options, 'countDown');
    for (;;) {
      const left = await this.#countOnce(attempt);
      if (left !== null) return left;
    }
  }

  /** @returns null when another client has counted, or deleted the latch */
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

  /** What is left. */
  async count(options: CallOptions = {}): Promise<number> {
    return (await this.#read(this.#attempt(options, 'count'))).left;
  }

  /**
   * Waits until it is 0. Lost connections and sessions do not end the wait. The client that has no connection while it is opened and
   * deleted does not learn of that, and waits for the next latch at this path.
   *
   * @throws AbortedError, TimeoutError
   */
  async wait(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'wait');
    // Not older than the call: the latch that was there before may have been opened, and deleted.
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
      // Of one that began at 0 the maker may not have come to `open`, in older programs.
      if (read === 'linearizable' && (await this.#read(attempt)).left === 0) return;
      read = 'local';
      attempt.obstacle = 'it is not counted down';
      await attempt.any([noted]);
      // A client that was faster may have deleted the latch already.
      if (wasOpened) return;
    }
  }

  /** Makes it where it is missing. */
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
        // Another client has made it, and says where it begins; or an earlier attempt of ours has.
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
