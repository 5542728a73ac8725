import {
  AbortedError,
  BadVersionError,
  type CallOptions,
  type Client,
  ClosedError,
  type Codec,
  DecodeError,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nullableBytes,
  type Transaction,
  TransactionError,
  type TransactionResult,
  text,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { bestEffort } from '../kernel/background.ts';
import { checkLimit } from '../kernel/bounds.ts';
import { checkedName } from '../kernel/child-name.ts';
import { ignoreExisting } from '../kernel/failures.ts';
import { makeUuidHex } from '../kernel/layout.ts';
import { type Entry, type Ready, ReadyZnode } from './ready-znode.ts';

export interface PublishedSetOptions<T> {
  /** How a value is stored in its znode. */
  readonly codec: Codec<T>;
  /** The number of sets that are kept, including the one in force. At least 1, default 3. */
  readonly keep?: number | undefined;
  /** Maximum size of a transaction, bytes. The service refuses requests of more than 1 MiB. Default 512 KiB. */
  readonly transactionBytesMax?: number | undefined;
  /** Maximum number of znodes created by one transaction. Default 500. */
  readonly transactionZnodesMax?: number | undefined;
}

/** A published set. */
export interface PublishedEntries<T> {
  /** The name of its znode; an argument of `rollback`. */
  readonly name: string;
  /** Of the txn that put it in force. */
  readonly zxid: bigint;
  readonly entries: ReadonlyMap<string, T>;
}

/**
 * A set of znodes that are published together, too many or too large for one znode: readers get all of one set, and
 * never parts of two.
 *
 *     /flags/ready                         "set-0000000007-5b2f…\nset-0000000006-91c0…"   the first is in force
 *     /flags/set-0000000007-5b2f…/colour   "red"
 *     /flags/set-0000000007-5b2f…/size     "12"
 *     /flags/set-0000000006-91c0…/…        the one before, for rollback
 *
 * This is the ready znode of the ZooKeeper paper (section 2.3). There a leader deletes the znode, changes the
 * configuration, and recreates the znode; readers in between find none. Here the old set stays in force until the new
 * one is complete:
 *
 * 1. A set is written into new znodes that no other client knows, in as many transactions as it takes. Then one write,
 *    conditional on the version of *ready* that was read before, puts it in force. If everything fits into one
 *    transaction, only that one is sent.
 * 2. Sets never change. A set is deleted only after *ready* no longer names it.
 * 3. A reader reads *ready*, then the set, then *ready* again. A server's state never goes back, so if the set is still
 *    named then, it was complete before the first read and its deletion had not begun at the last. Otherwise the reader
 *    starts again.
 * 4. The number in a name is the version that *ready* has with it. A set that is not named, with a number that *ready*
 *    has reached, never will be: its publisher has died or is going to be refused. The next publisher deletes it.
 *
 * @example
 * const flags = new PublishedSet(client, '/flags', { codec: text });
 * await flags.publish({ colour: 'red', size: '12' });
 * for await (const { entries } of flags.observe()) apply(entries);
 */
export class PublishedSet<T> {
  readonly path: string;
  readonly #client: Client;
  readonly #codec: Codec<T>;
  readonly #ready: ReadyZnode;
  readonly #bytesMax: number;
  readonly #znodesMax: number;

  constructor(client: Client, path: string, options: PublishedSetOptions<T>) {
    const { codec, keep = 3, transactionBytesMax = 512 * 1024, transactionZnodesMax = 500 } = options;
    checkLimit('keep', keep);
    checkLimit('transactionBytesMax', transactionBytesMax);
    checkLimit('transactionZnodesMax', transactionZnodesMax);
    this.path = path;
    this.#client = client;
    this.#codec = codec;
    this.#ready = new ReadyZnode(client, path, keep);
    this.#bytesMax = transactionBytesMax;
    this.#znodesMax = transactionZnodesMax;
  }

  /**
   * Puts a new set in force.
   *
   * @param options `onlyAfter`: the name of the set that must be in force until then, null for none; default: any
   * @returns its name
   * @throws BadVersionError when another set is in force than `onlyAfter`; RangeError for an entry that is invalid as a
   *   znode name
   */
  async publish(
    entries: Readonly<Record<string, T>> | ReadonlyMap<string, T>,
    options: CallOptions & { readonly onlyAfter?: string | null | undefined } = {},
  ): Promise<string> {
    const attempt = this.#attempt('publish', options);
    const znodes = await this.#encode(entries);
    for (let round = 1; ; round++) {
      const ready = await attempt.through((call) => this.#ready.read(call, 'linearizable'));
      this.#checkInForce(ready, options.onlyAfter);
      const name = `set-${String(ready.version + 1).padStart(10, '0')}-${makeUuidHex(this.#client.surroundings.random)}`;
      const isWhole = znodes.length + 2 <= this.#znodesMax && sizeOf(znodes) <= this.#bytesMax;
      const isWritten = isWhole || (await this.#write(name, znodes, attempt));
      const isInForce = isWritten && (await this.#ready.putInForce(ready, name, isWhole ? znodes : null, attempt));
      if (isInForce) {
        await bestEffort(attempt, this.#prune());
        return name;
      }
      if (!isWhole) await bestEffort(attempt, this.#client.deleteRecursive(joinPath(this.path, name)));
      await this.#pause(round, attempt);
    }
  }

  /**
   * The set in force, as a whole; null when none was published yet.
   *
   * @throws NoNodeError when it was deleted by hand: there is none until another is put in force
   */
  async read(options: CallOptions = {}): Promise<PublishedEntries<T> | null> {
    const attempt = this.#attempt('read', options);
    for (let round = 1; ; round++) {
      const ready = await attempt.through((call) => this.#ready.read(call, round === 1 ? 'local' : 'linearizable'));
      const [name] = ready.names;
      if (name === undefined) return null;
      const entries = await this.#readSet(name, attempt);
      const after = await attempt.through((call) => this.#ready.read(call, 'local'));
      if (after.names.includes(name)) {
        if (entries !== null) return { name, zxid: ready.zxid, entries };
        // Publishers delete sets that are no longer named, and names are not reused.
        throw this.#deletedError(name);
      }
      await this.#pause(round, attempt);
    }
  }

  /**
   * The set in force, and then each that is put in force; a slow reader misses some, but never gets a part. A set that
   * was deleted by hand is skipped.
   */
  async *observe(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<PublishedEntries<T>> {
    let zxid = -1n;
    for await (const _ of this.#client.observe(this.#ready.path, text, options)) {
      const set = await this.#readIfAny(options);
      if (set === null || set.zxid <= zxid) continue;
      zxid = set.zxid;
      yield set;
    }
  }

  /**
   * Puts a former set in force again.
   *
   * @param options `to`: its name; default: the one before the one in force
   * @throws RangeError when it is not kept, or it was deleted
   */
  async rollback(options: CallOptions & { readonly to?: string | undefined } = {}): Promise<string> {
    const attempt = this.#attempt('rollback', options);
    /** The version of *ready*. */
    let refused = -1;
    for (let round = 1; ; round++) {
      const ready = await attempt.through((call) => this.#ready.read(call, 'linearizable'));
      const name = options.to ?? ready.names[1];
      // If no client was faster, the set itself was deleted.
      if (name === undefined || !ready.names.includes(name) || ready.version === refused) {
        throw new RangeError(`${name ?? 'a former set'} of ${this.path} is not kept`);
      }
      if (await this.#ready.putInForce(ready, name, null, attempt)) return name;
      refused = ready.version;
      await this.#pause(round, attempt);
    }
  }

  /** Names of the sets that are kept, the one in force first. */
  async history(options: CallOptions = {}): Promise<readonly string[]> {
    const attempt = this.#attempt('history', options);
    return (await attempt.through((call) => this.#ready.read(call, 'local'))).names;
  }

  /* ---------------------------------------------------------------------------------------------------- writing ---- */

  async #encode(entries: Readonly<Record<string, T>> | ReadonlyMap<string, T>): Promise<Entry[]> {
    const pairs: Iterable<readonly [string, T]> = Symbol.iterator in entries ? entries : Object.entries<T>(entries);
    const encoded: Entry[] = [];
    for (const [name, value] of pairs) {
      checkedName(name, 'an entry');
      const data = this.#codec.encode(value);
      // Nothing is published that a reader could not decode.
      await this.#decode(joinPath(this.path, name), data);
      encoded.push({ name, data });
    }
    return encoded;
  }

  /**
   * Writes in as many transactions as it takes; one that was applied before its reply was lost finds its znodes.
   *
   * @returns false when another publisher has taken it for an orphan: it can never be in force
   */
  async #write(name: string, entries: readonly Entry[], attempt: Attempt): Promise<boolean> {
    const root = joinPath(this.path, name);
    await attempt.prepare((call) => this.#client.createParents(root, null, call).catch(ignoreExisting));
    for (const part of this.#parts(entries)) {
      const isThere = await attempt.prepare((call) => this.#writePart(root, part, call));
      if (!isThere) return false;
    }
    return true;
  }

  /** @returns false when the set is gone */
  async #writePart(root: string, part: readonly Entry[], call: CallOptions): Promise<boolean> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    for (const entry of part) transaction.create(joinPath(root, entry.name), entry.data);
    try {
      await transaction.commit(call);
    } catch (error) {
      if (!(error instanceof TransactionError)) throw error;
      if (error.cause instanceof NoNodeError) return false;
      if (!(error.cause instanceof NodeExistsError)) throw error;
    }
    return true;
  }

  *#parts(entries: readonly Entry[]): Iterable<readonly Entry[]> {
    let part: Entry[] = [];
    for (const entry of entries) {
      const isFull = part.length >= this.#znodesMax || sizeOf(part) + sizeOf([entry]) > this.#bytesMax;
      if (isFull && part.length > 0) {
        yield part;
        part = [];
      }
      part.push(entry);
    }
    if (part.length > 0) yield part;
  }

  /** Deletes sets that *ready* no longer names, or never will. What cannot be deleted is left to the next publisher. */
  async #prune(): Promise<void> {
    try {
      const { names, version } = await this.#ready.read({}, 'linearizable');
      const { children } = await this.#client.children(this.path);
      const old = children.filter((name) => !names.includes(name) && (numberOf(name) ?? version + 1) <= version);
      await Promise.all(
        old.map((name) => this.#client.deleteRecursive(joinPath(this.path, name)).catch(ignoreService)),
      );
    } catch (error) {
      ignoreService(error);
    }
  }

  #checkInForce(ready: Ready, onlyAfter: string | null | undefined): void {
    const inForce = ready.names[0] ?? null;
    if (onlyAfter === undefined || onlyAfter === inForce) return;
    const detail = `in force is ${inForce ?? 'none'}, not ${onlyAfter ?? 'none'}`;
    throw new BadVersionError({ operation: 'PublishedSet.publish', path: this.path, outcome: 'not-applied', detail });
  }

  /* ---------------------------------------------------------------------------------------------------- reading ---- */

  #deletedError(name: string): NoNodeError {
    const detail = `${name} is in force and was deleted: publish another set, or roll back to a former one`;
    return new NoNodeError({ operation: 'PublishedSet.read', path: joinPath(this.path, name), detail });
  }

  /**
   * An observation that is ended by its user or client does not fail; a set that was deleted by hand leaves nothing to
   * show.
   */
  async #readIfAny(options: { readonly signal?: AbortSignal | undefined }): Promise<PublishedEntries<T> | null> {
    try {
      return await this.read(options);
    } catch (error) {
      if (error instanceof NoNodeError || error instanceof ClosedError) return null;
      if (options.signal?.aborted === true && error instanceof AbortedError) return null;
      throw error;
    }
  }

  /** null: it is being deleted. */
  async #readSet(name: string, attempt: Attempt): Promise<ReadonlyMap<string, T> | null> {
    const root = joinPath(this.path, name);
    try {
      const { children } = await attempt.through((call) => this.#client.children(root, call));
      const names = children.toSorted();
      const entries: Map<string, T> = new Map();
      for (let from = 0; from < names.length; from += READS_MAX) {
        const some = names.slice(from, from + READS_MAX);
        const found = await Promise.all(
          some.map((one) =>
            attempt.through((call) => this.#client.get(joinPath(root, one), { ...call, codec: nullableBytes })),
          ),
        );
        for (const [i, one] of some.entries())
          entries.set(one, await this.#decode(joinPath(root, one), found[i]!.data));
      }
      return entries;
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  async #decode(path: string, data: Uint8Array | null): Promise<T> {
    try {
      return await this.#codec.decode(data);
    } catch (error) {
      throw new DecodeError('PublishedSet', path, data, error);
    }
  }

  /** After a round without progress. */
  #pause(round: number, attempt: Attempt): Promise<void> {
    const { random } = this.#client.surroundings;
    const delayMs = (Math.min(2 ** round, 200) * random.uint32()) / 2 ** 32;
    return attempt.any([], { delayMs });
  }

  #attempt(method: string, options: CallOptions): Attempt {
    return new Attempt(this.#client, options, { operation: `PublishedSet.${method}`, path: this.path });
  }
}

/** An upper bound of the size in a request: data, and for each znode a path, an ACL and the rest. */
function sizeOf(entries: readonly Entry[]): number {
  // A UTF-16 code unit takes at most 3 bytes.
  return entries.reduce((sum, { name, data }) => sum + (data?.length ?? 0) + 3 * name.length + 200, 0);
}

/** null for a name that is not one of ours. */
function numberOf(name: string): number | null {
  const match = /^set-(\d{10})-[0-9a-f]{32}$/.exec(name);
  return match === null ? null : Number(match[1]);
}

function ignoreService(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error;
}

/** Maximum of reads in flight. */
const READS_MAX = 200;
