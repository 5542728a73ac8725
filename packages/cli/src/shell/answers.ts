import type { Client } from '@meerkat/client';

/** How long an answer is believed. Milliseconds. */
const FRESH_MS = 3000;

/** What the server has answered of late, by path. A question is answered with what is known; listeners are notified when there is more. */
export class Answers<T> {
  readonly #onNews: () => void;
  readonly #known: Map<string, { readonly value: T; readonly atMs: number }> = new Map();
  readonly #asked: Set<string> = new Set();

  constructor(onNews: () => void) {
    this.#onNews = onNews;
  }

  clear(): void {
    this.#known.clear();
  }

  /**
   * @param otherwise the answer when the server cannot be asked, or refuses
   * @returns null when the answer is on its way
   */
  get(path: string, client: Client | null, ask: (client: Client) => Promise<T>, otherwise: T): T | null {
    const known = this.#known.get(path);
    if (known !== undefined && performance.now() - known.atMs < FRESH_MS) return known.value;
    if (client?.state !== 'connected' && client?.state !== 'read-only') return otherwise;
    if (!this.#asked.has(path)) void this.#ask(path, () => ask(client), otherwise);
    return null;
  }

  async #ask(path: string, ask: () => Promise<T>, otherwise: T): Promise<void> {
    this.#asked.add(path);
    const value = await ask().catch(() => otherwise);
    this.#asked.delete(path);
    this.#known.set(path, { value, atMs: performance.now() });
    this.#onNews();
  }
}
