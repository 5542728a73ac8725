import {
  type About,
  type Acl,
  BadArgumentsError,
  Budget,
  type CallOptions,
  type Client,
  type Data,
  joinPath,
  NoNodeError,
  nameOf,
  ZooKeeperError,
} from '@meerkat/client';
import { checkMs } from '../bounds.ts';
import type { Layout } from '../layout.ts';
import { asGivenUp, canBeginAnew, PAUSE_MS } from './contender.ts';
import { Holding } from './holding.ts';
import { type Leases, makeLeases, type OwnLease } from './leases.ts';
import type { Lock } from './lock.ts';
import { Mutex } from './mutex.ts';
import { type Refusal, removeZnode, throwRefusal } from './removal.ts';
import { waitFor, whenAborted } from './wait-for.ts';

export interface SemaphoreOptions {
  /** How many may hold a lease at a time. All who use the semaphore must say the same. */
  readonly leasesMax: number;
  /** With whom it is shared: Curator's InterProcessSemaphoreV2 (the default) or kazoo's Semaphore. */
  readonly layout?: Layout | undefined;
  /** What the znode of our lease tells about us. Default: nothing. */
  readonly data?: Data | undefined;
  /** Of the znodes that are made. Default: everybody everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * How long before the client's deadline what is held ends by itself, milliseconds; see docs/recipes/README.md. Default 0.
   */
  readonly marginMs?: number | undefined;
}

/** Somebody who has a lease, or waits as the next one for it. */
export interface LeaseHolder {
  readonly path: string;
  readonly data: Uint8Array;
  readonly sessionId: bigint;
  readonly token: bigint;
  /** By the clock of the servers. */
  readonly since: Date;
}

/**
 * A number of leases, given in the order of asking. A lease ends when it is given back, or with the session of its holder.
 *
 * Whoever wants one first takes a lock; only the holder of the lock looks at the leases and waits for one to become free.
 * So one waiter wakes when a lease is given back, and the others wait in the line of the lock.
 *
 * @example
 * const semaphore = new Semaphore(client, '/limits/reports', { leasesMax: 3 });
 * await using lease = await semaphore.acquire({ timeoutMs: 10_000 });
 */
export class Semaphore {
  readonly path: string;
  readonly #client: Client;
  readonly #leasesMax: number;
  readonly #marginMs: number;
  readonly #mutex: Mutex;
  readonly #leases: Leases;

