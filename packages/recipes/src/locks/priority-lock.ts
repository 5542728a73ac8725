import {
  type About,
  type Acl,
  Budget,
  type CallOptions,
  type Client,
  type Data,
  joinPath,
  NoNodeError,
} from '@meerkat/client';
import { checkEndingMs, checkMs } from '../bounds.ts';
import { Wait } from '../wait.ts';
import { asGivenUp, enter, isSessionOver } from './contender.ts';
import { Holding } from './holding.ts';
import type { Line } from './line.ts';
import { Lock } from './lock.ts';
import { HELD, inspectByPriority, markerOf, type PriorityContending, type PriorityLine } from './priority-line.ts';
import { giveBack, type PriorityTurn, PriorityWaiter, type Taken } from './priority-waiter.ts';
import { type Refusal, throwRefusal } from './removal.ts';
import { isRevocation, REVOKE } from './revocation.ts';
import { waitFor } from './wait-for.ts';

export interface PriorityLockOptions {
  /** What our znodes tell about us, to whoever looks at the queue. Default: nothing. */
  readonly data?: Data | undefined;
  /** Of the znodes that are made. Default: everybody everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * How long before the client's deadline what is held ends by itself, milliseconds; see docs/recipes/README.md. Default 0.
   */
  readonly marginMs?: number | undefined;
  /** How long we leave a lock alone whose holder died, milliseconds. All who use the lock should set it. Default 0. */
  readonly lockDelayMs?: number | undefined;
}

export interface PriorityAcquireOptions extends CallOptions {
  /** Smaller ones get it first: 32 bits with sign. Default 0. */
  readonly priority?: number | undefined;
}

/**
 * A lock that one holder at a time has: when it is given back, the waiter with the smallest priority gets it, among equals
 * the one that has waited longest. Nothing is taken from a holder.
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
  readonly #marginMs: number;

  constructor(client: Client, path: string, options: PriorityLockOptions = {}) {
    const { data, acl, lockDelayMs = 0, marginMs = 0 } = options;
    checkMs('marginMs', marginMs);
    checkEndingMs('lockDelayMs', lockDelayMs);
    this.path = path;
    this.#client = client;
    this.#line = { path, data, acl, lockDelayMs };
    this.#marginMs = marginMs;
  }

  /**
   * Waits for the lock, through lost connections and sessions.
   *
   * @throws AbortedError, TimeoutError: nothing is held, and nobody waits for us
   * @throws RangeError for a priority that is none
   */
  async acquire(options: PriorityAcquireOptions = {}): Promise<Lock> {
    const lock = await this.#contend(options, this.#about('acquire'), false);
    if (lock === null) throw new Error('a contender that waits must get its turn');
    return lock;
  }

  /**
   * The lock if nobody has it, and nobody waits for it who would get it before us; otherwise null.
   *
   * @throws NoAuthError when the service does not let us leave the line: others wait for us until the session ends
   */
  tryAcquire(options: PriorityAcquireOptions = {}): Promise<Lock | null> {
    return this.#contend(options, this.#about('tryAcquire'), true);
  }

  /** Who has the lock and who waits for it, in this order. */
  contenders(options?: CallOptions): Promise<readonly PriorityContending[]> {
    return inspectByPriority(this.#client, this.path, options);
  }

  /**
   * Asks the holder to give the lock back: its `revocation` is aborted.
   *
   * @returns false when nobody has it
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
    const budget = new Budget(call, this.#client.surroundings, about);
    const wait = new Wait(this.#client, call, { operation: about.operation, path: this.path });
    const places = this.#placesOf(priority);
    let waiter: PriorityWaiter | null = null;
    try {
      for (;;) {
        const place = await enter(this.#client, places, budget);
        waiter = new PriorityWaiter(this.#client, this.#line, place);
        let turn: PriorityTurn = 'gone';
        let left: Promise<Refusal> = Promise.resolve(null);
        try {
          turn = await waiter.awaitTurn(budget, wait, isTry);
        } catch (error) {
          if (!isSessionOver(error, place)) throw error;
        } finally {
          if (typeof turn === 'string') left = waiter.leave();
        }
        if (typeof turn !== 'string') return this.#hold(turn);
        if (turn === 'gone') continue;
        throwRefusal(await waitFor(this.#client, left, budget.next(), about));
        return null;
      }
    } catch (error) {
      throw asGivenUp(error, about, this.#client, waiter?.obstacle);
    }
  }

  #hold(taken: Taken): Lock {
    const { path } = this;
    const revocation = new AbortController();
    const holding = new Holding(this.#client, taken, taken.lost, {
      marginMs: this.#marginMs,
      isNameShared: true,
      generation: { path, version: taken.version },
      remove: () => giveBack(this.#client, path, taken),
      isRemoveSafe: true,
      onData: (data) => {
        if (isRevocation(data)) revocation.abort(new Error('somebody asked for the lock'));
      },
    });
    return new Lock(this.#client, holding, revocation.signal);
  }

  /** The lock's znode stays: its version is what tells one holder from another. */
  #placesOf(priority: number): Line {
    const { path, data, acl } = this.#line;
    const marker = markerOf(priority);
    return { path, layout: 'curator', marker, markers: [marker], data, acl, parentMode: 'persistent', canMove: false };
  }

  #about(method: string): About {
    return { operation: `PriorityLock.${method}`, path: this.path };
  }
}
