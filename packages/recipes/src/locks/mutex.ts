import { type About, type Acl, Budget, type CallOptions, type Client, type Data, joinPath } from '@meerkat/client';
import { checkEndingMs, checkMs } from '../bounds.ts';
import { Deadline } from '../deadline.ts';
import { checkLayout, LAYOUTS, type Layout } from '../layout.ts';
import { asGivenUp, contend, isSessionOver, type Place, tryContend } from './contender.ts';
import { type Contending, inspect, type Line } from './line.ts';
import { type Lock, takePlace } from './lock.ts';
import { leaveInOrder, releaseInOrder, takeAfterDelay } from './lock-delay.ts';
import { type Refusal, throwRefusal } from './removal.ts';
import { requestRevocation } from './revocation.ts';
import { waitFor } from './wait-for.ts';

export interface MutexOptions {
  /** With whom the lock is shared: Curator's InterProcessMutex (the default) or kazoo's Lock. */
  readonly layout?: Layout | undefined;
  /** What our znode tells about us, to whoever looks at the queue. Default: nothing. */
  readonly data?: Data | undefined;
  /** Of the znodes that are made. Default: everybody everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * How long before the client's deadline what is held ends by itself, milliseconds; see docs/recipes/README.md. Default 0.
   */
  readonly marginMs?: number | undefined;
  /**
   * How long a lock whose holder died is kept from the others, milliseconds. All who use the lock must set it; programs
   * with other libraries do not wait. Default 0.
   */
  readonly lockDelayMs?: number | undefined;
}

/**
 * A lock that one holder at a time has, in the order of asking.
 *
 * @example
 * const mutex = new Mutex(client, '/locks/orders');
 * await using lock = await mutex.acquire({ timeoutMs: 10_000 });
 * await lock.guarded.set('/orders/next', '8');
 */
export class Mutex {
  readonly path: string;
  readonly #client: Client;
  readonly #line: Line;
  readonly #lockDelayMs: number;
  readonly #marginMs: number;

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    const { layout = 'curator', data, acl, lockDelayMs = 0, marginMs = 0 } = options;
    checkMs('marginMs', marginMs);
    checkEndingMs('lockDelayMs', lockDelayMs);
    this.path = path;
    this.#client = client;
    this.#lockDelayMs = lockDelayMs;
    this.#marginMs = marginMs;
    // What the parent holds would be lost with it.
    const delayed: Pick<Line, 'parentMode' | 'canMove'> =
      lockDelayMs === 0 ? {} : { parentMode: 'persistent', canMove: false };
    this.#line = { ...makeMutexLine(path, layout, data, acl), ...delayed };
  }

  /**
   * Waits for the lock, through lost connections and sessions.
   *
   * @throws AbortedError, TimeoutError: nothing is held, and nobody waits for us
   */
  async acquire(options: CallOptions = {}): Promise<Lock> {
    const about = this.#about('acquire');
    const budget = new Budget(options, this.#client.surroundings, about);
    for (;;) {
      const place = await contend(this.#client, this.#line, budget.next(), about);
      const lock = await this.#take(place, budget, about, false);
      if (lock !== null) return lock;
    }
  }

  /**
   * The lock if nobody has it or waits for it; otherwise null.
   *
   * @throws NoAuthError when the service does not let us leave the line: others wait for us until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Lock | null> {
    const about = this.#about('tryAcquire');
    const budget = new Budget(options, this.#client.surroundings, about);
    const place = await tryContend(this.#client, this.#line, budget.next(), about);
    return place === null ? null : this.#take(place, budget, about, true);
  }

  /** Who has the lock and who waits for it, in this order. */
  contenders(options?: CallOptions): Promise<readonly Contending[]> {
    return inspect(this.#client, this.#line, options);
  }

  /**
   * Asks the holder to give the lock back: its `revocation` is aborted. A holder that uses Curator hears it if it was
   * made revocable; one that uses kazoo does not.
   *
   * @returns false when nobody has it, or whoever was asked gave it back meanwhile: somebody else may have it then
   */
  revoke(options: CallOptions = {}): Promise<boolean> {
    return requestRevocation(this.#client, this.#line, options);
  }

  async #take(place: Place, budget: Budget, about: About, isTry: boolean): Promise<Lock | null> {
    const marginMs = this.#marginMs;
    if (this.#lockDelayMs === 0) return takePlace(this.#client, this.#line, place, { marginMs });
    if (!(await this.#waitForDelay(place, budget, about, isTry))) return null;
    return takePlace(this.#client, this.#line, place, {
      marginMs,
      remove: () => releaseInOrder(this.#client, this.path, place.path),
      isRemoveSafe: true,
    });
  }

  /** @returns false when our place is lost meanwhile, or given up because it would have to wait */
  async #waitForDelay(place: Place, budget: Budget, about: About, isTry: boolean): Promise<boolean> {
    const client = this.#client;
    let isTaken = false;
    let left: Promise<Refusal> = Promise.resolve(null);
    try {
      try {
        const isMarked = await takeAfterDelay(client, this.path, place, this.#lockDelayMs, budget, isTry);
        isTaken = isMarked && new Deadline(client).leftMs > 0;
      } catch (error) {
        if (!isSessionOver(error, place)) throw error;
      } finally {
        if (!isTaken) left = leaveInOrder(client, this.path, place);
      }
      if (isTry && !isTaken) throwRefusal(await waitFor(client, left, budget.next(), about));
      return isTaken;
    } catch (error) {
      throw asGivenUp(
        error,
        about,
        client,
        `${place.path} has it once lockDelayMs has passed since the death of a holder`,
      );
    }
  }

  #about(method: string): About {
    return { operation: `Mutex.${method}`, path: this.path };
  }
}

/** The znodes of a mutex; leader elections have the same. */
export function makeMutexLine(path: string, layout: Layout, data?: Data, acl?: readonly Acl[]): Line {
  checkLayout(layout, LAYOUTS);
  const marker = layout === 'curator' ? CURATOR_MARKER : KAZOO_MARKER;
  // A name below the path must be legal: the server refuses what is not.
  joinPath(path, marker);
  return { path, layout, marker, markers: [marker], data, acl };
}

const CURATOR_MARKER = 'lock-';
const KAZOO_MARKER = '__lock__';
