import { type CallOptions, type Client, joinPath } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { checkEndingMs } from '../kernel/bounds.ts';
import { contend, keepPlace, type Turn, tryContend } from '../kernel/contender.ts';
import { type Contending, inspect, type Line } from '../kernel/line.ts';
import type { SharedLockOptions } from '../kernel/options.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { type SharedLockSettings, sharedLockSettings } from '../kernel/settings.ts';
import { type Lock, takePlace } from './lock.ts';
import { leaveInOrder, releaseInOrder, takeAfterDelay } from './lock-delay.ts';
import { requestRevocation } from './revocation.ts';

export interface MutexOptions extends SharedLockOptions {
  /**
   * How long a lock whose holder died is withheld from others, in milliseconds. All users of the lock must set it;
   * programs with other libraries do not wait. Default 0.
   */
  readonly lockDelayMs?: number | undefined;
}

/**
 * A lock with one holder at a time, acquired in the order of the requests.
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

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    const { lockDelayMs = 0 } = options;
    checkEndingMs('lockDelayMs', lockDelayMs);
    this.path = path;
    this.#client = client;
    this.#lockDelayMs = lockDelayMs;
    // The parent's data would be lost with it.
    const delayed: Pick<Line, 'parentMode' | 'canMove'> =
      lockDelayMs === 0 ? {} : { parentMode: 'persistent', canMove: false };
    this.#line = { ...makeMutexLine(path, sharedLockSettings(options)), ...delayed };
  }

  /**
   * Waits for the lock, across lost connections and sessions.
   *
   * @throws AbortedError, TimeoutError: nothing is held, and nothing of us is left in the line
   */
  async acquire(options: CallOptions = {}): Promise<Lock> {
    const attempt = this.#attempt('acquire', options);
    return attempt.run(() => this.acquireWithin(attempt));
  }

  /** @internal The same, as part of another call. */
  async acquireWithin(attempt: Attempt): Promise<Lock> {
    for (;;) {
      const place = await contend(this.#line, attempt);
      const lock = await this.#take(place, attempt, false);
      if (lock !== null) return lock;
    }
  }

  /**
   * Acquires the lock if no client holds or awaits it; otherwise null.
   *
   * @throws NoAuthError when the service does not let us leave the line: others wait for us until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Lock | null> {
    const attempt = this.#attempt('tryAcquire', options);
    return attempt.run(() => this.tryAcquireWithin(attempt));
  }

  /** @internal The same, as part of another call. */
  async tryAcquireWithin(attempt: Attempt): Promise<Lock | null> {
    const place = await tryContend(this.#line, attempt);
    return place && this.#take(place, attempt, true);
  }

  /** The holder and the waiters, in order. */
  contenders(options?: CallOptions): Promise<readonly Contending[]> {
    return inspect(this.#client, this.#line, options);
  }

  /**
   * Requests the release of the lock: the holder's `revocation` is aborted. A holder that uses Curator is notified if
   * it was made revocable; one that uses kazoo is not.
   *
   * @returns false when it is free, or the notified holder released it meanwhile: another client may hold it then
   */
  revoke(options: CallOptions = {}): Promise<boolean> {
    return requestRevocation(this.#client, this.#line, options);
  }

  /** @returns null when our place was lost meanwhile, or left because it would have to wait */
  async #take(place: OwnedZnode, attempt: Attempt, isTry: boolean): Promise<Lock | null> {
    const client = this.#client;
    if (this.#lockDelayMs === 0) return takePlace(client, this.#line, place);
    attempt.obstacle = `${place.path} has it once lockDelayMs has passed since the death of a holder`;
    const wait = (): Promise<Turn<'ours'>> => takeAfterDelay(attempt, this.path, place, this.#lockDelayMs, isTry);
    const turn = await keepPlace(place, attempt, wait, () => leaveInOrder(client, this.path, place));
    if (turn !== 'ours') return null;
    return takePlace(client, this.#line, place, {
      remove: () => releaseInOrder(client, this.path, place.path),
      isRemoveSafe: true,
    });
  }

  #attempt(method: string, options: CallOptions): Attempt {
    const about = { operation: `Mutex.${method}`, path: this.path };
    return new Attempt(this.#client, options, about, { awaitsQuorum: true });
  }
}

/** The znodes of a mutex; leader elections use the same. */
export function makeMutexLine(path: string, settings: SharedLockSettings): Line {
  const marker = settings.layout === 'curator' ? CURATOR_MARKER : KAZOO_MARKER;
  // Names below the path must be valid: the server refuses others.
  joinPath(path, marker);
  return { ...settings, path, marker, markers: [marker] };
}

const CURATOR_MARKER = 'lock-';
const KAZOO_MARKER = '__lock__';
