import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import type { Held } from '../kernel/holding.ts';
import { compareBySequence } from '../kernel/sequence.ts';

/** The kind of ownership: `write` alone, `read` beside other readers. */
export type Access = 'write' | 'read';

/**
 * The checker of exclusive ownership. It has two stores:
 *
 * - an external one, which accepts a write only with a token that is not smaller than any it has seen;
 * - one in the service, a list of sequential znodes that holders append to with `guarded`.
 *
 * It checks that all clients that are certain at the same time may hold it together; that a new writer has a larger
 * token than all that wrote before; that no client writes to the list once a client with a larger token has.
 */
export class FencedStore {
  readonly #path: string;
  readonly #mayHold: (holders: readonly Access[]) => boolean;
  readonly #holders = new Map<string, { readonly held: Held; readonly access: Access }>();
  #highest = 0n;
  /** Number of checked acquisitions. */
  acquired = 0;
  /** Number of accepted writes to the list. */
  written = 0;

  /**
   * @param path exists; the parent of the list
   * @param mayHold whether these may hold it together. Default: one writer, or any number of readers
   */
  constructor(path: string, mayHold: (holders: readonly Access[]) => boolean = oneWriterOrReaders) {
    this.#path = path;
    this.#mayHold = mayHold;
  }

  /** A client has just acquired it. */
  onAcquired(host: string, held: Held, access: Access = 'write'): void {
    this.acquired++;
    if (access === 'write' && held.isHeld) {
      expect(held.token, `${host} comes after all earlier writers`).toBeGreaterThan(this.#highest);
    }
    this.#holders.set(host, { held, access });
    this.check();
  }

  onReleased(host: string): void {
    this.#holders.delete(host);
  }

  /** Checks that all certain holders may hold it together. */
  check(): void {
    const sure = [...this.#holders].filter(([, { held }]) => held.isHeld);
    // Called so often that messages are only formatted when needed.
    if (this.#mayHold(sure.map(([, { access }]) => access))) return;
    const hosts = sure.map(([host, { access }]) => `${host} (${access})`).join(', ');
    expect.fail(`${hosts} hold it together`);
  }

  /** An external write by a holder that believes to hold it. */
  writeOutside({ token }: Held): boolean {
    if (token < this.#highest) return false;
    this.#highest = token;
    return true;
  }

  async writeInside(held: Held): Promise<void> {
    await held.guarded.create(`${this.#path}/entry-`, held.token.toString(), { sequential: true });
    this.written++;
  }

  /** Checks the list: tokens never decrease. */
  async checkWritten(client: Client): Promise<void> {
    const { children } = await client.children(this.#path);
    expect(children.length).toBeGreaterThanOrEqual(this.written);
    let last = 0n;
    for (const name of [...children].sort(compareBySequence)) {
      const { data } = await client.get(`${this.#path}/${name}`);
      const token = BigInt(new TextDecoder().decode(data));
      expect(token, `${name} was written by the holder at that time`).toBeGreaterThanOrEqual(last);
      last = token;
    }
  }
}

function oneWriterOrReaders(holders: readonly Access[]): boolean {
  return !holders.includes('write') || holders.length === 1;
}
