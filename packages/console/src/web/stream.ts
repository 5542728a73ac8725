import type { StreamMessage, Subscription } from '../api/messages.ts';
import { ask } from './api.ts';

type Listener = (message: StreamMessage) => void;

interface Wanted {
  readonly subscription: Subscription;
  readonly listener: Listener;
  /** Its number at the backend; null while it has none. */
  id: number | null;
  isOver: boolean;
}

/** The one connection for events of the backend. It reconnects automatically, and renews all subscriptions. */
class StreamClient {
  readonly #wanted: Set<Wanted> = new Set();
  readonly #byId: Map<number, Wanted> = new Map();
  /** Messages that arrived before the response with the id of their subscription. */
  readonly #early: Map<number, StreamMessage[]> = new Map();
  readonly #onlineListeners: Set<(isOnline: boolean) => void> = new Set();
  #source: EventSource | null = null;
  #stream: string | null = null;

  /** @returns a function that ends it */
  subscribe(subscription: Subscription, listener: Listener): () => void {
    const wanted: Wanted = { subscription, listener, id: null, isOver: false };
    this.#wanted.add(wanted);
    this.#open();
    if (this.#stream !== null) void this.#ask(wanted, this.#stream);
    return () => {
      wanted.isOver = true;
      this.#wanted.delete(wanted);
      this.#drop(wanted);
    };
  }

  onOnline(listener: (isOnline: boolean) => void): () => void {
    this.#onlineListeners.add(listener);
    return () => void this.#onlineListeners.delete(listener);
  }

  /** Renews all subscriptions after another login. */
  restart(): void {
    this.#source?.close();
    this.#source = null;
    this.#stream = null;
    this.#forget();
    if (this.#wanted.size > 0) this.#open();
  }

  #open(): void {
    if (this.#source !== null) return;
    const source = new EventSource('./api/stream');
    this.#source = source;
    source.onmessage = ({ data }: MessageEvent<string>) => this.#onMessage(JSON.parse(data) as StreamMessage);
    source.onerror = () => {
      this.#stream = null;
      this.#forget();
      for (const listener of this.#onlineListeners) listener(false);
      // The browser reconnects automatically, unless the response was an error.
      if (source.readyState === EventSource.CLOSED && this.#source === source) {
        this.#source = null;
        setTimeout(() => this.#wanted.size > 0 && this.#open(), 2000);
      }
    };
  }

  #onMessage(message: StreamMessage): void {
    if (message.kind === 'open') {
      this.#stream = message.stream;
      for (const listener of this.#onlineListeners) listener(true);
      for (const wanted of this.#wanted) void this.#ask(wanted, message.stream);
      return;
    }
    const wanted = this.#byId.get(message.id);
    if (wanted !== undefined) wanted.listener(message);
    else this.#early.set(message.id, [...(this.#early.get(message.id) ?? []), message].slice(-50));
  }

  async #ask(wanted: Wanted, stream: string): Promise<void> {
    try {
      const { id } = await ask<{ readonly id: number }>(`stream/${stream}/subscribe`, wanted.subscription);
      if (this.#stream !== stream) return;
      wanted.id = id;
      if (wanted.isOver) {
        this.#drop(wanted);
        return;
      }
      this.#byId.set(id, wanted);
      const early = this.#early.get(id) ?? [];
      this.#early.delete(id);
      for (const message of early) wanted.listener(message);
    } catch (error) {
      const message = (error as Error).message;
      if (!wanted.isOver) wanted.listener({ kind: 'failed', id: 0, failure: { code: 'failed', message, path: null } });
    }
  }

  #drop(wanted: Wanted): void {
    if (wanted.id === null) return;
    this.#byId.delete(wanted.id);
    this.#early.delete(wanted.id);
    if (this.#stream !== null) void ask(`stream/${this.#stream}/unsubscribe`, { id: wanted.id }).catch(() => {});
    wanted.id = null;
  }

  #forget(): void {
    this.#byId.clear();
    this.#early.clear();
    for (const wanted of this.#wanted) wanted.id = null;
  }
}

export const STREAM = new StreamClient();
