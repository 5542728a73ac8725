import type { Client } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';

/** `read`: with its data. `check`: only the stat, which shows whether a read is needed. */
export type Look = 'read' | 'check';

export interface InquiriesEvents {
  look(path: string, how: Look): Promise<void>;
  list(path: string): Promise<void>;
  /** An answer has come. */
  onAnswered(): void;
  /** Retrying does not help. */
  onFailed(error: Error): void;
}

export interface InquiriesOptions {
  /** Milliseconds. */
  readonly refreshSpreadMs: number;
  /** Maximum of requests in flight. */
  readonly requestsMax: number;
}

/**
 * The queue of requests of an image: reads of znodes and lists of children, a limited number at a time, at most one per
 * path at a time. Transient failures are retried.
 */
export class Inquiries {
  readonly #client: Client;
  readonly #events: InquiriesEvents;
  readonly #options: InquiriesOptions;
  readonly #looks: Map<string, Look> = new Map();
  readonly #lists: Set<string> = new Set();
  readonly #looking: Set<string> = new Set();
  readonly #listing: Set<string> = new Set();
  readonly #ended: AbortController = new AbortController();
  readonly #attempt: Attempt;
  /** Cancels the delay after a lost connection; null when there is no delay. */
  #cancelPause: (() => void) | null = null;
  #isHeld = false;

  constructor(client: Client, options: InquiriesOptions, events: InquiriesEvents) {
    this.#client = client;
    this.#options = options;
    this.#events = events;
    const about = { operation: 'cache', path: null };
    this.#attempt = new Attempt(client, { signal: this.#ended.signal }, about, { awaitsQuorum: true });
  }

  /** Nothing is queued or in flight. */
  get isIdle(): boolean {
    return this.#looks.size === 0 && this.#looking.size === 0 && !this.hasLists;
  }

  /** Some children are not known yet. */
  get hasLists(): boolean {
    return this.#lists.size > 0 || this.#listing.size > 0;
  }

  /** Queues a look at the path, again if one is in progress. */
  addLook(path: string, how: Look): void {
    this.#looks.set(path, how);
  }

  hasLook(path: string): boolean {
    return this.#looks.has(path);
  }

  /** There is nothing left to see; a look in progress that has to be repeated stays. */
  dropLook(path: string): void {
    if (!this.#looking.has(path)) this.#looks.delete(path);
  }

  addList(path: string): void {
    this.#lists.add(path);
  }

  hasList(path: string): boolean {
    return this.#lists.has(path) || this.#listing.has(path);
  }

  dropLists(): void {
    this.#lists.clear();
  }

  /** After a lost connection every client refreshes; the random delay spreads the load. */
  holdBack(): void {
    const { clock, random } = this.#client.surroundings;
    const delayMs = (this.#options.refreshSpreadMs * random.uint32()) / 2 ** 32;
    if (delayMs < 1 || this.#cancelPause !== null) return;
    this.#cancelPause = clock.schedule(delayMs, () => {
      this.#cancelPause = null;
      this.ask();
    });
  }

  /** Sends nothing until `release`. Requests in flight complete. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
  }

  /** Sends what may be sent. */
  ask(): void {
    if (this.#isHeld || this.#cancelPause !== null || this.#ended.signal.aborted) return;
    for (const path of this.#lists) {
      if (this.#isFull) return;
      if (this.#listing.has(path)) continue;
      this.#lists.delete(path);
      const request = (): Promise<void> => this.#events.list(path);
      void this.#send(path, this.#listing, request, () => this.addList(path));
    }
    for (const [path, how] of this.#looks) {
      if (this.#isFull) return;
      if (this.#looking.has(path)) continue;
      this.#looks.delete(path);
      const request = (): Promise<void> => this.#events.look(path, how);
      void this.#send(path, this.#looking, request, () => {
        if (!this.#looks.has(path)) this.#looks.set(path, how);
      });
    }
  }

  end(): void {
    this.#cancelPause?.();
    this.#ended.abort();
  }

  get #isFull(): boolean {
    return this.#looking.size + this.#listing.size >= this.#options.requestsMax;
  }

  async #send(path: string, asking: Set<string>, request: () => Promise<void>, again: () => void): Promise<void> {
    asking.add(path);
    try {
      const hasAnswer = await this.#tryOnce(request);
      asking.delete(path);
      if (!hasAnswer) again();
      this.ask();
      this.#events.onAnswered();
    } catch (error) {
      this.#events.onFailed(error as Error);
    }
  }

  /** @returns false when it has failed and may be retried now, after requests queued meanwhile */
  async #tryOnce(request: () => Promise<void>): Promise<boolean> {
    try {
      await request();
      this.#attempt.answered();
      return true;
    } catch (error) {
      await this.#attempt.recover(error);
      return false;
    }
  }
}
