import { AbortedError, BadArgumentsError, type CallOptions, type Client, onAbort } from '@meerkat/client';
import { firstAbortOf } from '../kernel/abort.ts';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreRejection } from '../kernel/background.ts';
import { type Guard, Guarded } from '../kernel/guarded.ts';
import type { Held } from '../kernel/holding.ts';
import { Mutex, type MutexOptions } from './mutex.ts';

/** A part of a multi-lock: a mutex, or one side of a read/write lock. */
export interface Lockable {
  readonly path: string;
  acquire(options?: CallOptions): Promise<Held & Guard>;
  tryAcquire(options?: CallOptions): Promise<(Held & Guard) | null>;
}

/**
 * Several locks as one: all of them are held, or none. They are acquired in the order of their paths, whatever the
 * order of the arguments, so that multi-locks do not deadlock.
 *
 * @example
 * const both = new MultiLock(client, ['/locks/from', '/locks/to']);
 * await using lock = await both.acquire({ timeoutMs: 10_000 });
 * await lock.guarded.commit((transaction) => transaction.set('/from', '70').set('/to', '30'));
 */
export class MultiLock {
  readonly #client: Client;
  readonly #locks: readonly Lockable[];

  /**
   * @param locks paths of mutexes, or locks of this client; a duplicate is acquired once
   * @throws BadArgumentsError for two locks of one path, which would wait for each other
   */
  constructor(client: Client, locks: readonly (string | Lockable)[], options: MutexOptions = {}) {
    this.#client = client;
    this.#locks = [...new Set(locks)]
      .map((lock) => (typeof lock === 'string' ? new Mutex(client, lock, options) : lock))
      .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
    for (const [i, { path }] of this.#locks.entries()) {
      if (path !== this.#locks[i + 1]?.path) continue;
      const detail = 'two locks of this path would wait for each other; give the path twice, or one lock';
      throw new BadArgumentsError({ operation: 'MultiLock', path, detail });
    }
  }

  /**
   * Waits for all of them. When one is lost while another is awaited, those that were acquired are released, and it
   * starts again with the first: acquiring only the lost one would violate the order.
   *
   * @throws AbortedError, TimeoutError: none of them is held
   */
  async acquire(options: CallOptions = {}): Promise<Held> {
    const attempt = this.#attempt('acquire', options);
    for (;;) {
      const held = await this.#takeAll(attempt, options.signal);
      if (held.length === this.#locks.length && held.every(({ isHeld }) => isHeld)) {
        return new HeldTogether(this.#client, held);
      }
      void releaseAll(held);
      await attempt.reconnect();
    }
  }

  /** @returns those that were acquired before one of them was lost */
  async #takeAll(attempt: Attempt, givenUp: AbortSignal | undefined): Promise<readonly (Held & Guard)[]> {
    const held: (Held & Guard)[] = [];
    try {
      for (const lock of this.#locks) held.push(await lock.acquire(whileHeld(held, attempt.next())));
    } catch (error) {
      const isLost = error instanceof AbortedError && held.some(({ signal }) => signal.aborted);
      if (!isLost || givenUp?.aborted === true) {
        void releaseAll(held);
        throw error;
      }
    }
    return held;
  }

  /**
   * All of them if none is held or awaited by another client; otherwise null.
   *
   * @throws AbortedError, TimeoutError: none of them is held
   * @throws NoAuthError when the service refuses to delete one: others wait for it until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Held | null> {
    const attempt = this.#attempt('tryAcquire', options);
    const held: (Held & Guard)[] = [];
    try {
      if (await this.#tryAll(held, attempt)) return new HeldTogether(this.#client, held);
    } catch (error) {
      void releaseAll(held);
      throw error;
    }
    const returned = releaseAll(held);
    await attempt.run(() => attempt.waitFor(returned));
    return null;
  }

  /** @returns false when only those in `held` are held */
  async #tryAll(held: (Held & Guard)[], attempt: Attempt): Promise<boolean> {
    for (const lock of this.#locks) {
      const one = await lock.tryAcquire(attempt.next());
      if (one === null) return false;
      held.push(one);
    }
    // One may have been lost while the next one was tried.
    return held.every(({ isHeld }) => isHeld);
  }

  #attempt(method: string, options: CallOptions): Attempt {
    return new Attempt(this.#client, options, { operation: `MultiLock.${method}`, path: this.#locks[0]?.path ?? null });
  }
}

/** The caller's limits, and no longer than all that is held by now is. */
function whileHeld(held: readonly Held[], call: CallOptions): CallOptions {
  const signals = held.map(({ signal }) => signal);
  if (signals.length === 0) return call;
  return { ...call, signal: firstAbortOf(call.signal === undefined ? signals : [call.signal, ...signals]) };
}

/** In reverse order. Nothing happens when the promise is not awaited. */
function releaseAll(held: readonly Held[]): Promise<unknown> {
  return ignoreRejection(Promise.all([...held].reverse().map((lock) => lock.release())));
}

/** It ends as soon as one of them does. */
class HeldTogether implements Held {
  readonly guarded: Guarded;
  readonly #held: readonly (Held & Guard)[];
  readonly #end = new AbortController();

  constructor(client: Client, held: readonly (Held & Guard)[]) {
    this.#held = held;
    this.guarded = new Guarded(client, held);
    for (const { signal } of held) onAbort(signal, () => this.#end.abort(signal.reason));
  }

  /**
   * The largest of their tokens: each is larger than all earlier ones of its lock, so the largest is larger than that
   * of every earlier holder of the same locks.
   */
  get token(): bigint {
    let largest = 0n;
    for (const { token } of this.#held) if (token > largest) largest = token;
    return largest;
  }

  get isHeld(): boolean {
    return this.#held.every(({ isHeld }) => isHeld);
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  release(options?: CallOptions): Promise<void> {
    // As with one lock, nothing happens when the promise is not awaited.
    return ignoreRejection(this.#releaseAll(options));
  }

  async #releaseAll(options?: CallOptions): Promise<void> {
    const all = await Promise.allSettled(this.#held.map((lock) => lock.release(options)));
    for (const each of all) if (each.status === 'rejected') throw each.reason;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}
