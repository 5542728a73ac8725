import { type Client, isZooKeeperError, NoNodeError, type WatchEvent, type WatchStreamEvent } from '@meerkat/client';
import { walkTree } from '../tree/tree-walk.ts';
import {
  type Change,
  childrenChange,
  deletion,
  found,
  foundChildren,
  gapChange,
  plainChange,
  writing,
} from './change.ts';
import { Picture, type Seen, seenOf } from './picture.ts';

export interface FeedOptions {
  readonly isRecursive: boolean;
  /** Reads the data of what changes, and keeps what it has read. */
  readonly readsValues: boolean;
  readonly signal: AbortSignal;
  /**
   * The watch is set, and everything has been read.
   *
   * @param isFull there is no room for more znodes, and there may be more
   * @param refused znodes that may not be read: the service reports none of their changes
   */
  readonly onReady: (znodes: number, isFull: boolean, refused: readonly string[]) => void;
}

/** Events that wait while znodes are read; beyond them there is a gap. */
const BUFFER_MAX = 16_384;
/** Events for which znodes are read at the same time. */
const BATCH_MAX = 256;

/**
 * The changes of a znode, or of everything below it as well, as rows: with the data before and after where they are known,
 * and behind a gap with what a comparison finds.
 */
export class ChangeFeed {
  readonly #client: Client;
  readonly #path: string;
  readonly #options: FeedOptions;
  readonly #picture = new Picture();
  /** Could not be read last time, so that it is unknown whether it has changed. */
  readonly #refused: Set<string> = new Set();
  /** Names, when the znode alone is watched. */
  #children: readonly string[] = [];

  constructor(client: Client, path: string, options: FeedOptions) {
    this.#client = client;
    this.#path = path;
    this.#options = options;
  }

