import { BadArgumentsError, type CallOptions, type Client, joinPath, NoNodeError, nameOf } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { keepPlace } from '../kernel/contender.ts';
import { nullIfMissing } from '../kernel/failures.ts';
import { Holding } from '../kernel/holding.ts';
import type { SharedLockOptions } from '../kernel/options.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';
import { type Margin, NO_MARGIN, sharedLockSettings } from '../kernel/settings.ts';
import { type Leases, makeLeases } from './leases.ts';
import type { Lock } from './lock.ts';
import { Mutex } from './mutex.ts';

export interface SemaphoreOptions extends SharedLockOptions {
  /** The maximum number of leases. All users of the semaphore must use the same number. */
  readonly leasesMax: number;
}

/** A lease holder, or the next waiter. */
export interface LeaseHolder {
  readonly path: string;
  readonly data: Uint8Array;
  readonly sessionId: bigint;
  readonly token: bigint;
  /** By the clock of the servers. */
  readonly since: Date;
}

/**
 * A number of leases, granted in the order of the requests. A lease ends when it is released, or with the session of
 * its holder.
 *
 * A client that wants one first acquires a lock; only the holder of the lock looks at the leases and waits for a free
 * one. So one waiter wakes when a lease is released, and the others wait in the line of the lock.
 *
 * @example
 * const semaphore = new Semaphore(client, '/limits/reports', { leasesMax: 3 });
 * await using lease = await semaphore.acquire({ timeoutMs: 10_000 });
 */
export class Semaphore {
  readonly path: string;
  readonly #client: Client;
  readonly #leasesMax: number;
  readonly #marginMs: Margin;
  readonly #mutex: Mutex;
  readonly #leases: Leases;

