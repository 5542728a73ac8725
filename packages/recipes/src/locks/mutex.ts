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

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    const { lockDelayMs = 0 } = options;
    checkEndingMs('lockDelayMs', lockDelayMs);
    this.path = path;
    this.#client = client;
    this.#lockDelayMs = lockDelayMs;
    // What the parent holds would be lost with it.
    const delayed: Pick<Line, 'parentMode' | 'canMove'> =
      lockDelayMs === 0 ? {} : { parentMode: 'persistent', canMove: false };
    this.#line = { ...makeMutexLine(path, sharedLockSettings(options)), ...delayed };
  }

  /**
   * Waits for the lock, through lost connections and sessions.
   *
   * @throws AbortedError, TimeoutError: nothing is held, and no caller waits for us
   */
  async acquire(options: CallOptions = {}): Promise<Lock> {
    const attempt = this.#attempt('acquire', options);
    return attempt.run(() => this.acquireWithin(attempt));
  }

  /** @internal The same, as a part of another call. */
  async acquireWithin(attempt: Attempt): Promise<Lock> {
    for (;;) {
      const place = await contend(this.#line, attempt);
      const lock = await this.#take(place, attempt, false);
      if (lock !== null) return lock;
    }
  }

  /**
   * The lock if no client has it or waits for it; otherwise null.
   *
   * @throws NoAuthError when the service does not let us leave the line: others wait for us until the session ends
   */
  async tryAcquire(options: CallOptions = {}): Promise<Lock | null> {
    const attempt = this.#attempt('tryAcquire', options);
    return attempt.run(() => this.tryAcquireWithin(attempt));
  }

  /** @internal The same, as a part of another call. */
  async tryAcquireWithin(attempt: Attempt): Promise<Lock | null> {
    const place = await tryContend(this.#line, attempt);
    return place && this.#take(place, attempt, true);
  }

  /** Who has the lock and who waits for it, in this order. */
  contenders(options?: CallOptions): Promise<readonly Contending[]> {
    return inspect(this.#client, this.#line, options);
  }

  /**
   * Asks the holder to give the lock back: its `revocation` is aborted. A holder that uses Curator hears it if it was
   * made revocable; one that uses kazoo does not.
   *
   * @returns false when it is free, or the client that was asked gave it back meanwhile: another client may have it then
   */
  revoke(options: CallOptions = {}): Promise<boolean> {
    return requestRevocation(this.#client, this.#line, options);
  }

  /** @returns null when our place was lost meanwhile, or given up because it would have to wait */
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

/** The znodes of a mutex; leader elections have the same. */
export function makeMutexLine(path: string, settings: SharedLockSettings): Line {
  const marker = settings.layout === 'curator' ? CURATOR_MARKER : KAZOO_MARKER;
  // A name below the path must be legal: the server refuses what is not.
  joinPath(path, marker);
  return { ...settings, path, marker, markers: [marker] };
}

const CURATOR_MARKER = 'lock-';
const KAZOO_MARKER = '__lock__';
