import { type CallOptions, type Client, NodeExistsError } from '@meerkat/client';
import { Uncertainty } from '../doubt.ts';
import { asGivenUp } from '../locks/contender.ts';
import { Wait } from '../wait.ts';
import { ignoreMissing } from './ready.ts';

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

  /**
   * Puts the barrier up; it may be there already. Returns when it is certain that it stood at some moment of the call. When a
   * reply is lost and somebody removes it meanwhile, it is put up again.
   */
  async set(options: CallOptions = {}): Promise<void> {
    await this.#change('set', options, async (call) => {
      try {
        await this.#client.createParents(this.path, '', { ...call, parentMode: 'container' });
      } catch (error) {
        if (!(error instanceof NodeExistsError)) throw error;
      }
    });
  }

  /**
   * Lets everybody go on; the barrier may be gone already. One that is put up while this goes on may stay, or be the one that is
   * removed.
   */
  async remove(options: CallOptions = {}): Promise<void> {
    let standing: bigint | null = null;
    await this.#change('remove', options, async (call) => {
      const stat = await this.#client.exists(this.path, { ...call, read: 'linearizable' });
      // An attempt of which no answer came has removed it, and this is somebody's next one.
      if (stat === null || (standing !== null && stat.czxid !== standing)) return;
      standing = stat.czxid;
      await this.#client.delete(this.path, call).catch(ignoreMissing);
    });
  }

  /** Attempts it until it is answered. An error that ends it says whether one of the attempts may have been applied. */
  async #change(method: string, options: CallOptions, attempt: (call: CallOptions) => Promise<void>): Promise<void> {
    const about = { operation: `Barrier.${method}`, path: this.path };
    const uncertainty = new Uncertainty();
    try {
      await new Wait(this.#client, options, about).through(async (call) => {
        try {
          await attempt(call);
        } catch (error) {
          throw uncertainty.noted(error);
        }
      });
    } catch (error) {
      throw uncertainty.told(error, about);
    }
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
    let read: 'linearizable' | 'local' = 'linearizable';
    let standing: bigint | null = null;
    for (;;) {
      using seen = await wait.through((call) => this.#client.exists(this.path, { ...call, watch: true, read }));
      if (seen.stat === null) return;
      standing ??= seen.stat.czxid;
      if (seen.stat.czxid !== standing) return;
      await wait.any([seen.changed]).catch((error: unknown) => {
        const about = { operation: 'Barrier.wait', path: this.path };
        throw asGivenUp(error, about, this.#client, 'the barrier stands');
      });
      read = 'local';
    }
  }

  #wait(options: CallOptions, operation: string): Wait {
    return new Wait(this.#client, options, { operation, path: this.path });
  }
}
