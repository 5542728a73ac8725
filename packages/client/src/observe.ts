import { OpCode } from '@meerkat/protocol';
import { onAbort } from './abort.ts';
import type { Codec } from './codec/codec.ts';
import { decodeAt } from './codec/decode-at.ts';
import { DecodeError } from './codec/decode-error.ts';
import { type Deferred, makeDeferred, makeQuietDeferred } from './deferred.ts';
import { AbortedError, BadArgumentsError, ClosedError, NoNodeError, NoWatcherError } from './errors.ts';
import type { Znode } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import type { About } from './requester.ts';
import { RetryGate } from './retry-gate.ts';
import type { WatchPorts } from './watch-ports.ts';
import { WatchSource } from './watch-source.ts';

/** The state of a znode at one moment. */
export type Observed<T> =
  | { readonly exists: true; readonly data: T; readonly stat: Stat; readonly error: null }
  /** Its data is refused by the codec. */
  | { readonly exists: true; readonly data: undefined; readonly stat: Stat; readonly error: DecodeError }
  | { readonly exists: false; readonly data: undefined; readonly stat: null; readonly error: null };

export interface ObserveOptions {
  /** Ends the observation when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A znode's value, kept up to date until the observation is closed.
 *
 * 1. A loop gets the current value, then each change. A slow loop gets the newest value and skips those in between, so
 *    that nothing accumulates.
 * 2. The same value is not reported twice in a row, whatever happened to connections and sessions. Writing a znode
 *    again is a change also when the bytes are the same.
 * 3. Data that the codec refuses is reported (`error`) and ends nothing: the next value may be valid again.
 * 4. While disconnected, the value is the last one known; it is updated after the next connection.
 * 5. Leaving a loop ends the observation. To keep it, use `changed()` instead.
 * 6. The loop ends when the client is closed. It throws when the znode may not be read, and when the client ends
 *    because its credentials are refused.
 *
 * @example
 * await using config = client.observe('/config', json<Config>());
 * for await (const { exists, data, error } of config) {
 *   if (error !== null) console.error(error.message);
 *   else if (exists) apply(data);
 *   else console.log('there is no configuration');
 * }
 */
export class Observation<T> implements AsyncIterable<Observed<T>>, AsyncDisposable {
  /** The path that was passed. */
  readonly path: string;
  /** The first value. Rejects when the observation ends before; the rejection need not be handled. */
  readonly ready: Promise<Observed<T>>;
  readonly #ports: WatchPorts;
  readonly #codec: Codec<T>;
  readonly #about: About;
  /** Removes the listener from the signal. */
  #releaseSignal: (() => void) | null = null;
  readonly #source: WatchSource;
  readonly #retryGate: RetryGate;
  #current: Observed<T> | null = null;
  /** Incremented with each value, so that a loop knows whether it has had the current one. */
  #revision = 0;
  /** Settled with the next value, or with the end. */
  #next: Deferred<Observed<T>> = makeQuietDeferred();
  #isDirty = false;
  /** Resolved when a read is needed, or at the end. */
  #work: Deferred<void> = makeDeferred();
  /** Why it has ended. */
  #end: Error | null = null;

  /** @param flaw what is wrong with the options: the observation fails with it; null when nothing is */
  constructor(
    ports: WatchPorts,
    path: string,
    codec: Codec<T>,
    options: ObserveOptions = {},
    flaw: string | null = null,
  ) {
    const { signal } = options;
    this.path = path;
    this.#ports = ports;
    this.#codec = codec;
    this.#about = { operation: 'observe', path };
    this.#retryGate = new RetryGate(ports);
    this.ready = this.#next.promise;
    this.#source = new WatchSource(
      ports,
      path,
      false,
      {
        onEvent: ({ type }) => {
          if (type !== 'children') this.#read();
        },
        onGap: () => this.#read(),
        onEnd: (error) => this.#finish(error),
      },
      this.#about,
    );
    if (flaw !== null) this.#source.fail(new BadArgumentsError({ ...this.#about, detail: flaw }));
    else if (this.#end === null) this.#releaseSignal = onAbort(signal, this.#onAbort);
    void this.#run();
  }

