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
 * A condition variable: waits, under a lock, for a change that others make under the same lock.
 *
 *     /orders-changed
 *       _c_5b2f…-waiter-0000000007    a waiter; ephemeral. The notifying client deletes it
 *       _c_0d1e…-waiter-0000000008
 *
 * A waiter creates its znode while it holds the lock, and only then releases the lock. The next holder therefore sees
 * the znode, and no notification is lost in between. Each waiter watches its own znode: one notification wakes one
 * waiter.
 *
 * A wait may also end without a notification: after session loss it cannot be known whether the znode had been deleted
 * before. So the caller checks its condition again, under the lock. A waiter that has cancelled when it is notified
 * passes the notification on to another one.
 */

/** What a condition belongs to: a mutex, or anything else that can be acquired. */
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
   * Releases the lock, waits to be notified, and acquires the lock again. May return without a notification: call it in
   * a loop that checks the condition.
   *
   * @param lock the only handle of it
   * @returns the lock, with a new token
   * @throws AbortedError, TimeoutError, ClosedError: the lock is not held, also when the call had ended before the
   *   wait; NotHeldError when `lock` was not held
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
      // Otherwise it would be notified instead of a waiting client, or of our own next call.
      if (!isNotified) await this.#remove(mark, attempt);
      return await this.#lockable.acquire(attempt.next());
    } catch (error) {
      lock.release().catch(() => {});
      void this.#abandon(mark);
      throw asDoubtful(error, about);
    }
  }

  /**
   * Wakes the client that has waited longest; it continues when it has acquired the lock.
   *
   * @returns whether there was a waiter
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
        // A waiter that left by itself was not notified and passes nothing on: wake another one.
        if (waking === 'woken') return true;
      }
    } catch (error) {
      throw isDoubtful ? asDoubtful(error, about) : error;
    }
    if (!lock.isHeld) throw isDoubtful ? lostInDoubt(about) : notHeld(this.path, lock);
    return isDoubtful;
  }

  /** Wakes all waiters. @returns their number @throws NotHeldError when `lock` is not held */
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
   * Creates our znode while we hold the lock, each attempt under the same mark. A notifier may delete the znode of an
   * attempt in doubt, and our removal then the one of a later attempt. That causes a spurious wakeup at worst, never a
   * lost one.
   *
   * @returns null when the lock was lost before that was certain: another client may have notified before the znode
   *   existed
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

  /** Asks the service: we learn of the deletion of the lock's znode later than of the creation of ours. */
  async #isLockThere(lock: L, attempt: Attempt): Promise<boolean> {
    try {
      await attempt.through((call) => lock.guarded.commit((transaction) => transaction, call));
      return lock.isHeld;
    } catch (error) {
      if (error instanceof NotHeldError) return false;
      throw error;
    }
  }

  /** @returns true when the znode is gone; false when its session may be over, so that this cannot be known */
  async #awaitNotification({ path, lost }: OwnedZnode, attempt: Attempt): Promise<boolean> {
    while (!lost.aborted) {
      using own = await attempt.through((call) => this.#client.exists(path, { ...call, watch: true }));
      if (own.stat === null) return true;
      await attempt.any([own.changed], { lost });
    }
    return false;
  }

  /** @returns whether our znode was still there, so that no client has notified it */
  #remove(mark: string, attempt: Attempt): Promise<boolean> {
    return attempt.through(async (call) => {
      const own = (await this.#waiters(attempt)).find((name) => name.startsWith(mark));
      if (own === undefined) return false;
      try {
        await this.#client.delete(joinPath(this.path, own), call);
        return true;
      } catch (error) {
        // Perhaps an earlier attempt of ours deleted it: a spurious wakeup; the caller waits again.
        if (error instanceof NoNodeError) return false;
        throw error;
      }
    });
  }

  /** Passes a notification that came too late on to another waiter. Never rejects. */
  async #abandon(mark: string): Promise<void> {
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
      // The client is closed.
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

  /** @returns 'doubtful' when the znode is gone, and may have been gone before it was woken */
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
        // NotHeldError promises that nothing has happened.
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
