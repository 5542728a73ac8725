import type { ServerResponse } from 'node:http';
import type { StreamMessage } from '../api/messages.ts';
import { makeToken } from './security.ts';

/** The one connection for events to a page: Server-Sent Events. */
export class PageStream {
  readonly id: string = makeToken();
  readonly #response: ServerResponse;
  readonly #subscriptions: Map<number, AbortController> = new Map();
  readonly #timer: NodeJS.Timeout;
  #lastId = 0;
  #onClose: () => void = () => {};

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on('close', () => this.#close());
    response.on('error', () => {});
    // Keeps a proxy from closing a quiet stream.
    this.#timer = setInterval(() => response.write(': still here\n\n'), QUIET_MS).unref();
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  /** The page does not read: messages that are worthless when late should be left out. */
  get isSlow(): boolean {
    return this.#response.writableLength > BACKLOG_BYTES;
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  send(message: StreamMessage): void {
    if (this.#response.writableEnded || this.#response.destroyed) return;
    // A page that reads nothing for so long is gone, or has to start again.
    if (this.#response.writableLength > BACKLOG_BYTES_MAX) this.#response.destroy();
    else this.#response.write(`data: ${JSON.stringify(message)}\n\n`);
  }

  /** @returns the id of the subscription, and the signal of its end */
  begin(): { readonly id: number; readonly signal: AbortSignal } {
    const controller = new AbortController();
    this.#lastId++;
    this.#subscriptions.set(this.#lastId, controller);
    return { id: this.#lastId, signal: controller.signal };
  }

  end(id: number): void {
    this.#subscriptions.get(id)?.abort();
    this.#subscriptions.delete(id);
  }

  close(): void {
    this.#response.end();
    this.#close();
  }

  /** Resolves when the page reads again, is gone, or the subscription is over. */
  async drained(signal: AbortSignal): Promise<void> {
    const response = this.#response;
    while (this.isSlow && !response.destroyed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          response.off('drain', done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        // Because of other writes the event may not come.
        const timer = setTimeout(done, 1000);
        response.once('drain', done);
        signal.addEventListener('abort', done, { once: true });
      });
    }
  }

  #close(): void {
    clearInterval(this.#timer);
    for (const controller of this.#subscriptions.values()) controller.abort();
    this.#subscriptions.clear();
    this.#onClose();
    this.#onClose = () => {};
  }
}

const QUIET_MS = 15_000;
const BACKLOG_BYTES = 1 << 20;
const BACKLOG_BYTES_MAX = 32 << 20;
