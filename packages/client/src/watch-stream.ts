import { onAbort } from './abort.ts';
import { type Deferred, makeDeferred, makeQuietDeferred } from './deferred.ts';
import { BadArgumentsError, ClosedError, NoWatcherError } from './errors.ts';
import { WatchBuffer, type WatchStreamEvent } from './watch-buffer.ts';
import type { WatchPorts } from './watch-ports.ts';
import { type WatchMode, WatchSource } from './watch-source.ts';

export interface WatchOptions {
  /** Also learns of everything below the znode, but not of `children`: creations and deletions tell those. Default false. */
  readonly recursive?: boolean | undefined;
  /** How many events wait for a slow consumer before the oldest are dropped. At least 1, default 1024. */
  readonly bufferMax?: number | undefined;
  /** Aborted: the watch is removed and the loop ends. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The changes of a znode, or of everything below it too, from the moment the watch is armed (`ready`) until the loop is
 * left, `close` is called or the signal is aborted; each of these removes the watch. It outlives connections and
 * sessions.
 *
 * 1. Events come in the order of the changes. A read after an event sees that change or a later state.
 * 2. After a lost connection a `gap` says that changes may be missing; it comes once the watch is armed again, so that
 *    a read after it misses nothing.
 * 3. A consumer that is slower than the changes for longer than `bufferMax` events gets a `gap` in the place of the
 *    oldest ones; it delays no other client.
 * 4. Servers before 3.6 know no such watches. The stream is made of one-shot watches there (`mode`): changes that
 *    follow each other quickly are reported as one, and a subtree may have 10,000 znodes at the most.
 * 5. The loop ends when the client is closed. It throws when the watch cannot be armed, and when the client ends because
 *    its credentials are refused.
 *
 * @example
 * for await (const event of client.watch('/services', { recursive: true })) {
 *   if (event.type === 'gap') await reloadEverything();
 *   else console.log(`${event.path} was ${event.type}`);
 * }
 */
export class WatchStream implements AsyncIterable<WatchStreamEvent>, AsyncDisposable {
  /** As it was asked for. */
  readonly path: string;
  /** The watch is armed: what changes from now on is told. Rejects when it cannot be; the rejection need not be handled. */
  readonly ready: Promise<void>;
  readonly #source: WatchSource;
  readonly #buffer: WatchBuffer;
  /** Takes the listener off the signal. */
  #releaseSignal: (() => void) | null = null;
  /** Callers that wait for an event, oldest first; the buffer is empty then. */
  #waiting: Deferred<IteratorResult<WatchStreamEvent, undefined>>[] = [];
  #hasConsumer = false;
  /** Resolved with the next arrival or the end; null while not asked for. */
  #arrival: Deferred<void> | null = null;
  /** Nothing comes any more. */
  #isOver = false;
  /** Thrown once, after what is still in the buffer. */
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

  /** How changes are learned of; null until it is `ready`. */
  get mode(): WatchMode | null {
    return this.#source.mode;
  }

  /** The events, once: call `watch` again for a second loop. */
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
   * What has arrived, oldest first, without waiting; null when nothing is there. For callers that must know that it has had
   * everything before it believes a reply: a change that a reply could show is here when that reply is. Beside a loop it
   * would take the loop's events.
   */
  take(): WatchStreamEvent | null {
    return this.#buffer.take();
  }

  /** Resolves when something has arrived that `take` gives, at once when it has already, or when the stream is over. */
  arrival(): Promise<void> {
    if (this.#isOver || !this.#buffer.isEmpty) return Promise.resolve();
    this.#arrival ??= makeDeferred();
    return this.#arrival.promise;
  }

  /** Nothing arrives any more; what has arrived may still be taken. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends the stream. Resolves when the server has forgotten the watch, or there is no connection to it. Never rejects. */
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

/** The user has ended it: by closing the client, or by taking all watches off the path. */
function isGoodEnd(error: Error): boolean {
  return error instanceof ClosedError || error instanceof NoWatcherError;
}
