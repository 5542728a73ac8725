import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import { compareBySequence } from '../kernel/sequence.ts';

/** As what a client holds it: `write` alone, `read` beside other readers. */
export type Access = 'write' | 'read';

/**
 * The checker of everything that holders have for themselves. It keeps two stores:
 *
 * - one outside of the service, which takes a write only with a token that is not smaller than any it has seen;
 * - one inside, a list of sequential znodes that holders append to with `guarded`.
 *
 * and holds: those who are sure at the same time that they hold it may do so together; the client that has just got it for writing
 * has a larger token than all who wrote before; no client writes inside once a client with a larger token has.
 */
export class FencedStore {
  readonly #path: string;
  readonly #mayHold: (holders: readonly Access[]) => boolean;
  readonly #holders = new Map<string, { readonly held: Held; readonly access: Access }>();
  #highest = 0n;
  /** Acquisitions that were checked. */
  acquired = 0;
  /** Writes inside that the service took. */
  written = 0;

  /**
   * @param path exists; the parent of the list inside
   * @param mayHold who may hold it together. Default: one writer, or any number of readers
   */
  constructor(path: string, mayHold: (holders: readonly Access[]) => boolean = oneWriterOrReaders) {
    this.#path = path;
    this.#mayHold = mayHold;
  }

  /** A client has just got it. */
  onAcquired(host: string, held: Held, access: Access = 'write'): void {
    this.acquired++;
    if (access === 'write' && held.isHeld) {
      expect(held.token, `${host} comes after all who wrote`).toBeGreaterThan(this.#highest);
    }
    this.#holders.set(host, { held, access });
    this.check();
  }

  onReleased(host: string): void {
    this.#holders.delete(host);
  }

  /** Those who are sure may be. */
  check(): void {
    const sure = [...this.#holders].filter(([, { held }]) => held.isHeld);
    // Looked at so often that words are only made where they are needed.
    if (this.#mayHold(sure.map(([, { access }]) => access))) return;
    const hosts = sure.map(([host, { access }]) => `${host} (${access})`).join(', ');
    expect.fail(`${hosts} hold it together`);
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
  async checkWritten(client: Client): Promise<void> {
    const { children } = await client.children(this.#path);
    expect(children.length).toBeGreaterThanOrEqual(this.written);
    let last = 0n;
    for (const name of [...children].sort(compareBySequence)) {
      const { data } = await client.get(`${this.#path}/${name}`);
      const token = BigInt(new TextDecoder().decode(data));
      expect(token, `${name} comes from the holder of its time`).toBeGreaterThanOrEqual(last);
      last = token;
    }
  }
}

function oneWriterOrReaders(holders: readonly Access[]): boolean {
  return !holders.includes('write') || holders.length === 1;
}
