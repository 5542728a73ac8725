import { type Client, NoNodeError, nullableBytes, type WatchEvent, type WatchStream } from '@meerkat/client';
import type { ChangeInfo } from '../api/messages.ts';

/**
 * The changes under a path, in batches: at most ten per second, each with the data after the changes, as far as reading
 * keeps up. Memory is bounded: both the values kept for differences and the buffered events.
 */
export class ChangeFeed {
  readonly #client: Client;
  readonly #stream: WatchStream;
  /** The last known value of each znode, least recently changed first. */
  readonly #values: Map<string, string> = new Map();

  constructor(client: Client, path: string, signal: AbortSignal) {
    this.#client = client;
    this.#stream = client.watch(path, { recursive: true, bufferMax: EVENTS_MAX, signal });
  }

  get mode(): string | null {
    return this.#stream.mode;
  }

  /** Rejects when the watch cannot be armed. */
  get ready(): Promise<void> {
    return this.#stream.ready;
  }

  /** @throws when the session has ended because its credentials were refused */
  async *batches(): AsyncGenerator<readonly ChangeInfo[]> {
    while (!this.#stream.isOver) {
      await this.#stream.arrival();
      const batch: ChangeInfo[] = [];
      const atMs = Date.now();
      for (let event = this.#stream.take(); event !== null; event = this.#stream.take()) {
        if (event.type === 'gap') {
          batch.push({
            ...NOTHING,
            type: 'gap',
            path: this.#stream.path,
            atMs,
            missed: event.missed,
            reason: event.reason,
          });
        } else batch.push(plainChange(event, atMs));
        if (batch.length >= BATCH_MAX) break;
      }
      if (batch.length > 0) yield await this.#withValues(batch);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async #withValues(batch: readonly ChangeInfo[]): Promise<readonly ChangeInfo[]> {
    // Only the last change of a path shows the current data: it is not read for earlier ones.
    const last = new Map<string, number>();
    for (const [i, { path, type }] of batch.entries()) if (type === 'changed' || type === 'created') last.set(path, i);
    for (const { path, type } of batch) if (type === 'deleted') last.delete(path);
    const wanted = new Map([...last].slice(-VALUES_PER_BATCH).map(([path, i]) => [i, path]));
    return await Promise.all(
      batch.map(async (change, i) => {
        if (change.type === 'deleted') {
          const before = this.#values.get(change.path) ?? null;
          this.#values.delete(change.path);
          return { ...change, before };
        }
        return wanted.has(i) ? await this.#withValue(change) : change;
      }),
    );
  }

  async #withValue(change: ChangeInfo): Promise<ChangeInfo> {
    try {
      const { data, stat } = await this.#client.get(change.path, { timeoutMs: READ_MS, codec: nullableBytes });
      const value = shown(data);
      const before = this.#values.get(change.path) ?? null;
      this.#values.delete(change.path);
      this.#values.set(change.path, value);
      for (const oldest of this.#values.keys()) {
        if (this.#values.size <= VALUES_MAX) break;
        this.#values.delete(oldest);
      }
      const owner = stat.isEphemeral ? `0x${BigInt.asUintN(64, stat.ephemeralOwner).toString(16)}` : null;
      return { ...change, value, before, version: stat.version, owner };
    } catch (error) {
      if (error instanceof NoNodeError) return change;
      // It may not be readable, or not now: the change itself is reported nevertheless.
      return change;
    }
  }
}

const NOTHING: ChangeInfo = {
  type: 'changed',
  path: '',
  zxid: null,
  atMs: 0,
  value: null,
  before: null,
  version: null,
  owner: null,
  missed: null,
  reason: null,
};

function plainChange({ type, path, zxid }: WatchEvent, atMs: number): ChangeInfo {
  return { ...NOTHING, type, path, zxid: zxid === null ? null : `0x${zxid.toString(16)}`, atMs };
}

function shown(data: Uint8Array | null): string {
  if (data === null) return '';
  const text = new TextDecoder().decode(data.subarray(0, VALUE_LENGTH));
  return data.length > VALUE_LENGTH ? `${text}…` : text;
}

const EVENTS_MAX = 20_000;
const BATCH_MAX = 1000;
const PAUSE_MS = 100;
const VALUES_PER_BATCH = 100;
const VALUES_MAX = 2000;
const VALUE_LENGTH = 2000;
const READ_MS = 5000;