  /** The newest value; null before `ready`. */
  get current(): Observed<T> | null {
    return this.#current;
  }

  /**
   * The next value after this moment. Rejects when the observation ends before; the rejection need not be handled.
   *
   * @example
   * while (observation.current?.data !== 'ready') await observation.changed();
   */
  changed(): Promise<Observed<T>> {
    return this.#next.promise;
  }

  /** The current value and each later change. Any number of loops may run. */
  [Symbol.asyncIterator](): AsyncIterator<Observed<T>, undefined> {
    // After the end, the last value may be long out of date.
    let revision = this.#end === null ? 0 : this.#revision;
    const next = async (): Promise<IteratorResult<Observed<T>, undefined>> => {
      while (revision === this.#revision && this.#end === null) await this.#next.promise.catch(() => undefined);
      const current = this.#current;
      if (current !== null && revision !== this.#revision) {
        revision = this.#revision;
        return { done: false, value: current };
      }
      if (this.#end === null || isGoodEnd(this.#end)) return DONE;
      throw this.#end;
    };
    return {
      next,
      return: async () => {
        await this.close();
        return DONE;
      },
    };
  }

  /** Ends the observation; `current` is kept. Resolves when the server has removed the watch. Never rejects. */
  close(): Promise<void> {
    this.#finish(new AbortedError({ ...this.#about, detail: 'the observation has ended' }));
    return this.#source.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Reads the value again. */
  #read(): void {
    this.#isDirty = true;
    this.#work.resolve();
  }

  async #run(): Promise<void> {
    try {
      await this.#source.ready;
      this.#read();
      while (this.#end === null) {
        await this.#work.promise;
        this.#work = makeDeferred();
        if (!this.#isDirty) continue;
        this.#isDirty = false;
        const znode = await this.#readZnode();
        if (znode !== undefined) await this.#take(znode);
      }
    } catch (error) {
      // Includes the error that the source has ended with, which is known already then.
      this.#finish(error as Error);
      void this.#source.close();
    }
  }

  /** null: it does not exist. undefined: it could not be read, and is dirty again. */
  async #readZnode(): Promise<Znode<Uint8Array | null> | null | undefined> {
    const ports = this.#ports;
    const path = ports.absolute(this.path, this.#about.operation);
    try {
      return await ports.request({ op: OpCode.getData, path, watch: false }, undefined, this.#about);
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      await this.#retryGate.after(error);
      this.#read();
      return undefined;
    }
  }

  async #take(znode: Znode<Uint8Array | null> | null): Promise<void> {
    if (isSame(this.#current, znode)) return;
    if (znode === null) {
      this.#publish({ exists: false, data: undefined, stat: null, error: null });
      return;
    }
    const { data, stat } = znode;
    try {
      const value = await decodeAt(this.#codec, data, this.path, this.#about.operation);
      this.#publish({ exists: true, data: value, stat, error: null });
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#publish({ exists: true, data: undefined, stat, error });
    }
  }

  #publish(value: Observed<T>): void {
    if (this.#end !== null) return;
    this.#current = value;
    this.#revision++;
    const { resolve } = this.#next;
    this.#next = makeQuietDeferred();
    resolve(value);
  }

  #finish(error: Error): void {
    if (this.#end !== null) return;
    this.#end = error;
    this.#releaseSignal?.();
    this.#retryGate.end();
    this.#work.resolve();
    this.#next.reject(error);
  }

  readonly #onAbort = (): void => void this.close();
}

const DONE: IteratorResult<never, undefined> = { done: true, value: undefined };

/** Ended by the user: by closing it or the client, or by removing all watches of the path. */
function isGoodEnd(error: Error): boolean {
  return error instanceof AbortedError || error instanceof ClosedError || error instanceof NoWatcherError;
}

/** Whether nothing has been written since. A znode that was deleted and recreated has another mzxid, too. */
function isSame(observed: Observed<unknown> | null, znode: Znode<unknown> | null): boolean {
  if (observed === null) return false;
  return observed.stat?.mzxid === znode?.stat.mzxid;
}
