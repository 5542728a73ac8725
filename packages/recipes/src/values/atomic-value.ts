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

/** What a contended value asks for its turn: a `Mutex`, or whatever else is acquired and given back. */
export interface TurnLock {
  acquire(options: CallOptions): Promise<AsyncDisposable>;
}

/** How updates that race with others go about it. */
export interface CounterOptions {
  /**
   * Taken by an update that has lost `attemptsBeforeLock` races, so that it has only those against it that have not.
   * Others who use the value need not know of it. Default: none.
   */
  readonly lock?: TurnLock | undefined;
  /** At least 1, default 5. */
  readonly attemptsBeforeLock?: number | undefined;
  /** Where writers leave word of what they have done, while they live. Default: the path followed by `.witnesses`. */
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
  /** Of the znode; null when it is missing, and was left so. */
  readonly version: number | null;
}

/**
 * A value that many change, each change upon the one before, none lost and none done twice.
 *
 * An update reads, asks what shall become of the value, and writes on the version that it has read; the client that was faster
 * makes it start again, after a pause that chance decides. When the reply to a write is lost, the witness that was
 * written in the same transaction says whether the write was carried out:
 *
 * 1. The value is read first, then the witness, both linearizable. If the value has another version than the one that
 *    the doubtful write expects, that write will not be carried out any more; the witness, read later, knows whether it
 *    was.
 * 2. If the value still has that version, the write may even now be on its way. It and its repetition expect the same
 *    version, so one of them at most is carried out; if the repetition is refused, (1) decides. So nothing else is written,
 *    and the caller is not asked what to write, before that is settled.
 * 3. The witness is ephemeral: nothing is left of a writer that is gone. So when the session is lost together with the
 *    reply, and others have changed the value since, it cannot be known. The update rejects then, `outcome: 'unknown'`.
 * 4. An update that leaves the value as it is, or fails by what it finds, has read it linearizable.
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
  /** Our own updates wait for each other instead of racing. */
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

  /** Sets it, whatever it was. */
  set(value: T, options?: CallOptions): Promise<AtomicUpdate<T>> {
    return this.update(() => value, options);
  }

  /** Sets it if it is as expected, as bytes. @returns whether it was */
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
   * Changes it.
   *
   * @param change makes the next value of the present one; undefined leaves it as it is. May be called several times. What it
   *   comes to after the caller's time is up is not written. May not wait for an update through the same object, which waits
   *   for this one
   * @throws AbortedError, TimeoutError, of outcome 'unknown' once a write may be under way; ConnectionLossError or
   *   SessionLostError of outcome 'unknown' when the session was lost with the reply and it cannot be known
   */
  update(
    change: (current: T, stat: Stat | null) => T | undefined | Promise<T | undefined>,
    options: CallOptions = {},
  ): Promise<AtomicUpdate<T>> {
    const before = this.#last;
    const update = this.#inTurn(before, change, options);
    // A caller that gives up before its turn does not make way for those behind it.
    this.#last = whenBothSettled(before, update);
    return update;
  }

  /** Takes the witness away. The value may be used on; then there is another. Never rejects. */
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
    // Updates that are under way may have to ask the witness.
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
        // What is left in doubt expects this very version: it is repeated as it was, and the caller is not asked again.
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
        // The first is tried again at once, and so is the client that has the lock.
        if (races > 1 && lock === null) await attempt.any([], { delayMs: this.#drawPause(races) });
      }
    } catch (error) {
      throw withDoubt(error, doubts[0]?.loss, about);
    } finally {
      if (lock !== null) await giveBack(lock, attempt);
    }
  }

  /**
   * What the caller makes of what was found. A server that lags behind would refuse a write; what it shows is no reason not to
   * write, nor to fail.
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
      // A change that takes its time is not waited for longer than the caller likes.
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

  /** @returns what has become of it; 'race' when another client was faster, 'again' when nothing was decided */
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
   * Which of the doubtful writes was carried out; the others are struck off once they cannot be any more.
   *
   * @param found read after the last of them
   * @throws the loss of one whose outcome cannot be known
   */
  async #settle(found: Found | null, doubts: Write<T>[], attempt: Attempt): Promise<AtomicUpdate<T> | null> {
    // The last first: if it was carried out, the outcomes of those before it do not matter.
    for (const write of doubts.toReversed()) {
      const testimony = await attempt.through((call) => this.#witness.ask(write.doubt, call));
      if (testimony === 'applied') {
        this.#witness.onApplied(write.doubt);
        return resultOf(write);
      }
      // A znode that is missing, as it was, may have been made and deleted since.
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

/** What is to be written, and what it is made of. */
interface Decision<T> {
  readonly before: T;
  readonly after: T;
  readonly data: Uint8Array | null;
}

/** A write in doubt, and upon what it was. */
interface Write<T> extends Decision<T> {
  readonly doubt: Doubt;
  readonly found: Found | null;
  /** How the reply got lost. */
  readonly loss: ZooKeeperError;
}

function resultOf<T>({ found, before, after }: Omit<Write<T>, 'loss'>): AtomicUpdate<T> {
  return { before, after, version: found === null ? 0 : (found.stat.version + 1) | 0 };
}

/** Not longer than the caller likes to wait, and whatever comes of it: the change is what it is. */
function giveBack(lock: AsyncDisposable, attempt: Attempt): Promise<void> {
  const giving = async (): Promise<void> => lock[Symbol.asyncDispose]();
  return attempt.any([giving().catch(() => {})]).catch(() => {});
}

/** It still is as it was read. */
function isVersionOf(now: Found | null, then: Found | null): boolean {
  if (now === null || then === null) return now === then;
  return now.stat.czxid === then.stat.czxid && now.stat.version === then.stat.version;
}

/** @throws RangeError for −1, which a server takes for "any": the number has gone round */
function checkedVersion({ version }: Stat, path: string): number {
  if (version === -1) throw new RangeError(`${path} has version -1 after 2^32 changes: delete it and create it again`);
  return version;
}

/** Milliseconds. */
const PAUSE_MAX_MS = 200;
const CLOSE_MS = 10_000;
