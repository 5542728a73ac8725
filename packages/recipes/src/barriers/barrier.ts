import type { CallOptions, Client } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreExisting, ignoreMissing } from '../kernel/failures.ts';

/**
 * A barrier: a znode. While it exists, all callers of `wait` block; when it is deleted, all continue.
 *
 * Same layout as Curator's DistributedBarrier and kazoo's Barrier.
 *
 * @example
 * const barrier = new Barrier(client, '/migration');
 * await barrier.set();
 * // the others: await barrier.wait();
 * await barrier.remove();
 */
export class Barrier {
  readonly path: string;
  readonly #client: Client;

  constructor(client: Client, path: string) {
    this.#client = client;
    this.path = path;
  }

  /**
   * Sets the barrier; it may be set already. Returns when it is certain that it was set at some moment of the call.
   * When a reply is lost and the barrier is removed meanwhile, it is set again.
   */
  async set(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'set');
    await attempt.run(() => attempt.apply((call) => this.#create(call)));
  }

  /**
   * Removes the barrier, which releases all waiters; it may be gone already. A barrier that is set while this is in
   * progress may stay or be the one that is removed.
   */
  async remove(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'remove');
    let standing: bigint | null = null;
    const remove = async (call: CallOptions): Promise<void> => {
      const stat = await this.#client.exists(this.path, { ...call, read: 'linearizable' });
      // An attempt without a reply has removed it, and this is another client's barrier.
      if (stat === null || (standing !== null && stat.czxid !== standing)) return;
      standing = stat.czxid;
      await this.#client.delete(this.path, call).catch(ignoreMissing);
    };
    await attempt.run(() => attempt.apply(remove));
  }

  /** Whether the barrier is set. */
  async isSet(options: CallOptions = {}): Promise<boolean> {
    const attempt = this.#attempt(options, 'isSet');
    const stat = await attempt.through((call) => this.#client.exists(this.path, { ...call, read: 'linearizable' }));
    return stat !== null;
  }

  /**
   * Waits until the barrier is removed; returns at once when it is not set. Survives lost connections and sessions.
   *
   * A barrier that is removed and set again releases everyone who waited when it was removed.
   *
   * @throws AbortedError, TimeoutError
   */
  async wait(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'wait');
    // Not older than the call: a barrier that was set before it must block us.
    let read: 'linearizable' | 'local' = 'linearizable';
    let standing: bigint | null = null;
    for (;;) {
      using seen = await attempt.through((call) => this.#client.exists(this.path, { ...call, watch: true, read }));
      if (seen.stat === null) return;
      standing ??= seen.stat.czxid;
      if (seen.stat.czxid !== standing) return;
      attempt.obstacle = 'the barrier stands';
      await attempt.any([seen.changed]);
      read = 'local';
    }
  }

  /** Creates the znode; it may exist already. */
  async #create(call: CallOptions): Promise<void> {
    await this.#client.createParents(this.path, '', { ...call, parentMode: 'container' }).catch(ignoreExisting);
  }

  #attempt(options: CallOptions, method: string): Attempt {
    return new Attempt(this.#client, options, { operation: `Barrier.${method}`, path: this.path });
  }
}
