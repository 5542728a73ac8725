import { type About, type CallOptions, type Client, joinPath, NoNodeError } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { checkEndingMs } from '../kernel/bounds.ts';
import { enter, keepPlace } from '../kernel/contender.ts';
import { Holding } from '../kernel/holding.ts';
import type { Line } from '../kernel/line.ts';
import type { LockOptions } from '../kernel/options.ts';
import { lockSettings } from '../kernel/settings.ts';
import { Lock } from './lock.ts';
import { HELD, inspectByPriority, markerOf, type PriorityContending, type PriorityLine } from './priority-line.ts';
import { deletePlace, PriorityWaiter, type Taken } from './priority-waiter.ts';
import { isRevocation, REVOKE } from './revocation.ts';

export interface PriorityLockOptions extends LockOptions {
  /**
   * How long a lock whose holder died is left alone, in milliseconds. All users of the lock should set it. Default 0.
   */
  readonly lockDelayMs?: number | undefined;
}

export interface PriorityAcquireOptions extends CallOptions {
  /** Smaller ones are first: 32 bits, signed. Default 0. */
  readonly priority?: number | undefined;
}

/**
 * A lock with one holder at a time: after a release, the waiter with the smallest priority acquires it, among equals
 * the one that has waited longest. A holder is never preempted.
 *
 * @example
 * const lock = new PriorityLock(client, '/locks/printer');
 * await using held = await lock.acquire({ priority: -5, timeoutMs: 10_000 });
 * await held.guarded.set('/printer/job', '8');
 */
export class PriorityLock {
  readonly path: string;
  readonly #client: Client;
  readonly #line: PriorityLine;

  constructor(client: Client, path: string, options: PriorityLockOptions = {}) {
    const { lockDelayMs = 0 } = options;
    checkEndingMs('lockDelayMs', lockDelayMs);
    this.path = path;
    this.#client = client;
    this.#line = { ...lockSettings(options), path, lockDelayMs };
  }

  /**
   * Waits for the lock, across lost connections and sessions.
   *
   * @throws AbortedError, TimeoutError: nothing is held, and nothing of us is left in the line
   * @throws RangeError for an invalid priority
   */
  async acquire(options: PriorityAcquireOptions = {}): Promise<Lock> {
    const lock = await this.#contend(options, this.#about('acquire'), false);
    if (lock === null) throw new Error('a contender that waits must get its turn');
    return lock;
  }

  /**
   * Acquires the lock if it is free, and no waiter is ahead of us; otherwise null.
   *
   * @throws NoAuthError when the service does not let us leave the line: others wait for us until the session ends
   */
  tryAcquire(options: PriorityAcquireOptions = {}): Promise<Lock | null> {
    return this.#contend(options, this.#about('tryAcquire'), true);
  }

  /** The holder and the waiters, in order. */
  contenders(options?: CallOptions): Promise<readonly PriorityContending[]> {
    return inspectByPriority(this.#client, this.path, options);
  }

  /**
   * Requests the release of the lock: the holder's `revocation` is aborted.
   *
   * @returns false when it is free
   */
  async revoke(options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#client.set(joinPath(this.path, HELD), REVOKE, options);
      return true;
    } catch (error) {
      if (error instanceof NoNodeError) return false;
      throw error;
    }
  }

  async #contend(options: PriorityAcquireOptions, about: About, isTry: boolean): Promise<Lock | null> {
    const { priority = 0, ...call } = options;
    if (priority !== (priority | 0)) throw new RangeError(`a priority has 32 bits with sign, not ${priority}`);
    const attempt = new Attempt(this.#client, call, about, { awaitsQuorum: true });
    const places = this.#placesOf(priority);
    return attempt.run(async () => {
      for (;;) {
        const place = await enter(places, attempt);
        const waiter = new PriorityWaiter(attempt, this.#line, place);
        const turn = await keepPlace(
          place,
          attempt,
          () => waiter.awaitTurn(isTry),
          () => waiter.leave(),
        );
        if (turn !== 'gone') return turn === 'not-ours' ? null : this.#hold(turn);
      }
    });
  }

  #hold(taken: Taken): Lock {
    const { path } = this;
    const revocation = new AbortController();
    const holding = new Holding(this.#client, taken, {
      marginMs: this.#line.marginMs,
      isNameShared: true,
      generation: { path, version: taken.version },
      remove: () => deletePlace(this.#client, path, taken),
      isRemoveSafe: true,
      onData: (data) => {
        if (isRevocation(data)) revocation.abort(new Error('another client asked for the lock'));
      },
    });
    return new Lock(this.#client, holding, revocation.signal);
  }

  /** The lock's znode stays: its version distinguishes holders. */
  #placesOf(priority: number): Line {
    const marker = markerOf(priority);
    const names = { layout: 'curator', marker, markers: [marker] } as const;
    return { ...this.#line, ...names, parentMode: 'persistent', canMove: false };
  }

  #about(method: string): About {
    return { operation: `PriorityLock.${method}`, path: this.path };
  }
}
