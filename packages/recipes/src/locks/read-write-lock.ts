import { BadArgumentsError, type CallOptions, type Client, nameOf, parentOf } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { contend, tryContend } from '../kernel/contender.ts';
import type { Layout } from '../kernel/layout.ts';
import { type Contending, inspect, type Line } from '../kernel/line.ts';
import type { SharedLockOptions } from '../kernel/options.ts';
import { SEQUENCE_MAX, SequenceExhaustedError } from '../kernel/overflow.ts';
import { sequenceOf, withoutSequence } from '../kernel/sequence.ts';
import { sharedLockSettings } from '../kernel/settings.ts';
import { downgrade } from './downgrade.ts';
import { type Lock, takePlace } from './lock.ts';
import { requestRevocation } from './revocation.ts';

export type ReadWriteLockOptions = SharedLockOptions;

/**
 * A lock with many readers at a time, or one writer, in the order of the requests: a writer waits for the contender
 * ahead, a reader for the last writer ahead.
 *
 * @example
 * const lock = new ReadWriteLock(client, '/locks/catalogue');
 * {
 *   await using reading = await lock.acquireRead();
 * }
 * await using writing = await lock.acquireWrite({ timeoutMs: 10_000 });
 */
export class ReadWriteLock {
  readonly path: string;
  readonly #client: Client;
  readonly #readers: Line;
  readonly #writers: Line;

  constructor(client: Client, path: string, options: ReadWriteLockOptions = {}) {
    const settings = sharedLockSettings(options);
    const { read, write } = MARKERS[settings.layout];
    const line = { ...settings, path, markers: [read, write] };
    this.path = path;
    this.#client = client;
    this.#writers = { ...line, marker: write };
    this.#readers = { ...line, marker: read, blocker: (names, index) => lastWriter(names, index, write) };
  }

  /** @throws AbortedError, TimeoutError: nothing is held, and nothing of us is left in the line */
  acquireRead(options: CallOptions = {}): Promise<Lock> {
    return this.#acquire('acquireRead', this.#readers, options);
  }

  /** @throws AbortedError, TimeoutError: nothing is held, and nothing of us is left in the line */
  acquireWrite(options: CallOptions = {}): Promise<Lock> {
    return this.#acquire('acquireWrite', this.#writers, options);
  }

  /** null when a writer holds or awaits it. */
  tryAcquireRead(options: CallOptions = {}): Promise<Lock | null> {
    return this.#tryAcquire('tryAcquireRead', this.#readers, options);
  }

  /** null when any client holds or awaits it. */
  tryAcquireWrite(options: CallOptions = {}): Promise<Lock | null> {
    return this.#tryAcquire('tryAcquireWrite', this.#writers, options);
  }

  /** The holders and the waiters, the oldest first. */
  async contenders(options?: CallOptions): Promise<readonly ReadWriteContending[]> {
    const all = await inspect(this.#client, this.#all(), options);
    return all.map((one) => ({ ...one, wants: isMarked(nameOf(one.path), this.#writers.marker) ? 'write' : 'read' }));
  }

  /** Requests the release from the holders; see `Mutex.revoke`. */
  revoke(options: CallOptions = {}): Promise<boolean> {
    return requestRevocation(this.#client, this.#all(), options);
  }

  /**
   * Turns a write lock into a read lock, in one step: no other writer gets in between, and waiting readers get in. The
   * given handle, and all others of the write lock, are over from the call on.
   *
   * @throws NotHeldError; AbortedError, TimeoutError: nothing is held afterwards, neither for reading nor for writing
   * @throws BadArgumentsError when it is no write lock of this read/write lock; SequenceExhaustedError when it has the
   *   last number of an Apache server: it stays what it is
   * @example
   * const writing = await lock.acquireWrite();
   * await using reading = await lock.downgrade(writing);
   */
  async downgrade(writing: Lock, options: CallOptions = {}): Promise<Lock> {
    const { path } = writing;
    if (parentOf(path) !== this.path || !isMarked(nameOf(path), this.#writers.marker)) {
      // In another line its number would be ahead of the holder there.
      const detail = `it is no lock for writing of ${this.path}`;
      throw new BadArgumentsError({ operation: 'ReadWriteLock.downgrade', path, detail });
    }
    if (sequenceOf(nameOf(path)) === SEQUENCE_MAX) {
      // A client that got the number a second time decides by the order of creation, in which it would be older than
      // the reader.
      const consequence =
        'so that others would get in beside a reader with this one. Release it, and acquire it for reading';
      throw new SequenceExhaustedError(this.path, consequence);
    }
    return downgrade(this.#client, this.#readers, writing, options);
  }

  async #acquire(method: string, line: Line, options: CallOptions): Promise<Lock> {
    const attempt = this.#attempt(method, options);
    const place = await attempt.run(() => contend(line, attempt));
    return takePlace(this.#client, line, place);
  }

  async #tryAcquire(method: string, line: Line, options: CallOptions): Promise<Lock | null> {
    const attempt = this.#attempt(method, options);
    const place = await attempt.run(() => tryContend(line, attempt));
    return place && takePlace(this.#client, line, place);
  }

  #attempt(method: string, options: CallOptions): Attempt {
    const about = { operation: `ReadWriteLock.${method}`, path: this.path };
    return new Attempt(this.#client, options, about, { awaitsQuorum: true });
  }

  /** The line as seen by a client that is not in it. */
  #all(): Line {
    const { marker } = this.#writers;
    return {
      ...this.#writers,
      blocker: (names, index) =>
        isMarked(names[index], marker) ? (names[index - 1] ?? null) : lastWriter(names, index, marker),
    };
  }
}

export interface ReadWriteContending extends Contending {
  readonly wants: 'read' | 'write';
}

function lastWriter(names: readonly string[], index: number, marker: string): string | null {
  for (let i = index - 1; i >= 0; i--) if (isMarked(names[i], marker)) return names[i] ?? null;
  return null;
}

function isMarked(name: string | undefined, marker: string): boolean {
  return name !== undefined && withoutSequence(name).endsWith(marker);
}

const MARKERS: Readonly<Record<Layout, { readonly read: string; readonly write: string }>> = {
  curator: { read: '__READ__', write: '__WRIT__' },
  kazoo: { read: '__rlock__', write: '__lock__' },
};
