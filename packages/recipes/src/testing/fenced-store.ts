import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import type { Held } from '../locks/holding.ts';
import { compareBySequence } from '../sequence.ts';

/**
 * The judge of everything that one holder at a time may have. It keeps two stores:
 *
 * - one outside of the service, which takes a write only with a token that is not smaller than any it has seen;
 * - one inside, a list of sequential znodes that holders append to with `guarded`.
 *
 * and holds: two are never sure at the same time that they hold it; whoever has just got it has a larger token than all who
 * wrote before; nobody writes inside once somebody with a larger token has.
 */
export class FencedStore {
  readonly #path: string;
  readonly #holders = new Map<string, Held>();
  #highest = 0n;
  /** Acquisitions that were judged. */
  acquired = 0;
  /** Writes inside that the service took. */
  written = 0;

  /** @param path exists; the parent of the list inside */
  constructor(path: string) {
    this.#path = path;
  }

  /** Somebody has just got it. */
  onAcquired(host: string, held: Held): void {
    this.acquired++;
    if (held.isHeld) expect(held.token, `${host} comes after all who wrote`).toBeGreaterThan(this.#highest);
    this.#holders.set(host, held);
    this.check();
  }

  onReleased(host: string): void {
    this.#holders.delete(host);
  }

  /** Nobody else is sure to hold it. */
  check(): void {
    const sure = [...this.#holders].filter(([, { isHeld }]) => isHeld).map(([host]) => host);
    expect(sure.length, `one at a time holds it, not ${sure.join(' and ')}`).toBeLessThanOrEqual(1);
  }

  /** A write outside, as a holder that thinks it holds makes it. */
  writeOutside({ token }: Held): boolean {
    if (token < this.#highest) return false;
    this.#highest = token;
    return true;
  }

  async writeInside(held: Held): Promise<void> {
    await held.guarded.create(`${this.#path}/entry-`, held.token.toString(), { sequential: true });
    this.written++;
  }

  /** What has been written inside: tokens that never go back. */
  async judge(client: Client): Promise<void> {
    const { children } = await client.children(this.#path);
    let last = 0n;
    for (const name of [...children].sort(compareBySequence)) {
      const { data } = await client.get(`${this.#path}/${name}`);
      const token = BigInt(new TextDecoder().decode(data));
      expect(token, `${name} comes from the holder of its time`).toBeGreaterThanOrEqual(last);
      last = token;
    }
  }
}
