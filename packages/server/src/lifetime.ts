import { Deferred } from './deferred.ts';
import type { ServerError } from './exit-codes.ts';

/** The life of a server from its start to its end, and the moments that others wait for. Nothing follows `ended`. */
export class Lifetime {
  readonly #started = new Deferred<void>();
  readonly #served = new Deferred<void>();
  readonly #stopped = new Deferred<void>();
  readonly #failed = new Deferred<ServerError>();
  #state: 'starting' | 'serving' | 'stopping' | 'ended' = 'starting';
  #failure: ServerError | null = null;

  constructor() {
    // Avoids unhandled rejections: waiting for these is optional.
    this.#started.promise.catch(() => {});
    this.#served.promise.catch(() => {});
  }

  get state(): 'starting' | 'serving' | 'stopping' | 'ended' {
    return this.#state;
  }

  /** Why it ended by itself; null: it did not. */
  get failure(): ServerError | null {
    return this.#failure;
  }

  /** What a start waits for: clients are served, or a member of an ensemble has begun to look for a leader. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  get served(): Promise<void> {
    return this.#served.promise;
  }

  /** Also resolves when it has ended in another way. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  get failed(): Promise<ServerError> {
    return this.#failed.promise;
  }

  onStarted(): void {
    this.#started.resolve();
  }

  onServed(): void {
    this.#started.resolve();
    this.#served.resolve();
  }

  onStopped(): void {
    this.#stopped.resolve();
  }

  /** The start has finished; ignored if it was stopped meanwhile. */
  beginServing(): void {
    if (this.#state === 'starting') this.#state = 'serving';
  }

  /** @returns false when it is stopping or has ended already */
  beginStopping(): boolean {
    if (this.#state !== 'starting' && this.#state !== 'serving') return false;
    this.#state = 'stopping';
    return true;
  }

  /** @returns false when it has ended already */
  end(): boolean {
    if (this.#state === 'ended') return false;
    this.#state = 'ended';
    return true;
  }

  fail(failure: ServerError): void {
    this.#failure = failure;
    this.rejectPending(failure);
    this.#failed.resolve(failure);
  }

  /** Rejects all pending waits with the reason. */
  rejectPending(reason: ServerError): void {
    this.#started.reject(reason);
    this.#served.reject(reason);
    this.#stopped.resolve();
  }

  /** Like `rejectPending`, for a server that was stopped before it served. */
  onNeverServed(reason: ServerError): void {
    this.#served.reject(reason);
  }
}
