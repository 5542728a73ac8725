import type { Client, ZooKeeperError } from '@meerkat/client';
import { assert } from 'vitest';
import { outcomeOf } from './outcome.ts';

type EntryState = 'pending' | 'acknowledged' | 'unknown' | 'not-applied';

interface Entry {
  readonly name: string;
  state: EntryState;
  czxid: bigint;
}

/**
 * Creates znodes, records the outcome of each, and compares it with the tree:
 *
 * 1. An acknowledged znode exists, with the reported zxid.
 * 2. A znode rejected as 'not-applied' does not exist.
 * 3. Existing znodes were created in call order.
 */
export class WriteLedger {
  readonly #client: Client;
  readonly #parent: string;
  readonly #entries: Entry[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #counts: Record<EntryState, number> = { pending: 0, acknowledged: 0, unknown: 0, 'not-applied': 0 };
  /** All errors of writes. */
  readonly errors: ZooKeeperError[] = [];

  constructor(client: Client, parent: string) {
    this.#client = client;
    this.#parent = parent;
  }

  get length(): number {
    return this.#entries.length;
  }

  count(state: EntryState): number {
    return this.#counts[state];
  }

  /** Starts one write; resolves when it has settled. */
  write(options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {}): Promise<void> {
    const entry: Entry = { name: `w${String(this.#entries.length).padStart(6, '0')}`, state: 'pending', czxid: 0n };
    this.#entries.push(entry);
    this.#counts.pending++;
    const running = this.#write(entry, options).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Waits for all writes to settle. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** @param observer a client that bypasses the proxy */
  async check(observer: Client): Promise<void> {
    await observer.sync();
    const { children } = await observer.children(this.#parent);
    const there = new Set(children);
    let lastZxid = 0n;
    const stats = await Promise.all(
      this.#entries.map(({ name }) => (there.has(name) ? observer.exists(`${this.#parent}/${name}`) : null)),
    );
    this.#entries.forEach(({ name, state, czxid }, i) => {
      const stat = stats[i] ?? null;
      assert(state !== 'pending', `${name} is still pending`);
      if (state === 'acknowledged') {
        assert(stat !== null, `${name} was acknowledged and is lost`);
        assert(stat.czxid === czxid, `${name} was created in ${czxid}, and is there since ${stat.czxid}`);
      }
      if (state === 'not-applied') assert(stat === null, `${name} is said not to be applied, and is there`);
      if (stat === null) return;
      assert(stat.czxid > lastZxid, `${name} was created before the one before it`);
      lastZxid = stat.czxid;
    });
  }

  async #write(entry: Entry, options: { readonly signal?: AbortSignal; readonly timeoutMs?: number }): Promise<void> {
    const outcome = await outcomeOf(this.#client.create(`${this.#parent}/${entry.name}`, entry.name, options));
    if (outcome.ok) entry.czxid = outcome.value.stat.czxid;
    else this.errors.push(outcome.error);
    entry.state = outcome.ok ? 'acknowledged' : outcome.error.outcome;
    this.#counts.pending--;
    this.#counts[entry.state]++;
  }
}
