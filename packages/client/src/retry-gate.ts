import { type Deferred, makeDeferred } from './deferred.ts';
import { retryClassOf } from './make-error.ts';
import type { WatchPorts } from './watch-ports.ts';

/** Waits after a transient failure, on behalf of readers that retry as long as the client lives. */
export class RetryGate {
  readonly #ports: Pick<WatchPorts, 'whenConnected' | 'clock'>;
  readonly #end = new AbortController();
  readonly #ended: Deferred<void> = makeDeferred();

  constructor(ports: Pick<WatchPorts, 'whenConnected' | 'clock'>) {
    this.#ports = ports;
  }

  /** Ends all waits: waiters continue. */
  end(): void {
    this.#end.abort();
    this.#ended.resolve();
  }

  /**
   * Resolves when a retry makes sense: with a connection after one was lost, after a delay when a server was
   * overloaded. Rejects with the failure when it is permanent, or with the end of the client.
   *
   * @returns true when it was the connection
   */
  async after(failure: unknown): Promise<boolean> {
    const retryClass = retryClassOf(failure);
    if (retryClass === 'refused' || retryClass === 'over') throw failure;
    const isConnection = retryClass === 'connection' || retryClass === 'session';
    await (isConnection ? this.#connection() : this.#pause());
    return isConnection;
  }

  async #connection(): Promise<void> {
    try {
      await this.#ports.whenConnected({ signal: this.#end.signal });
    } catch (error) {
      if (!this.#end.signal.aborted) throw error;
    }
  }

  #pause(): Promise<void> {
    const passed = makeDeferred<void>();
    const cancel = this.#ports.clock.schedule(PAUSE_MS, passed.resolve);
    return Promise.race([passed.promise, this.#ended.promise]).finally(cancel);
  }
}

const PAUSE_MS = 500;