  /** Ends with the signal, and with the client. */
  async *changes(): AsyncGenerator<Change, void, undefined> {
    const { isRecursive, signal, onReady } = this.#options;
    await using stream = this.#client.watch(this.#path, { recursive: isRecursive, bufferMax: BUFFER_MAX, signal });
    await stream.ready;
    for await (const _ of this.#look());
    onReady(this.#picture.size, this.#picture.isFull, [...this.#refused]);
    while (!stream.isOver) {
      await stream.arrival();
      for (;;) {
        const batch: WatchEvent[] = [];
        let last: WatchStreamEvent | null = stream.take();
        while (last !== null && last.type !== 'gap') {
          batch.push(last);
          last = batch.length < BATCH_MAX ? stream.take() : null;
        }
        if (batch.length === 0 && last === null) break;
        yield* this.#toChanges(batch);
        if (last?.type !== 'gap') continue;
        yield gapChange(last, this.#path, Date.now());
        yield* this.#look();
      }
    }
    // Over by a failure, which it throws.
    for await (const _ of stream);
  }

  async *#toChanges(events: readonly WatchEvent[]): AsyncGenerator<Change, void, undefined> {
    const timeMs = Date.now();
    if (!this.#options.readsValues) {
      for (const event of events) {
        if (event.type === 'children') yield await this.#toChildrenChange(event, timeMs);
        else yield plainChange(event, timeMs);
      }
      return;
    }
    /** Index of the last event of each path: only that one needs data. */
    const last = new Map<string, number>();
    for (const [i, { type, path }] of events.entries()) if (type !== 'children') last.set(path, i);
    const readings = events.map((event, i) => {
      return last.get(event.path) === i && event.type !== 'deleted' ? this.#read(event.path) : null;
    });
    // The client that leaves this loop early waits for none of them.
    for (const reading of readings) reading?.catch(() => {});
    for (const [i, event] of events.entries()) {
      const { path, type } = event;
      const before = this.#picture.get(path);
      if (type === 'children') yield await this.#toChildrenChange(event, timeMs);
      else if (type === 'deleted') {
        this.#picture.remove(path);
        this.#refused.delete(path);
        yield deletion(event, timeMs, before);
      } else {
        const after = (await readings[i]) ?? null;
        if (after === null) yield plainChange(event, timeMs, 'passed');
        else if (after === 'unreadable') {
          // Its creation has been reported: the next comparison does not report it again. Without room, it reports none.
          if (before === null && !this.#picture.isFull) this.#refused.add(path);
          yield plainChange(event, timeMs);
        } else {
          this.#refused.delete(path);
          this.#picture.put(path, after);
          yield writing(event, timeMs, before, after);
        }
      }
    }
  }

  /** @returns null when it was deleted */
  async #read(path: string): Promise<Seen | 'unreadable' | null> {
    try {
      const { data, stat } = await this.#client.get(path, { signal: this.#options.signal });
      return seenOf(stat, data);
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      if (isPassing(error)) return 'unreadable';
      throw error;
    }
  }

  async #toChildrenChange(event: WatchEvent, timeMs: number): Promise<Change> {
    const before = this.#children;
    const after = await this.#readChildren();
    if (after === null) return plainChange(event, timeMs, 'passed');
    this.#children = after;
    return childrenChange(event, timeMs, before, after);
  }

  async #readChildren(): Promise<readonly string[] | null> {
    try {
      return (await this.#client.children(this.#path, { signal: this.#options.signal })).children;
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      if (isPassing(error)) return null;
      throw error;
    }
  }

  /** Reads everything that is watched, and says how it differs from the picture so far. */
  async *#look(): AsyncGenerator<Change, void, undefined> {
    const { isRecursive, readsValues } = this.#options;
    const picture = this.#picture;
    const timeMs = Date.now();
    if (!isRecursive) {
      const children = await this.#readChildren();
      if (children !== null) {
        const change = foundChildren(this.#path, timeMs, this.#children, children);
        this.#children = children;
        if (change !== null) yield change;
      }
    }
    if (!readsValues) return;
    const wasWhole = picture.isWhole;
    picture.beginRound();
    try {
      for await (const { path, seen } of this.#znodes()) {
        const before = picture.get(path);
        const change = found(path, timeMs, before, seen);
        if (change === null) {
          picture.keep(path);
          continue;
        }
        if (before === null && picture.isFull) {
          // A znode that is not in the picture may have existed before.
          picture.isWhole = false;
          return;
        }
        picture.put(path, seen);
        const wasRefused = this.#refused.delete(path);
        if (before !== null || (wasWhole && !wasRefused)) yield change;
      }
    } catch (error) {
      // Another gap follows, or it cannot be read and is reported without data. What was in the picture still is.
      if (!isPassing(error)) throw error;
      return;
    }
    picture.isWhole = true;
    for (const path of picture.leftover()) {
      const change = found(path, timeMs, picture.get(path), null);
      picture.remove(path);
      if (change !== null) yield change;
    }
  }

  async *#znodes(): AsyncGenerator<{ readonly path: string; readonly seen: Seen }> {
    const { isRecursive, signal } = this.#options;
    try {
      if (isRecursive) {
        const onRefused = (path: string): void => void this.#refused.add(path);
        for await (const { path, stat, data } of walkTree(this.#client, this.#path, {
          withData: true,
          signal,
          onRefused,
        })) {
          yield { path, seen: seenOf(stat, data) };
        }
      } else {
        const { data, stat } = await this.#client.get(this.#path, { signal });
        yield { path: this.#path, seen: seenOf(stat, data) };
      }
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
    }
  }
}

/** The watch continues: there is no permission to read, or the connection or session is gone for now. */
function isPassing(error: unknown): boolean {
  return isZooKeeperError(error) && PASSING.has(error.code);
}

const PASSING: ReadonlySet<string> = new Set([
  'NOAUTH',
  'CONNECTIONLOSS',
  'SESSIONLOST',
  'SESSIONEXPIRED',
  'UNKNOWNSESSION',
]);