  constructor(client: Client, path: string, options: SemaphoreOptions) {
    const { leasesMax, layout = 'curator', data, acl, marginMs = 0 } = options;
    checkMs('marginMs', marginMs);
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
    this.#marginMs = marginMs;
    this.#leases = makeLeases(client, path, { layout, data, acl, leasesMax });
    this.#mutex = new Mutex(client, this.#leases.lockPath, {
      layout,
      acl,
      data: layout === 'kazoo' ? data : undefined,
    });
  }

  /** @throws AbortedError, TimeoutError: nothing is held, and nobody waits for us */
  async acquire(options: CallOptions = {}): Promise<Holding> {
    const about = this.#about('acquire');
    try {
      return await this.#acquire(new Budget(options, this.#client.surroundings, about), about);
    } catch (error) {
      const obstacle = `others have the leases, of which there are ${this.#leasesMax}, or wait for them, or the service is slow`;
      throw asGivenUp(error, about, this.#client, obstacle);
    }
  }

  /**
   * A lease if one is free; otherwise null. Null, too, while somebody else tries or is about to take one: of two that try at
   * once for the last one it may be that none gets it.
   *
   * @throws AbortedError, TimeoutError: nothing is held
   * @throws NoAuthError when the service does not let what the try has made be deleted: it stands until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Holding | null> {
    const about = this.#about('tryAcquire');
    try {
      return await this.#tryAcquire(new Budget(options, this.#client.surroundings, about), about);
    } catch (error) {
      throw asGivenUp(error, about, this.#client);
    }
  }

  /** Who has a lease; with Curator's layout also the one that waits for the next. In no order. */
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

  async #acquire(budget: Budget, about: About): Promise<Holding> {
    for (;;) {
      await this.#leases.prepare(budget);
      const lock = await this.#mutex.acquire(budget.next());
      let lease: Holding | null;
      try {
        lease = await this.#await(lock, budget, about);
      } finally {
        // The next one may look at the leases; whether its deletion is confirmed does not concern ours.
        void lock.release();
      }
      if (lease !== null) return lease;
    }
  }

  /** Through lost connections and sessions: what an attempt leaves behind is removed. */
  async #tryAcquire(budget: Budget, about: About): Promise<Holding | null> {
    const { countsOwn } = this.#leases;
    for (;;) {
      await this.#leases.prepare(budget);
      try {
        return await (countsOwn ? this.#tryBesideLock(budget, about) : this.#tryWithLock(budget, about));
      } catch (error) {
        // Somebody has deleted what was prepared.
        const isDeleted = error instanceof NoNodeError && !countsOwn;
        if (!isDeleted && !canBeginAnew(error)) throw error;
        await budget.pause(PAUSE_MS);
        await this.#client.whenConnected(budget.next());
      }
    }
  }

  async #tryWithLock(budget: Budget, about: About): Promise<Holding | null> {
    const lock = await this.#mutex.tryAcquire(budget.next());
    if (lock === null) return null;
    let lease: Holding | null = null;
    let released = Promise.resolve();
    try {
      const { children } = await this.#client.children(this.#leases.path, budget.next());
      if (children.length < this.#leasesMax) lease = await this.#createLast(lock, budget);
    } finally {
      // Without the caller's patience: where that is at its end, the lock has to go all the same.
      released = lock.release();
    }
    try {
      await waitFor(this.#client, released, budget.next(), about);
      return lease;
    } catch (error) {
      // Nobody gets it.
      void lease?.release();
      throw error;
    }
  }

  /** With the lock: waits for a lease. @returns null when lock or lease were lost meanwhile */
  async #await(lock: Lock, budget: Budget, about: About): Promise<Holding | null> {
    const client = this.#client;
    const { path, countsOwn } = this.#leases;
    let own: OwnLease | null = null;
    let lease: Holding | null = null;
    try {
      if (countsOwn) own = await this.#leases.create(budget);
      if (countsOwn && own === null) return null;
      while (!lock.signal.aborted && own?.lost.aborted !== true) {
        using listed = await client.children(path, { ...budget.next(), watch: true });
        const { children } = listed;
        // Lost without the signal having told it yet, as on a server without a quorum, where nobody gets a lease.
        if (!lock.isHeld) return null;
        if (own === null && children.length < this.#leasesMax) return await this.#createLast(lock, budget);
        if (own !== null && children.length <= this.#leasesMax) {
          if (!children.includes(nameOf(own.path))) return null;
          lease = this.#hold(own);
          return lease;
        }
        // Before the listener: it throws when the caller has given up meanwhile, and nobody would take that off.
        const limits = budget.next();
        const unlocked = whenAborted(lock.signal);
        await waitFor(client, Promise.race([listed.changed, unlocked.aborted]), limits, about).finally(unlocked.stop);
      }
      return null;
    } catch (error) {
      if (isPassing(error, lock.signal)) return null;
      throw error;
    } finally {
      if (own !== null && lease === null) void this.#remove(own);
    }
  }

  /** With the lock, when a lease is free: nobody else makes one meanwhile, as long as lock and lease are of one session. */
  async #createLast(lock: Lock, budget: Budget): Promise<Holding | null> {
    const own = await this.#leases.create(budget);
    if (own === null) return null;
    if (own.stat.ephemeralOwner === lock.sessionId && lock.isHeld) return this.#hold(own);
    void this.#remove(own);
    return null;
  }

  /**
   * Without the lock: makes a lease, and takes it back if there are too many. Whoever keeps its lease has seen all older
   * ones, and not too many: so there never are too many.
   */
  async #tryBesideLock(budget: Budget, about: About): Promise<Holding | null> {
    const own = await this.#leases.create(budget);
    if (own === null) return null;
    try {
      const { children } = await this.#client.children(this.#leases.path, budget.next());
      const isFree = children.length <= this.#leasesMax && children.includes(nameOf(own.path));
      const isCertain = !own.lost.aborted && this.#client.state !== 'read-only';
      if (isFree && isCertain) return this.#hold(own);
    } catch (error) {
      void this.#remove(own);
      // Somebody has deleted the parent of all leases, and so ours.
      if (error instanceof NoNodeError) return null;
      throw error;
    }
    throwRefusal(await waitFor(this.#client, this.#remove(own), budget.next(), about));
    return null;
  }

  #hold(own: OwnLease): Holding {
    return new Holding(this.#client, own, own.lost, { marginMs: this.#marginMs });
  }

  #remove(own: OwnLease): Promise<Refusal> {
    return removeZnode(this.#client, own.path, own.stat.ephemeralOwner);
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

  #about(method: string): About {
    return { operation: `Semaphore.${method}`, path: this.path };
  }
}

/** The session was lost, or somebody deleted the parent: from the beginning. */
function isPassing(error: unknown, locked: AbortSignal): boolean {
  if (!(error instanceof ZooKeeperError)) return false;
  if (error.code === 'TIMEOUT' || error.code === 'ABORTED' || error.code === 'CLOSED') return false;
  return locked.aborted || error.isRetryable || error instanceof NoNodeError || error.code === 'SESSIONLOST';
}
