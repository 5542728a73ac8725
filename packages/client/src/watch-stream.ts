import { onAbort } from './abort.ts';
import { type Deferred, makeDeferred, makeQuietDeferred } from './deferred.ts';
import { BadArgumentsError, ClosedError, NoWatcherError } from './errors.ts';
import { WatchBuffer, type WatchStreamEvent } from './watch-buffer.ts';
import type { WatchPorts } from './watch-ports.ts';
import { type WatchMode, WatchSource } from './watch-source.ts';

export interface WatchOptions {
  /** Also reports the whole subtree, but no `children` events: creations and deletions imply those. Default false. */
  readonly recursive?: boolean | undefined;
  /** How many events are buffered for a slow consumer before the oldest are dropped. At least 1, default 1024. */
  readonly bufferMax?: number | undefined;
  /** When aborted, the watch is removed and the loop ends. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The changes of a znode, optionally with its subtree, from the moment the watch is armed (`ready`) until the loop is
 * left, `close` is called or the signal is aborted; each of these removes the watch. It survives connections and
 * sessions.
 *
 * 1. Events come in the order of the changes. A read after an event sees that change or a later state.
 * 2. After a lost connection a `gap` says that changes may be missing; it comes once the watch is rearmed, so that a
 *    read after it misses nothing.
 * 3. A consumer that falls behind by more than `bufferMax` events gets a `gap` in place of the oldest ones; it delays
 *    no other client.
 * 4. For servers before 3.6, without such watches, the stream uses one-shot watches (`mode`): changes in quick
 *    succession are reported as one, and a subtree may have at most 10,000 znodes.
 * 5. The loop ends when the client is closed. It throws when the watch cannot be armed, and when the client ends
 *    because its credentials are refused.
 *
 * @example
 * for await (const event of client.watch('/services', { recursive: true })) {
 *   if (event.type === 'gap') await reloadEverything();
 *   else console.log(`${event.path} was ${event.type}`);
 * }
 */
export class WatchStream implements AsyncIterable<WatchStreamEvent>, AsyncDisposable {
  /** The path that was passed. */
  readonly path: string;
  /**
   * The watch is armed: changes from now on are reported. Rejects when it cannot be; the rejection need not be handled.
   */
  readonly ready: Promise<void>;
  readonly #source: WatchSource;
  readonly #buffer: WatchBuffer;
  /** Removes the listener from the signal. */
  #releaseSignal: (() => void) | null = null;
  /** Callers that wait for an event, oldest first; the buffer is empty then. */
  #waiting: Deferred<IteratorResult<WatchStreamEvent, undefined>>[] = [];
  #hasConsumer = false;
  /** Resolved with the next arrival or the end; null while not requested. */
  #arrival: Deferred<void> | null = null;
  /** No more events come. */
  #isOver = false;
  /** Thrown once, after the buffered events. */
  #error: Error | null = null;

  /** @param flaw what is wrong with the options: the stream fails with it; null when nothing is */
  constructor(ports: WatchPorts, path: string, options: WatchOptions = {}, flaw: string | null = null) {
    const { recursive = false, bufferMax = BUFFER_MAX, signal } = options;
    const about = { operation: 'watch', path };
    const isBufferMaxGood = Number.isInteger(bufferMax) && bufferMax >= 1;
    const detail = isBufferMaxGood ? flaw : `bufferMax is ${bufferMax}, not a whole number of at least 1`;
    this.path = path;
    this.#buffer = new WatchBuffer(isBufferMaxGood ? bufferMax : 1);
    this.#source = new WatchSource(
      ports,
      path,
      recursive,
      {
        onEvent: (event) => {
          this.#buffer.push(event);
          this.#deliver();
        },
        onGap: (reason) => {
          this.#buffer.pushGap(reason);
          this.#deliver();
        },
        onEnd: (error) => this.#end(isGoodEnd(error) ? null : error),
      },
      about,
    );
    this.ready = this.#source.ready;
    if (detail !== null) this.#source.fail(new BadArgumentsError({ ...about, detail }));
    else if (!this.#isOver) this.#releaseSignal = onAbort(signal, this.#onAbort);
  }

  /** How changes are detected; null until it is `ready`. */
  get mode(): WatchMode | null {
    return this.#source.mode;
  }

  /** The events, to one loop: call `watch` again for a second one. */
  [Symbol.asyncIterator](): AsyncIterator<WatchStreamEvent, undefined> {
    if (this.#hasConsumer) {
      throw new TypeError(
        `the watch of ${this.path} has a consumer already, which would miss what another one takes; call watch again`,
      );
    }
    this.#hasConsumer = true;
    return {
      next: () => this.#next(),
      return: async () => {
        await this.close();
        return DONE;
      },
    };
  }

  /**
   * The oldest event that has arrived, without waiting; null when there is none. For callers that must process all
   * earlier events before they use a reply: the event of a change arrives before any reply that could show it. Beside a
   * loop it would take the loop's events.
   */
  take(): WatchStreamEvent | null {
    return this.#buffer.take();
  }

  /** Resolves when there is an event for `take`, at once when there already is, or when the stream is over. */
  arrival(): Promise<void> {
    if (this.#isOver || !this.#buffer.isEmpty) return Promise.resolve();
    this.#arrival ??= makeDeferred();
    return this.#arrival.promise;
  }

  /** No more events arrive; those that have arrived may still be taken. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Ends the stream. Resolves when the server has removed the watch, or there is no connection to it. Never rejects.
   */
  close(): Promise<void> {
    this.#buffer.clear();
    this.#error = null;
    this.#end(null);
    return this.#source.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #next(): Promise<IteratorResult<WatchStreamEvent, undefined>> {
    const event = this.#buffer.take();
    if (event !== null) return Promise.resolve({ done: false, value: event });
    if (this.#isOver) return this.#last();
    const waiting = makeQuietDeferred<IteratorResult<WatchStreamEvent, undefined>>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  #deliver(): void {
    this.#arrive();
    const waiting = this.#waiting.shift();
    if (waiting === undefined) return;
    const event = this.#buffer.take();
    if (event !== null) waiting.resolve({ done: false, value: event });
    else this.#waiting.unshift(waiting);
  }

  #end(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#arrive();
    this.#releaseSignal?.();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resolve } of waiting) resolve(this.#last());
  }

  #arrive(): void {
    this.#arrival?.resolve();
    this.#arrival = null;
  }

  #last(): Promise<IteratorResult<WatchStreamEvent, undefined>> {
    const error = this.#error;
    this.#error = null;
    return error === null ? Promise.resolve(DONE) : Promise.reject(error);
  }

  readonly #onAbort = (): void => void this.close();
}

const BUFFER_MAX = 1024;

const DONE: IteratorResult<WatchStreamEvent, undefined> = { done: true, value: undefined };

/** Ended by the user: by closing the client, or by removing all watches of the path. */
function isGoodEnd(error: Error): boolean {
  return error instanceof ClosedError || error instanceof NoWatcherError;
}
