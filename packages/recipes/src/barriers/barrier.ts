import type { CallOptions, Client } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreExisting, ignoreMissing } from '../kernel/failures.ts';

/**
 * A barrier: a znode. While it is there, everyone waits; when it is gone, everyone continues.
 *
 * The same znode is Curator's DistributedBarrier and kazoo's Barrier.
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
   * Puts the barrier up; it may be there already. Returns when it is certain that it stood at some moment of the call. When a
   * reply is lost and it is removed meanwhile, it is put up again.
   */
  async set(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'set');
    await attempt.run(() => attempt.apply((call) => this.#create(call)));
  }

  /**
   * Lets everyone continue; the barrier may be gone already. One that is put up while this is in progress may stay, or be the one that is
   * removed.
   */
  async remove(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'remove');
    let standing: bigint | null = null;
    const remove = async (call: CallOptions): Promise<void> => {
      const stat = await this.#client.exists(this.path, { ...call, read: 'linearizable' });
      // An attempt of which no answer came has removed it, and this is a client's next one.
      if (stat === null || (standing !== null && stat.czxid !== standing)) return;
      standing = stat.czxid;
      await this.#client.delete(this.path, call).catch(ignoreMissing);
    };
    await attempt.run(() => attempt.apply(remove));
  }

  /** Whether it stands. */
  async isSet(options: CallOptions = {}): Promise<boolean> {
    const attempt = this.#attempt(options, 'isSet');
    const stat = await attempt.through((call) => this.#client.exists(this.path, { ...call, read: 'linearizable' }));
    return stat !== null;
  }

  /**
   * Waits until the barrier is gone; continues at once when there is none. Lost connections and sessions do not end the wait.
   *
   * A barrier that is removed and put up again lets everyone through who waited when it was removed.
   *
   * @throws AbortedError, TimeoutError
   */
  async wait(options: CallOptions = {}): Promise<void> {
    const attempt = this.#attempt(options, 'wait');
    // Not older than the call: a barrier that was put up before stops us.
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

  /** It may be there. */
  async #create(call: CallOptions): Promise<void> {
    await this.#client.createParents(this.path, '', { ...call, parentMode: 'container' }).catch(ignoreExisting);
  }

  #attempt(options: CallOptions, method: string): Attempt {
    return new Attempt(this.#client, options, { operation: `Barrier.${method}`, path: this.path });
  }
}
