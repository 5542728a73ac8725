import { AbortedError, type Client, ClosedError, joinPath, nameOf, SessionLostError } from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreRejection } from '../kernel/background.ts';
import { checkEndingMs } from '../kernel/bounds.ts';
import type { HeldOptions } from '../kernel/options.ts';
import { type HeldSettings, heldSettings } from '../kernel/settings.ts';
import type { Lock } from '../locks/lock.ts';
import { Mutex } from '../locks/mutex.ts';
import { Group, type Membership } from './group.ts';
import { Roster, type RosterEntries } from './roster.ts';

export interface SetPartitionerOptions extends HeldOptions {
  /** Our unique name among the members. */
  readonly identifier: string;
  /**
   * The members must have been the same for this many milliseconds before the set is divided, so that it is not divided
   * again for each of many processes that start. Default 30,000, as in kazoo.
   */
  readonly quietMs?: number | undefined;
  /**
   * Selects our items. Must be the same function in all processes. Default: as in kazoo, every n-th item from our index
   * among the members on, both sorted by code points.
   */
  readonly partition?: PartitionFunction | undefined;
}

export type PartitionFunction = (
  identifier: string,
  members: readonly string[],
  items: readonly string[],
) => readonly string[];

/**
 * Divides a set of items among its members, each item to one of them, and again whenever a member joins or leaves. The
 * znodes are those of kazoo's SetPartitioner: a party lists the members, and a lock per item ensures exclusivity.
 *
 *     <path>/party/<32 hex digits>-<identifier>
 *     <path>/locks/<item>/<32 hex digits>__lock__0000000007
 *
 * 1. An item is held by one member at a time, because of its lock, even if the members disagree about who is a member.
 * 2. When no member has joined or left for `quietMs`, and recalled shares are released, every item is held.
 *
 * @example
 * await using partitioner = new SetPartitioner(client, '/queues/owners', ['a', 'b', 'c'], { identifier: 'worker-1' });
 * for await (const share of partitioner) {
 *   await consume(share.items, { signal: share.recall }); // until a client comes or goes
 * } // the next share is asked for: this one is released
 */
export class SetPartitioner implements AsyncIterable<Share>, AsyncDisposable {
  readonly path: string;
  readonly identifier: string;
  readonly #client: Client;
  readonly #items: readonly string[];
  readonly #quietMs: number;
  readonly #partition: PartitionFunction;
  readonly #settings: HeldSettings;
  readonly #closing = new AbortController();
  readonly #attending: Attempt;
  readonly #roster: Roster;
  readonly #membership: Membership;
  /** What prevents us from taking part. */
  #failure: unknown = null;
  #share: Share | null = null;
  #hasConsumer = false;