  constructor(client: Client, path: string, options: SemaphoreOptions) {
    const { leasesMax } = options;
    const settings = sharedLockSettings(options);
    if (!Number.isSafeInteger(leasesMax) || leasesMax < 1) {
      throw new BadArgumentsError({
        operation: 'Semaphore',
        path,
        detail: `leasesMax is at least 1, not ${leasesMax}`,
      });
    }
    this.path = path;
    this.#client = client;
    this.#leasesMax = leasesMax;
    this.#marginMs = settings.marginMs;
    this.#leases = makeLeases(path, { ...settings, leasesMax });
    this.#mutex = new Mutex(client, this.#leases.lockPath, {
      ...settings,
      // The caller holds only the lease.
      marginMs: NO_MARGIN,
      data: settings.layout === 'kazoo' ? settings.data : undefined,
    });
  }

  /** @throws AbortedError, TimeoutError: nothing is held, and nothing of us is left in the line */
  async acquire(options: CallOptions = {}): Promise<Holding> {
    const attempt = this.#attempt('acquire', options);
    return attempt.run(async () => {
      for (;;) {
        await this.#leases.prepare(attempt);
        const lease = await this.#awaitWithLock(attempt);
        if (lease !== null) return lease;
      }
    });
  }

  /**
   * A lease if one is free; otherwise null. Null, too, while another client tries or is about to take one: of two that
   * try concurrently for the last one, possibly none gets it.
   *
   * @throws AbortedError, TimeoutError: nothing is held
   * @throws NoAuthError when the service refuses to delete what the try has created: it stays until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Holding | null> {
    const attempt = this.#attempt('tryAcquire', options);
    return attempt.run(async () => {
      for (;;) {
        await this.#leases.prepare(attempt);
        const lease = await (this.#leases.countsOwn ? this.#tryBesideLock(attempt) : this.#tryWithLock(attempt));
        if (lease !== 'gone') return lease;
        await attempt.reconnect();
      }
    });
  }

  /** The lease holders; with Curator's layout also the next waiter. In no order. */
  async holders(options: CallOptions = {}): Promise<readonly LeaseHolder[]> {
    const { path } = this.#leases;
    try {
      const { children } = await this.#client.children(path, { ...options, read: 'linearizable' });
      const found = await Promise.all(children.map((name) => this.#holder(joinPath(path, name), options)));
      return found.filter((holder) => holder !== null);
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  }

  /** @returns 'gone' when another client has deleted what was prepared */
  async #tryWithLock(attempt: Attempt): Promise<Holding | null | 'gone'> {
    const lock = await this.#mutex.tryAcquireWithin(attempt);
    if (lock === null) return null;
    let lease: Holding | null | 'gone' = null;
    let released = Promise.resolve();
    try {
      const names = await this.#list(attempt);
      if (names === null) lease = 'gone';
      else if (names.length < this.#leasesMax) lease = await this.#createLast(lock, attempt);
    } finally {
      // Without the caller's deadline: the lock has to be released even when that has passed.
      released = lock.release();
    }
    try {
      await attempt.waitFor(released);
      return lease;
    } catch (error) {
      // The caller never gets it.
      if (lease instanceof Holding) void lease.release();
      throw error;
    }
  }

  /**
   * Without the lock: creates a lease, and deletes it if there are too many. A client that keeps its lease has seen all
   * older ones, and not too many: so there never are too many.
   */
  async #tryBesideLock(attempt: Attempt): Promise<Holding | null | 'gone'> {
    const own = await this.#leases.create(attempt);
    const turn = await keepPlace(own, attempt, async () => {
      const names = await this.#list(attempt);
      if (names === null || own.lost.aborted) return 'gone';
      const isFree = names.length <= this.#leasesMax && names.includes(nameOf(own.path));
      return isFree && this.#client.state !== 'read-only' ? 'ours' : 'not-ours';
    });
    if (turn === 'ours') return this.#hold(own);
    return turn === 'gone' ? 'gone' : null;
  }

  async #awaitWithLock(attempt: Attempt): Promise<Holding | null> {
    const lock = await this.#mutex.acquireWithin(attempt);
    try {
      return await this.#await(lock, attempt);
    } finally {
      // The next one may look at the leases; whether the lock's deletion is confirmed does not concern our lease.
      void lock.release();
    }
  }

  /** With the lock: waits for a lease. @returns null when lock or lease was lost meanwhile */
  async #await(lock: Lock, attempt: Attempt): Promise<Holding | null> {
    if (!this.#leases.countsOwn) {
      return (await this.#awaitRoom(lock, null, attempt)) === 'gone' ? null : this.#createLast(lock, attempt);
    }
    const own = await this.#leases.create(attempt);
    const turn = await keepPlace(own, attempt, () => this.#awaitRoom(lock, own, attempt));
    return turn === 'ours' ? this.#hold(own) : null;
  }

  /** @param own our lease, if it is created before there is room for it */
  async #awaitRoom(lock: Lock, own: OwnedZnode | null, attempt: Attempt): Promise<'ours' | 'gone'> {
    const { path } = this.#leases;
    const othersMax = own === null ? this.#leasesMax - 1 : this.#leasesMax;
    try {
      while (!lock.signal.aborted && own?.lost.aborted !== true) {
        using listed = await attempt.through((call) => this.#client.children(path, { ...call, watch: true }));
        const { children } = listed;
        const isThere = own === null || children.includes(nameOf(own.path));
        // Lost without the signal having reported it yet, as on a server without a quorum, where leases are not
        // granted.
        if (!lock.isHeld || !isThere) return 'gone';
        if (children.length <= othersMax) return 'ours';
        const holders = children.filter((name) => own === null || name !== nameOf(own.path));
        attempt.obstacle = `all leases are held: ${holders.map((name) => joinPath(path, name)).join(', ')}`;
        await attempt.any([listed.changed], { lost: lock.signal });
      }
    } catch (error) {
      // The parent of all leases was deleted, and with it ours.
      if (!(error instanceof NoNodeError)) throw error;
    }
    return 'gone';
  }

  /**
   * With the lock, when a lease is free: no other client creates one meanwhile, as long as lock and lease are of one
   * session.
   */
  async #createLast(lock: Lock, attempt: Attempt): Promise<Holding | null> {
    const own = await this.#leases.create(attempt);
    if (own.stat.ephemeralOwner === lock.sessionId && lock.isHeld) return this.#hold(own);
    void removeZnode(this.#client, own.path, own.stat.ephemeralOwner);
    return null;
  }

  /** The names of the leases; null when their parent was deleted. */
  async #list(attempt: Attempt): Promise<readonly string[] | null> {
    const { path } = this.#leases;
    const listed = await attempt.through((call) => this.#client.children(path, call).catch(nullIfMissing));
    return listed?.children ?? null;
  }

  #hold(own: OwnedZnode): Holding {
    return new Holding(this.#client, own, { marginMs: this.#marginMs });
  }

  async #holder(path: string, options: CallOptions): Promise<LeaseHolder | null> {
    try {
      const { data, stat } = await this.#client.get(path, options);
      return { path, data, sessionId: stat.ephemeralOwner, token: stat.czxid, since: stat.created };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  #attempt(method: string, options: CallOptions): Attempt {
    const about = { operation: `Semaphore.${method}`, path: this.path };
    return new Attempt(this.#client, options, about, { awaitsQuorum: true });
  }
}
