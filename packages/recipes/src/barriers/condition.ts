import {
  type About,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  SessionLostError,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { asDoubtful } from '../kernel/doubt.ts';
import { isLoss, isPassing } from '../kernel/failures.ts';
import { lapse } from '../kernel/guarded.ts';
import type { Held } from '../kernel/holding.ts';
import { makeMark } from '../kernel/layout.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { createOwned, type OwnedZnode } from '../kernel/owned-znode.ts';
import { compareBySequence, sequenceOf, withoutSequence } from '../kernel/sequence.ts';

/*
 * A condition variable: waiting, under a lock, for something to change that others change under the same lock.
 *
 *     /orders-changed
 *       _c_5b2f…-waiter-0000000007    waits; ephemeral. The client that notifies deletes it
 *       _c_0d1e…-waiter-0000000008
 *
 * A waiter creates its znode while it holds the lock, and only then gives the lock back. The client that has the lock after it sees
 * the znode, so no notification passes between the two. Everyone watches its own znode: one notification wakes one.
 *
 * A wait may also end without a notification: when the session was lost, it cannot be known whether the znode was deleted
 * before. So a caller that waits looks again, under the lock, at what it waits for. A waiter that has given up when it was
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
   * @throws AbortedError, TimeoutError, ClosedError: the lock is not held, also where the time was up before anything was
   *   waited for; NotHeldError when `lock` was not
   */
  async wait(lock: L, options: CallOptions = {}): Promise<L> {
    const about = { operation: 'Condition.wait', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    if (!lock.isHeld) throw notHeld(this.path, lock);
    const mark = makeMark('curator', this.#client.surroundings.random);
    try {
      const waiter = await this.#stand(lock, mark, attempt);
      await lock.release(attempt.next());
      const isNotified = waiter !== null && (await this.#awaitNotification(waiter, attempt));
      // It would be notified instead of those who wait, and of us when we come again.
      if (!isNotified) await this.#remove(mark, attempt);
      return await this.#lockable.acquire(attempt.next());
    } catch (error) {
      lock.release().catch(() => {});
      void this.#giveUp(mark);
      throw asDoubtful(error, about);
    }
  }

  /**
   * Wakes the one that has waited longest; it continues when it gets the lock.
   *
   * @returns@returns whether there was a waiter
   * @throws NotHeldError when `lock` is not held; SessionLostError when the session ended while a waiter was woken
   */
  async notify(lock: L, options: CallOptions = {}): Promise<boolean> {
    const about = { operation: 'Condition.notify', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    let isDoubtful = false;
    try {
      for (const name of await this.#waiters(attempt)) {
        const waking = await this.#wake(name, lock, attempt, about, () => {
          isDoubtful = true;
        });
        // One that has gone by itself has not been notified, and passes nothing on: then another one has to be woken.
        if (waking === 'woken') return true;
      }
    } catch (error) {
      throw isDoubtful ? asDoubtful(error, about) : error;
    }
    if (!lock.isHeld) throw isDoubtful ? lostInDoubt(about) : notHeld(this.path, lock);
    return isDoubtful;
  }

  /** Wakes all that wait. @returns how many there were @throws NotHeldError when `lock` is not held */
  async notifyAll(lock: L, options: CallOptions = {}): Promise<number> {
    const about = { operation: 'Condition.notifyAll', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    const names = await this.#waiters(attempt);
    const wakings = await Promise.all(names.map((name) => this.#wake(name, lock, attempt, about))).catch(
      (error: unknown) => {
        throw asDoubtful(error, about);
      },
    );
    if (!lock.isHeld) throw notHeld(this.path, lock);
    return wakings.filter((waking) => waking !== 'gone').length;
  }

  /**
   * Makes our znode while we hold the lock. Each attempt under the same mark: of one that is in doubt a notifier may take the
   * znode instead of a later one, which its removal then takes, too. So we wake once too often, and never miss a notification.
   *
   * @returns null when the lock was lost before that was certain: a client may have notified before it was there
   */
  async #stand(lock: L, mark: string, attempt: Attempt): Promise<OwnedZnode | null> {
    while (lock.isHeld) {
      try {
        const options = { data: '', sequential: true, makeMark: () => mark };
        const waiter = await createOwned(this.#client, joinPath(this.path, MARKER), options, attempt.next());
        return (await this.#isLockThere(lock, attempt)) ? waiter : null;
      } catch (error) {
        if (error instanceof NoNodeError) {
          await attempt.through((call) => this.#client.ensurePath(this.path, { ...call, mode: 'container' }));
        } else if (isPassing(error)) await attempt.reconnect();
        else throw error;
      }
    }
    return null;
  }

  /** Asks the service: of a lock whose znode a client has deleted we hear later than of the creation of ours. */
  async #isLockThere(lock: L, attempt: Attempt): Promise<boolean> {
    try {
      await attempt.through((call) => lock.guarded.commit((transaction) => transaction, call));
      return lock.isHeld;
    } catch (error) {
      if (error instanceof NotHeldError) return false;
      throw error;
    }
  }

  /** @returns true when the znode is gone; false when its session may be over, and that cannot be known */
  async #awaitNotification({ path, lost }: OwnedZnode, attempt: Attempt): Promise<boolean> {
    while (!lost.aborted) {
      using own = await attempt.through((call) => this.#client.exists(path, { ...call, watch: true }));
      if (own.stat === null) return true;
      await attempt.any([own.changed], { lost });
    }
    return false;
  }

  /** @returns whether our znode was still there: no client has notified it */
  #remove(mark: string, attempt: Attempt): Promise<boolean> {
    return attempt.through(async (call) => {
      const own = (await this.#waiters(attempt)).find((name) => name.startsWith(mark));
      if (own === undefined) return false;
      try {
        await this.#client.delete(joinPath(this.path, own), call);
        return true;
      } catch (error) {
        // Perhaps it was an earlier attempt of ours: then a waiter wakes for nothing, and waits again.
        if (error instanceof NoNodeError) return false;
        throw error;
      }
    });
  }

  /** The client that goes away with a notification leaves it to another one. Never rejects. */
  async #giveUp(mark: string): Promise<void> {
    const attempt = new Attempt(this.#client, {}, { operation: 'Condition.wait', path: this.path });
    try {
      if (await this.#remove(mark, attempt)) return;
      for (const name of await this.#waiters(attempt)) {
        const isWoken = await attempt
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

  async #waiters(attempt: Attempt): Promise<string[]> {
    try {
      const { children } = await attempt.through((call) =>
        this.#client.children(this.path, { ...call, read: 'linearizable' }),
      );
      return children.filter(isWaiter).sort(compareBySequence);
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  }

  /** @returns 'doubtful' when it is gone, and may have been before it was woken */
  async #wake(
    name: string,
    lock: L,
    attempt: Attempt,
    about: About,
    onDoubt = (): void => {},
  ): Promise<'woken' | 'gone' | 'doubtful'> {
    let isDoubtful = false;
    for (;;) {
      try {
        await lock.guarded.delete(joinPath(this.path, name), attempt.next());
        return 'woken';
      } catch (error) {
        if (error instanceof NoNodeError) return isDoubtful ? 'doubtful' : 'gone';
        if (error instanceof ZooKeeperError && error.outcome === 'unknown') {
          isDoubtful = true;
          onDoubt();
        }
        // NotHeldError says that nothing has happened.
        if (isDoubtful && error instanceof NotHeldError) throw lostInDoubt(about, error);
        if (!isLoss(error)) throw error;
        await attempt.reconnect();
      }
    }
  }
}

function isWaiter(name: string): boolean {
  return sequenceOf(name) !== null && withoutSequence(name).endsWith(MARKER);
}

function notHeld(path: string, lock: Held): NotHeldError {
  return lapse({ path, token: lock.token, signal: lock.signal });
}

function lostInDoubt(about: About, cause?: Error): SessionLostError {
  const detail = 'the lock was lost before it was known whether a waiter was woken';
  return new SessionLostError({ ...about, outcome: 'unknown', detail, cause });
}

const MARKER = 'waiter-';
