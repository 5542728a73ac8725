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
 * Creates znodes, each once, remembers what the client said of each, and compares it with what is there.
 *
 * 1. What was acknowledged is there, with the zxid that was told.
 * 2. What was rejected as 'not-applied' is not there.
 * 3. What is there was created in the order of the calls.
 */
export class WriteLedger {
  readonly #client: Client;
  readonly #parent: string;
  readonly #entries: Entry[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #counts: Record<EntryState, number> = { pending: 0, acknowledged: 0, unknown: 0, 'not-applied': 0 };
  /** Everything that a write was rejected with. */
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

  /** Begins one write; resolves when it has ended one way or the other. */
  write(options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {}): Promise<void> {
    const entry: Entry = { name: `w${String(this.#entries.length).padStart(6, '0')}`, state: 'pending', czxid: 0n };
    this.#entries.push(entry);
    this.#counts.pending++;
    const running = this.#write(entry, options).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Everything that was begun has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** @param observer a client that sees the server as it is */
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
