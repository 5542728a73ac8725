/**
 * Callbacks for events.
 *
 * 1. A function that is added twice is called once; it stays until each of its registrations has been disposed.
 * 2. Values are delivered in the order of `notify`, each in a microtask, never synchronously. So a listener may call the
 *    client.
 * 3. A function gets the values reported after it was added, and none once it has been removed.
 * 4. A listener that throws does not affect the others: its error becomes an uncaught exception of the process in a
 *    separate microtask, as with an EventTarget.
 *
 * @example
 * const listeners = new Listeners<string>();
 * using subscription = listeners.add((word) => console.log(word));
 * listeners.tell('hello');
 */
export class Listeners<T> {
  readonly #registrations: Map<Listener<T>, Set<Disposable>> = new Map();

  /** Number of different functions. */
  get size(): number {
    return this.#registrations.size;
  }

  /** @returns removes the function, unless it was added again */
  add(listener: Listener<T>): Disposable {
    let registrations = this.#registrations.get(listener);
    if (registrations === undefined) {
      registrations = new Set();
      this.#registrations.set(listener, registrations);
    }
    const registration: Disposable = { [Symbol.dispose]: () => this.#remove(listener, registration) };
    registrations.add(registration);
    return registration;
  }

  notify(value: T): void {
    if (this.#registrations.size === 0) return;
    const registered = [...this.#registrations];
    queueMicrotask(() => {
      for (const [listener, registrations] of registered) if (registrations.size > 0) call(listener, value);
    });
  }

  #remove(listener: Listener<T>, registration: Disposable): void {
    const registrations = this.#registrations.get(listener);
    if (registrations?.delete(registration) === true && registrations.size === 0) {
      this.#registrations.delete(listener);
    }
  }
}

export type Listener<T> = (value: T) => void;

function call<T>(listener: Listener<T>, value: T): void {
  try {
    listener(value);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