  constructor(client: Client, path: string, items: Iterable<string>, options: SetPartitionerOptions) {
    const { identifier, quietMs = 30_000, partition = everyNth } = options;
    checkEndingMs('quietMs', quietMs);
    this.path = path;
    this.identifier = identifier;
    this.#client = client;
    this.#items = [...new Set(items)];
    this.#quietMs = quietMs;
    this.#partition = partition;
    this.#settings = heldSettings(options);
    const about = { operation: 'SetPartitioner', path };
    this.#attending = new Attempt(client, { signal: this.#closing.signal }, about, { awaitsQuorum: true });
    const party = joinPath(path, 'party');
    // After a quick restart, the previous member's znode would otherwise divide the set, too.
    this.#membership = new Group(client, party, { layout: 'kazoo-shallow', acl: this.#settings.acl }).join(identifier, {
      owner: identifier,
    });
    this.#roster = new Roster(client, party, { withData: false });
    void this.#attend();
  }

  /** Our current share; null between shares. */
  get share(): Share | null {
    return this.#share;
  }

  /**
   * One share after the other, to one loop. Requesting the next one, or ending the loop, releases the one before.
   *
   * @throws what prevents us from taking part, such as a NoAuthError
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Share, undefined> {
    if (this.#hasConsumer) throw new TypeError(`the shares of ${this.path} are being taken already`);
    this.#hasConsumer = true;
    try {
      for (;;) {
        const entries = await this.#whenQuiet();
        if (entries === null) return;
        const share = await this.#take(entries);
        if (share === null) continue;
        if (this.#closing.signal.aborted) {
          await share.release();
          return;
        }
        this.#share = share;
        yield share;
        await share.release();
        this.#share = null;
      }
    } finally {
      await this.close();
    }
  }

  /**
   * Releases our items, and stops taking part.
   *
   * @throws NoAuthError when the service refuses to delete a lock. Nothing happens when the promise is not awaited
   */
  close(): Promise<void> {
    return ignoreRejection(this.#end());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    this.#closing.abort();
    this.#roster.close();
    const share = this.#share;
    this.#share = null;
    try {
      await share?.release();
    } finally {
      await this.#membership.close();
    }
  }

  /** A client that cannot be a member gets an error instead of waiting for a share. */
  async #attend(): Promise<void> {
    try {
      for await (const _ of this.#membership.presence);
    } catch (error) {
      this.#failure = error;
      this.#roster.close();
    }
  }

  /** The members, once we are one of them and they have been stable for long enough; null at the end. */
  async #whenQuiet(): Promise<RosterEntries | null> {
    const { entries } = this.#roster;
    const own = nameOf(this.#membership.path);
    for (;;) {
      try {
        const present = await entries.when((members) => members.has(own));
        let isQuiet = true;
        const disturb = (): void => {
          isQuiet = false;
        };
        await this.#attending.any([entries.changed().then(disturb, disturb)], { delayMs: this.#quietMs });
        if (isQuiet && entries.current === present) return present;
      } catch (error) {
        if (this.#failure !== null) throw this.#failure;
        if (error instanceof AbortedError || error instanceof ClosedError) return null;
        throw error;
      }
    }
  }

  /** Acquires the locks of our items; null when a member joined or left meanwhile. */
  async #take(entries: RosterEntries): Promise<Share | null> {
    const recall = new AbortController();
    void this.#roster.entries.changed().then(
      () => recall.abort(),
      () => recall.abort(),
    );
    // They may have changed before we listened.
    if (this.#roster.entries.current !== entries) return null;
    const members = [...entries.keys()].map((name) => name.slice(name.indexOf('-') + 1));
    // Acquiring an item twice would wait for itself.
    const items = [...new Set(this.#partition(this.identifier, members, this.#items))];
    const taken = await Promise.allSettled(items.map((item) => this.#lock(item, recall.signal)));
    const locks = new Map<string, Lock>();
    let failure: unknown = null;
    for (const [i, result] of taken.entries()) {
      if (result.status === 'fulfilled') locks.set(items[i] as string, result.value);
      else failure = result.reason;
    }
    const share = new Share(locks, recall);
    if (failure === null) this.#attending.answered();
    if (failure === null && share.isHeld && !recall.signal.aborted) return share;
    await share.release();
    // Errors caused by the end of the session or client are reported by the roster, too.
    const isEnd = failure instanceof SessionLostError || failure instanceof ClosedError;
    if (failure !== null && !recall.signal.aborted && !isEnd) {
      await this.#attending.recover(failure).catch((error: unknown) => {
        if (!this.#closing.signal.aborted) throw error;
      });
    }
    return null;
  }

  #lock(item: string, signal: AbortSignal): Promise<Lock> {
    const path = joinPath(joinPath(this.path, 'locks'), item);
    const mutex = new Mutex(this.#client, path, { ...this.#settings, layout: 'kazoo' });
    return mutex.acquire({ signal });
  }
}

/** The items of a member, until it releases them or loses one. */
export class Share implements AsyncDisposable {
  /** By item. Each has its own token and guarded writes. */
  readonly locks: ReadonlyMap<string, Lock>;
  /** Aborts when the set has to be divided again, or an item was lost: finish and release the share. */
  readonly recall: AbortSignal;
  /** Aborts when an item is no longer certain to be ours, and when the share is released. */
  readonly signal: AbortSignal;
  readonly #released = new AbortController();

  /** Created by SetPartitioner. */
  constructor(locks: ReadonlyMap<string, Lock>, recall: AbortController) {
    this.locks = locks;
    // A share has no items when there are more members than items.
    this.signal = AbortSignal.any([this.#released.signal, ...[...locks.values()].map((lock) => lock.signal)]);
    this.recall = AbortSignal.any([recall.signal, this.signal]);
  }

  get items(): readonly string[] {
    return [...this.locks.keys()];
  }

  /** Whether all of it is certain to be ours at this moment. */
  get isHeld(): boolean {
    return [...this.locks.values()].every((lock) => lock.isHeld);
  }

  /**
   * Releases all of it.
   *
   * @throws NoAuthError when the service refuses to delete a lock, after the others are released. Nothing happens when
   *   the promise is not awaited
   */
  release(): Promise<void> {
    this.#released.abort();
    return ignoreRejection(this.#releaseLocks());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #releaseLocks(): Promise<void> {
    const released = await Promise.allSettled([...this.locks.values()].map((lock) => lock.release()));
    for (const result of released) if (result.status === 'rejected') throw result.reason;
  }
}

function everyNth(identifier: string, members: readonly string[], items: readonly string[]): readonly string[] {
  const workers = members.toSorted(compareCodePoints);
  const first = workers.indexOf(identifier);
  return items.toSorted(compareCodePoints).filter((_, i) => i % workers.length === first);
}

/** As Python orders text; JavaScript would sort characters beyond 0xffff before some below. */
function compareCodePoints(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
