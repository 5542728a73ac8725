import { onAbort } from '@meerkat/client';

/** A promise and its settling functions. An unhandled rejection does not end the process. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

export function makeDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** Signals pending work: raised any number of times, awaited by one loop. */
export class Pulse {
  #raised: Deferred<void> = makeDeferred();

  raise(): void {
    this.#raised.resolve();
  }

  /** Clears it. A state that is read after this misses nothing that was raised before. */
  reset(): void {
    this.#raised = makeDeferred();
  }

  wait(): Promise<void> {
    return this.#raised.promise;
  }
}

/**
 * A value that changes until it ends. Loops get the current value and then each change; a slow loop gets the newest
 * value and skips those in between, so that nothing accumulates.
 */
export class Latest<T> {
  readonly #onLeave: () => void;
  #value: { readonly value: T } | null = null;
  /** Incremented with each value, so that a loop knows whether it has had the current one. */
  #revision = 0;
  #next: Deferred<T> = makeDeferred();
  /** Callers that wait for a matching value: not with `#next`, which would retain cancelled ones until it settles. */
  readonly #waiters: Set<Waiter<T>> = new Set();
  /** undefined while it runs; null after a regular end. */
  #end: Error | null | undefined = undefined;

  /** @param onLeave called when a loop is left */
  constructor(onLeave: () => void = () => {}) {
    this.#onLeave = onLeave;
  }

  /** null before the first value. */
  get current(): T | null {
    return this.#value === null ? null : this.#value.value;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** The error that ended it; null while it runs, and after a regular end. */
  get failure(): Error | null {
    return this.#end ?? null;
  }

  publish(value: T): void {
    if (this.isOver) return;
    this.#value = { value };
    this.#revision++;
    const { resolve } = this.#next;
    this.#next = makeDeferred();
    resolve(value);
    for (const waiter of this.#waiters) if (waiter.fits(value)) this.#dismiss(waiter).resolve(value);
  }

  /** @param error thrown to loops; null ends them. `changed` rejects with `reason`. */
  end(error: Error | null, reason: Error): void {
    if (this.isOver) return;
    this.#end = error;
    this.#next.reject(error ?? reason);
    for (const waiter of this.#waiters) this.#dismiss(waiter).reject(error ?? reason);
  }

  /** The next value after this moment. Rejects when none comes; the rejection need not be handled. */
  changed(): Promise<T> {
    return this.#next.promise;
  }

  /**
   * The first matching value from now on, including the current one. Rejects when none comes; the rejection need not be
   * handled.
   *
   * @param signal aborted: nothing of this call is kept, and it rejects with the signal's reason
   */
  when<S extends T>(fits: (value: T) => value is S, signal?: AbortSignal): Promise<S>;
  when(fits: (value: T) => boolean, signal?: AbortSignal): Promise<T>;
  when(fits: (value: T) => boolean, signal?: AbortSignal): Promise<T> {
    if (this.isOver) return this.#next.promise;
    const { promise, resolve, reject } = makeDeferred<T>();
    if (signal?.aborted === true) reject(signal.reason);
    else if (this.#value !== null && fits(this.#value.value)) resolve(this.#value.value);
    else {
      const waiter: Waiter<T> = { fits, resolve, reject, release: () => {} };
      if (signal !== undefined) waiter.release = onAbort(signal, () => this.#dismiss(waiter).reject(signal.reason));
      this.#waiters.add(waiter);
    }
    return promise;
  }

  #dismiss(waiter: Waiter<T>): Waiter<T> {
    this.#waiters.delete(waiter);
    waiter.release();
    return waiter;
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    // After its end there is no current value.
    let revision = this.isOver ? this.#revision : 0;
    let isLeft = false;
    const done: IteratorResult<T, undefined> = { done: true, value: undefined };
    return {
      next: async () => {
        while (!isLeft) {
          if (this.#value !== null && revision !== this.#revision) {
            revision = this.#revision;
            return { done: false, value: this.#value.value };
          }
          if (this.#end === null) return done;
          if (this.#end !== undefined) throw this.#end;
          await this.#next.promise.catch(() => undefined);
        }
        return done;
      },
      return: async () => {
        isLeft = true;
        this.#onLeave();
        return done;
      },
    };
  }
}

interface Waiter<T> extends Pick<Deferred<T>, 'resolve' | 'reject'> {
  readonly fits: (value: T) => boolean;
  /** Removes the listener on the waiter's signal. */
  release: () => void;
}
