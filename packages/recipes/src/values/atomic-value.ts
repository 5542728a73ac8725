import {
  BadVersionError,
  type CallOptions,
  type Client,
  type Codec,
  DecodeError,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  parentOf,
  type ReadConsistency,
  type ReadOptions,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  type ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { whenBothSettled } from '../kernel/background.ts';
import { checkLimit } from '../kernel/bounds.ts';
import { withDoubt } from '../kernel/doubt.ts';
import { isPassing } from '../kernel/failures.ts';
import { isSame } from '../kernel/same-bytes.ts';
import { type Doubt, Witness } from './witness.ts';

/** The lock of a contended value: a `Mutex`, or anything else that can be acquired and released. */
export interface TurnLock {
  acquire(options: CallOptions): Promise<AsyncDisposable>;
}

/** How updates handle contention. */
export interface CounterOptions {
  /**
   * Acquired by an update that has lost `attemptsBeforeLock` races, so that it competes only with updates that have
   * not. Other users of the value need not use it. Default: none.
   */
  readonly lock?: TurnLock | undefined;
  /** At least 1, default 5. */
  readonly attemptsBeforeLock?: number | undefined;
  /** The parent of the writers' ephemeral witnesses. Default: the path followed by `.witnesses`. */
  readonly witnesses?: string | undefined;
}

export interface AtomicValueOptions<T> extends CounterOptions {
  readonly codec: Codec<T>;
  /** The value of a znode that is missing or empty. */
  readonly initial: T;
}

export interface AtomicUpdate<T> {
  readonly before: T;
  readonly after: T;
  /** Of the znode; null when it was, and remains, missing. */
  readonly version: number | null;
}

/**
 * A value with many writers, each update based on the one before, none lost and none applied twice.
 *
 * An update reads, asks the caller for the next value, and writes conditionally on the version that it has read; after
 * a lost race it starts again, with a random delay. When the reply to a write is lost, the witness that was written in
 * the same transaction shows whether the write was applied:
 *
 * 1. The value is read first, then the witness, both linearizably. If the value has another version than the doubtful
 *    write expects, that write can no longer be applied; the witness, read later, shows whether it was.
 * 2. If the value still has that version, the write may still be in flight. It and its retry expect the same version,
 *    so at most one of them is applied; if the retry is refused, (1) decides. So nothing else is written, and the
 *    caller is not asked again, before that is settled.
 * 3. The witness is ephemeral: nothing is left of a writer that is gone. So when the session is lost together with the
 *    reply, and others have changed the value since, the outcome cannot be known. The update then rejects with
 *    `outcome: 'unknown'`.
 * 4. An update that leaves the value unchanged, or fails because of it, has read it linearizably.
 *
 * @example
 * const price = new AtomicValue(client, '/price', { codec: json<number>(), initial: 0 });
 * const { after } = await price.update((current) => current + 5);
 */
export class AtomicValue<T> implements AsyncDisposable {
  readonly path: string;
  readonly #client: Client;
  readonly #codec: Codec<T>;
  readonly #initial: T;
  readonly #lock: TurnLock | null;
  readonly #attemptsBeforeLock: number;
  readonly #witness: Witness;
  /** Our own updates are serialized instead of racing. */
  #last: Promise<void> = Promise.resolve();

  constructor(client: Client, path: string, options: AtomicValueOptions<T>) {
    const { codec, initial, lock = null, attemptsBeforeLock = 5, witnesses = `${path}.witnesses` } = options;
    checkLimit('attemptsBeforeLock', attemptsBeforeLock);
    this.path = path;
    this.#client = client;
    this.#codec = codec;
    this.#initial = initial;
    this.#lock = lock;
    this.#attemptsBeforeLock = attemptsBeforeLock;
    this.#witness = new Witness(client, witnesses);
  }

  async get(options: ReadOptions = {}): Promise<T> {
    const attempt = new Attempt(this.#client, options, { operation: 'AtomicValue.get', path: this.path });
    const found = await attempt.through((call) => this.#find({ ...call, read: options.read }));
    return this.#decode(found);
  }

  /** Sets it unconditionally. */
  set(value: T, options?: CallOptions): Promise<AtomicUpdate<T>> {
    return this.update(() => value, options);
  }

  /** Sets it if it equals `expected`, as bytes. @returns whether it did */
  async compareAndSet(expected: T, next: T, options?: CallOptions): Promise<boolean> {
    const due = this.#codec.encode(expected);
    let isExpected = false;
    await this.update((current) => {
      isExpected = isSame(this.#codec.encode(current), due);
      return isExpected ? next : undefined;
    }, options);
    return isExpected;
  }

  /** Sets it if the znode is missing. @returns whether it was */
  async initialize(value: T, options?: CallOptions): Promise<boolean> {
    let isMissing = false;
    await this.update((_, stat) => {
      isMissing = stat === null;
      return isMissing ? value : undefined;
    }, options);
    return isMissing;
  }

  /**
   * Updates it.
   *
   * @param change derives the next value from the current one; undefined leaves it unchanged. May be called several
   *   times. A result after the caller's deadline is not written. Must not wait for an update through the same object,
   *   which waits for this one
   * @throws AbortedError, TimeoutError, of outcome 'unknown' once a write may be in flight; ConnectionLossError or
   *   SessionLostError of outcome 'unknown' when the session was lost with the reply and the outcome cannot be known
   */
  update(
    change: (current: T, stat: Stat | null) => T | undefined | Promise<T | undefined>,
    options: CallOptions = {},
  ): Promise<AtomicUpdate<T>> {
    const before = this.#last;
    const update = this.#inTurn(before, change, options);
    // An update that is cancelled before its turn must not let later ones overtake earlier ones.
    this.#last = whenBothSettled(before, update);
    return update;
  }

  /** Removes the witness. The value can still be used; then another one is created. Never rejects. */
  close(): Promise<void> {
    const before = this.#last;
    const closing = this.#close(before);
    this.#last = whenBothSettled(before, closing);
    return closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(turn: Promise<unknown>): Promise<void> {
    const attempt = new Attempt(this.#client, {}, { operation: 'AtomicValue.close', path: this.path });
    // Updates in progress may have to read the witness.
    await attempt.any([turn], { delayMs: CLOSE_MS });
    await this.#witness.close();
  }

  async #inTurn(turn: Promise<unknown>, change: Change<T>, options: CallOptions): Promise<AtomicUpdate<T>> {
    const about = { operation: 'AtomicValue.update', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    const doubts: Write<T>[] = [];
    let lock: AsyncDisposable | null = null;
    let read: ReadConsistency = 'local';
    try {
      await attempt.any([turn]);
      for (let races = 0; ; ) {
        const found = await attempt.through((call) => this.#find({ ...call, read }));
        const applied = await this.#settle(found, doubts, attempt);
        if (applied !== null) return applied;
        // The remaining doubtful write expects this very version: it is retried unchanged, and the caller is not asked
        // again.
        const decision = doubts[0] ?? (await this.#decide(found, change, attempt, read));
        const isBehind = read === 'local';
        read = 'linearizable';
        if (decision === null && isBehind) continue;
        if (decision === null) {
          const before = await this.#decode(found);
          return { before, after: before, version: found?.stat.version ?? null };
        }
        const outcome = await this.#write(found, decision, doubts, attempt);
        if (typeof outcome === 'object') return outcome;
        if (outcome !== 'race' || doubts.length > 0) continue;
        races++;
        if (races >= this.#attemptsBeforeLock) lock ??= await this.#takeTurn(attempt);
        // The first retry is immediate, and so are those of a client with the lock.
        if (races > 1 && lock === null) await attempt.any([], { delayMs: this.#drawPause(races) });
      }
    } catch (error) {
      throw withDoubt(error, doubts[0]?.loss, about);
    } finally {
      if (lock !== null) await releaseLock(lock, attempt);
    }
  }

  /**
   * The caller's next value. A stale read from a lagging server would only make a write fail; but it must not be the
   * reason to write nothing, or to fail.
   *
   * @returns null when nothing is to be written upon that
   */
  async #decide(
    found: Found | null,
    change: Change<T>,
    attempt: Attempt,
    read: ReadConsistency,
  ): Promise<Decision<T> | null> {
    try {
      const before = await this.#decode(found);
      const changed = change(before, found?.stat ?? null);
      // A slow change is not awaited beyond the caller's deadline.
      if (changed instanceof Promise) await attempt.any([changed]);
      const after = await changed;
      return after === undefined ? null : { before, after, data: this.#codec.encode(after) };
    } catch (error) {
      if (read === 'local') return null;
      throw error;
    }
  }

  /** Also in the next session, if this one is lost meanwhile: nothing has been written that would be in doubt. */
  async #takeTurn(attempt: Attempt): Promise<AsyncDisposable | null> {
    const lock = this.#lock;
    return lock && attempt.prepare((call) => lock.acquire(call));
  }

  /** @returns the result; 'race' when another client was faster, 'again' when nothing was decided */
  async #write(
    found: Found | null,
    { before, after, data }: Decision<T>,
    doubts: Write<T>[],
    attempt: Attempt,
  ): Promise<AtomicUpdate<T> | 'race' | 'again'> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    if (found === null) transaction.create(this.path, data);
    else transaction.set(this.path, data, { version: checkedVersion(found.stat, this.path) });
    const doubt = this.#witness.note(transaction);
    const write = { doubt, found, before, after, data };
    try {
      await transaction.commit(attempt.next());
      this.#witness.onApplied(doubt);
      return resultOf(write);
    } catch (error) {
      if (error instanceof TransactionError) return this.#onRefused(error, found, attempt);
      if (!isPassing(error)) throw error;
      if (error.outcome === 'unknown') doubts.push({ ...write, loss: error });
      await attempt.reconnect();
      return 'again';
    }
  }

  async #onRefused(refusal: TransactionError, found: Found | null, attempt: Attempt): Promise<'race' | 'again'> {
    const { cause, index } = refusal;
    if (index === 1) {
      const isHelped = await attempt.prepare((call) => this.#witness.onRefused(cause, call));
      if (!isHelped) throw refusal;
      return 'again';
    }
    if (found === null && cause instanceof NoNodeError) {
      await attempt.prepare((call) => this.#client.ensurePath(parentOf(this.path), call));
      return 'again';
    }
    const isRace = [BadVersionError, NodeExistsError, NoNodeError].some((type) => cause instanceof type);
    if (!isRace) throw refusal;
    return 'race';
  }

  /**
   * Determines which of the doubtful writes was applied; the others are removed once they can no longer be.
   *
   * @param found read after the last of them
   * @throws the loss of one whose outcome cannot be known
   */
  async #settle(found: Found | null, doubts: Write<T>[], attempt: Attempt): Promise<AtomicUpdate<T> | null> {
    // The last first: if it was applied, the outcomes of earlier ones do not matter.
    for (const write of doubts.toReversed()) {
      const testimony = await attempt.through((call) => this.#witness.ask(write.doubt, call));
      if (testimony === 'applied') {
        this.#witness.onApplied(write.doubt);
        return resultOf(write);
      }
      // A znode that is missing, as it was before the write, may have been created and deleted since.
      if (isVersionOf(found, write.found) && (found !== null || testimony === 'not-applied')) continue;
      if (testimony === 'silent') throw write.loss;
      doubts.splice(doubts.indexOf(write), 1);
    }
    return null;
  }

  /** Milliseconds. */
  #drawPause(races: number): number {
    return (Math.min(2 ** races, PAUSE_MAX_MS) * this.#client.surroundings.random.uint32()) / 2 ** 32;
  }

  async #find(options: ReadOptions): Promise<Found | null> {
    try {
      return await this.#client.get(this.path, { ...options, codec: nullableBytes });
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  async #decode(found: Found | null): Promise<T> {
    if (found === null || found.data === null || found.data.length === 0) return this.#initial;
    try {
      return await this.#codec.decode(found.data);
    } catch (error) {
      throw new DecodeError('AtomicValue', this.path, found.data, error);
    }
  }
}

type Change<T> = (current: T, stat: Stat | null) => T | undefined | Promise<T | undefined>;

interface Found {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}

/** The data to be written, and what it was derived from. */
interface Decision<T> {
  readonly before: T;
  readonly after: T;
  readonly data: Uint8Array | null;
}

/** A write in doubt, and the state that it was based on. */
interface Write<T> extends Decision<T> {
  readonly doubt: Doubt;
  readonly found: Found | null;
  /** How the reply was lost. */
  readonly loss: ZooKeeperError;
}

function resultOf<T>({ found, before, after }: Omit<Write<T>, 'loss'>): AtomicUpdate<T> {
  return { before, after, version: found === null ? 0 : (found.stat.version + 1) | 0 };
}

/** Waits until the caller's deadline, and ignores failures: they do not affect the update. */
function releaseLock(lock: AsyncDisposable, attempt: Attempt): Promise<void> {
  const giving = async (): Promise<void> => lock[Symbol.asyncDispose]();
  return attempt.any([giving().catch(() => {})]).catch(() => {});
}

/** Whether it is unchanged since it was read. */
function isVersionOf(now: Found | null, then: Found | null): boolean {
  if (now === null || then === null) return now === then;
  return now.stat.czxid === then.stat.czxid && now.stat.version === then.stat.version;
}

/** @throws RangeError for −1, which a server takes for "any": the version has wrapped around */
function checkedVersion({ version }: Stat, path: string): number {
  if (version === -1) throw new RangeError(`${path} has version -1 after 2^32 changes: delete it and create it again`);
  return version;
}

/** Milliseconds. */
const PAUSE_MAX_MS = 200;
const CLOSE_MS = 10_000;
