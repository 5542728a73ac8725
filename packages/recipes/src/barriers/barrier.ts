import { type CallOptions, type Client, NodeExistsError, NoNodeError } from '@meerkat/client';
import { Wait } from '../wait.ts';

/**
 * A barrier: a znode. While it is there, everybody waits; when it is gone, everybody goes on.
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

  /** Puts the barrier up; it may be there already. Returns when it is certain that it stood at some moment of the call. */
  async set(options: CallOptions = {}): Promise<void> {
    const wait = this.#wait(options, 'Barrier.set');
    await wait.through(async (call) => {
      try {
        await this.#client.createParents(this.path, '', { ...call, parentMode: 'container' });
      } catch (error) {
        if (!(error instanceof NodeExistsError)) throw error;
      }
    });
  }

  /** Lets everybody go on; the barrier may be gone already. */
  async remove(options: CallOptions = {}): Promise<void> {
    const wait = this.#wait(options, 'Barrier.remove');
    await wait.through(async (call) => {
      try {
        await this.#client.delete(this.path, call);
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
      }
    });
  }

  /** Whether it stands. */
  async isSet(options: CallOptions = {}): Promise<boolean> {
    const wait = this.#wait(options, 'Barrier.isSet');
    const stat = await wait.through((call) => this.#client.exists(this.path, { ...call, read: 'linearizable' }));
    return stat !== null;
  }

  /**
   * Waits until the barrier is gone; goes on at once when there is none. Lost connections and sessions do not end the wait.
   *
   * A barrier that is removed and put up again lets everybody through who waited when it was removed.
   *
   * @throws AbortedError, TimeoutError
   */
  async wait(options: CallOptions = {}): Promise<void> {
    const wait = this.#wait(options, 'Barrier.wait');
    // Not older than the call: a barrier that somebody has put up before stops us.
    const first = await wait.through((call) =>
      this.#client.exists(this.path, { ...call, watch: true, read: 'linearizable' }),
    );
    if (first.stat === null) return;
    const standing = first.stat.czxid;
    let { changed } = first;
    for (;;) {
      await wait.any([changed]);
      const seen = await wait.through((call) => this.#client.exists(this.path, { ...call, watch: true }));
      if (seen.stat === null || seen.stat.czxid !== standing) return;
      changed = seen.changed;
    }
  }

  #wait(options: CallOptions, operation: string): Wait {
    return new Wait(this.#client, options, { operation, path: this.path });
  }
}
