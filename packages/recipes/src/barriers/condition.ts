import { type CallOptions, type Client, joinPath, NoNodeError } from '@meerkat/client';
import type { Held } from '../locks/holding.ts';
import { NotHeldError } from '../locks/not-held-error.ts';
import { removeZnode } from '../locks/removal.ts';
import { type OwnEphemeral, standOwn } from '../own-ephemeral.ts';
import { compareBySequence, sequenceOf, withoutSequence } from '../sequence.ts';
import { isLoss, Wait } from '../wait.ts';

/*
 * A condition variable: waiting, under a lock, for something to change that others change under the same lock.
 *
 *     /orders-changed
 *       _c_5b2f…-waiter-0000000007    waits; ephemeral. Whoever notifies deletes it
 *       _c_0d1e…-waiter-0000000008
 *
 * A waiter makes its znode while it holds the lock, and only then gives the lock back. Whoever has the lock after it sees
 * the znode, so no notification passes between the two. Everybody watches its own znode: one notification wakes one.
 *
 * A wait may also end without a notification: when the session was lost, nobody can tell whether the znode was deleted
 * before. So whoever waits looks again, under the lock, at what it waits for. A waiter that has given up when it was
 * notified passes the notification on to another one.
 */

/** What a condition belongs to: a mutex, or whatever else is acquired. */
export interface Acquirable<L extends Held> {
  acquire(options?: CallOptions): Promise<L>;
}

/**
 * Lets holders of a lock wait for each other.
 *
 * @example
 * const notEmpty = new Condition(client, '/stock-changed', mutex);
 * let lock = await mutex.acquire();
 * while ((await readStock()) === 0) lock = await notEmpty.wait(lock);
 * // the others, under the lock: await writeStock(5); await notEmpty.notify(lock);
 */
export class Condition<L extends Held> {
  readonly path: string;
  readonly #client: Client;
  readonly #lockable: Acquirable<L>;

  constructor(client: Client, path: string, lockable: Acquirable<L>) {
    this.path = path;
    this.#client = client;
    this.#lockable = lockable;
  }

  /**
   * Gives the lock back, waits to be notified, and acquires the lock again. May return without a notification: wait in a
   * loop, until what you wait for is true.
   *
   * @param lock the only handle of it
   * @returns the lock, with a new token
   * @throws AbortedError, TimeoutError: the lock is not held; NotHeldError when `lock` was not
   */
  async wait(lock: L, options: CallOptions = {}): Promise<L> {
    const wait = new Wait(this.#client, options, { operation: 'Condition.wait', path: this.path });
    if (!lock.isHeld) throw notHeld(this.path, lock);
    const waiter = await standOwn(this.#client, this.path, MARKER, true, wait);
    let isNotified = false;
    try {
      await lock.release();
      await this.#awaitNotification(waiter, wait);
      isNotified = true;
      return await this.#lockable.acquire(wait.next());
    } catch (error) {
      void this.#giveUp(waiter, isNotified);
      throw error;
    } finally {
      if (isNotified) void removeZnode(this.#client, waiter.path, waiter.sessionId);
    }
  }

  /**
   * Wakes the one that has waited longest; it goes on when it gets the lock.
   *
   * @returns whether somebody waited
   * @throws NotHeldError when `lock` is not held
   */
  async notify(lock: L, options: CallOptions = {}): Promise<boolean> {
    const wait = new Wait(this.#client, options, { operation: 'Condition.notify', path: this.path });
    for (const name of await this.#waiters(wait)) {
      if (await this.#wake(name, lock, wait)) return true;
    }
    if (!lock.isHeld) throw notHeld(this.path, lock);
    return false;
  }

  /** Wakes all that wait. @returns how many there were @throws NotHeldError when `lock` is not held */
  async notifyAll(lock: L, options: CallOptions = {}): Promise<number> {
    const wait = new Wait(this.#client, options, { operation: 'Condition.notifyAll', path: this.path });
    const names = await this.#waiters(wait);
    const woken = await Promise.all(names.map((name) => this.#wake(name, lock, wait)));
    if (!lock.isHeld) throw notHeld(this.path, lock);
    return woken.filter(Boolean).length;
  }

  /** Ends when the znode is gone, or it cannot be told. */
  async #awaitNotification({ path, lost }: OwnEphemeral, wait: Wait): Promise<void> {
    while (!lost.aborted) {
      const { stat, changed } = await wait.through((call) => this.#client.exists(path, { ...call, watch: true }));
      if (stat === null) return;
      await wait.any([changed], { lost });
    }
  }

  /** Whoever goes away with a notification leaves it to another one. Never rejects. */
  async #giveUp({ path, sessionId }: OwnEphemeral, isNotified: boolean): Promise<void> {
    const client = this.#client;
    const wait = new Wait(client, {}, { operation: 'Condition.wait', path: this.path });
    try {
      if (!isNotified && client.session?.id === sessionId) {
        isNotified = await wait.through(async (call) => {
          try {
            await client.delete(path, call);
            return false;
          } catch (error) {
            // Perhaps it was an earlier attempt of ours: then somebody wakes for nothing, and waits again.
            if (error instanceof NoNodeError) return true;
            throw error;
          }
        });
      }
      if (!isNotified) return;
      for (const name of await this.#waiters(wait)) {
        const isWoken = await wait
          .through((call) => this.#client.delete(joinPath(this.path, name), call))
          .then(
            () => true,
            () => false,
          );
        if (isWoken) return;
      }
    } catch {
      // The client has ended.
    }
  }

  async #waiters(wait: Wait): Promise<string[]> {
    try {
      const { children } = await wait.through((call) =>
        this.#client.children(this.path, { ...call, read: 'linearizable' }),
      );
      return children.filter(isWaiter).sort(compareBySequence);
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  }

  /** @returns whether it waited */
  async #wake(name: string, lock: L, wait: Wait): Promise<boolean> {
    let isDoubtful = false;
    for (;;) {
      try {
        await lock.guarded.delete(joinPath(this.path, name), wait.next());
        return true;
      } catch (error) {
        // After a lost reply: it was us, or it has gone by itself, and then it does not hurt to take it for woken.
        if (error instanceof NoNodeError) return isDoubtful;
        if (!isLoss(error)) throw error;
        isDoubtful ||= error.outcome === 'unknown';
        await wait.recover();
      }
    }
  }
}

function isWaiter(name: string): boolean {
  return sequenceOf(name) !== null && withoutSequence(name).endsWith(MARKER);
}

function notHeld(path: string, lock: Held): NotHeldError {
  return new NotHeldError(path, lock.token, 'the lock of a condition was released, or its session lost');
}

const MARKER = 'waiter-';
