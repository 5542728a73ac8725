import { type Client, DataInconsistencyError } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';

export interface SetbackEvents {
  /** Takes the events so far; this may resolve the doubt. */
  drain(): void;
  onCaughtUp(): void;
  /** The service has gone back, or cannot be asked. */
  onFailed(error: Error): void;
}

/**
 * Whether the service has gone back. The first replies of a connection may carry no zxid, or one older than has been
 * seen. That happens at a server that lags behind after a lost session, and at a service restored to an older state. A
 * server that has synced shows which.
 */
export class Setback {
  readonly #client: Client;
  readonly #path: string;
  readonly #events: SetbackEvents;
  /** Ends the check; null: there is no doubt. */
  #doubt: AbortController | null = null;

  constructor(client: Client, path: string, events: SetbackEvents) {
    this.#client = client;
    this.#path = path;
    this.#events = events;
  }

  /** A check is in progress: events meanwhile are dropped. */
  get isDoubted(): boolean {
    return this.#doubt !== null;
  }

  end(): void {
    this.#doubt?.abort();
    this.#doubt = null;
  }

  /** @param zxid that the service is known to have reached */
  async ask(zxid: bigint): Promise<void> {
    const doubt = new AbortController();
    this.#doubt = doubt;
    const { signal } = doubt;
    const about = { operation: 'cache', path: this.#path };
    const attempt = new Attempt(this.#client, { signal }, about, { awaitsQuorum: true });
    try {
      await attempt.through((call) => this.#client.sync(this.#path, call));
      const hasCome = this.#client.lastZxid >= zxid;
      // Without this connection there will be another gap, and everything starts over.
      if (signal.aborted || this.#client.state !== 'connected') return;
      this.#events.drain();
      if (signal.aborted) return;
      if (hasCome) this.#events.onCaughtUp();
      else this.#events.onFailed(this.#goneBack(zxid));
    } catch (error) {
      if (!signal.aborted) this.#events.onFailed(error as Error);
    }
  }

  #goneBack(zxid: bigint): Error {
    const detail = `the service has rolled back to before 0x${zxid.toString(16)}: open the cache again`;
    return new DataInconsistencyError({ operation: 'cache', path: this.#path, detail });
  }
}
