import {
  type About,
  type CallOptions,
  type Children,
  type Client,
  joinPath,
  NoNodeError,
  nameOf,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  type Watched,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { asDoubtful } from '../kernel/doubt.ts';
import type { Holding } from '../kernel/holding.ts';
import { findFounder, isRace, membersOf, READY } from './ready.ts';

/** Membership in a round of a double barrier, from when all have entered until all have left. */
export class Inside implements AsyncDisposable {
  /** Larger than that of every earlier round, and the same for all members of a round. */
  readonly round: bigint;
  readonly #client: Client;
  readonly #path: string;
  readonly #member: Holding;
  readonly #leftovers: Set<string>;
  /** `leave` was called. */
  #hasLeft = false;
  /** In progress, or successful. */
  #leaving: Promise<void> | null = null;

  /** Created by `DoubleBarrier.enter`. */
  constructor(client: Client, path: string, member: Holding, round: bigint, leftovers: Set<string>) {
    this.round = round;
    this.#client = client;
    this.#path = path;
    this.#member = member;
    this.#leftovers = leftovers;
  }

  /** Whether we are certain to be a member, so that the others wait for us. */
  get isHeld(): boolean {
    return !this.#hasLeft && this.#member.isHeld;
  }

  /** Aborts when the session may be over, so that the others no longer wait for us. Also once we have left. */
  get signal(): AbortSignal {
    return this.#member.signal;
  }

  /**
   * Leaves, and waits until all have left or lost their sessions; also when we have lost ours. After a cancelled call
   * it may be called again, and waits for the others once more.
   *
   * @throws AbortedError, TimeoutError, ClosedError, of outcome 'unknown': we have left, but the others may not have
   */
  async leave(options: CallOptions = {}): Promise<void> {
    const about = { operation: 'Inside.leave', path: this.#path };
    const attempt = new Attempt(this.#client, options, about);
    this.#hasLeft = true;
    try {
      // An earlier call has its own limits.
      while (this.#leaving !== null) {
        const leaving = this.#leaving.then(
          () => true,
          () => false,
        );
        if (await attempt.waitFor(leaving)) return;
      }
    } catch (error) {
      throw asDoubtful(error, about);
    }
    this.#leaving = this.#leave(attempt, about);
    await this.#leaving;
  }

  /** Leaves and waits. Does nothing when `leave` was called and its wait was cancelled. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasLeft) await this.#leaving;
    else await this.leave();
  }

  async #leave(attempt: Attempt, about: About): Promise<void> {
    try {
      while (!(await this.#step(attempt)));
    } catch (error) {
      // The barrier's znode is gone, so no client is inside.
      if (error instanceof NoNodeError) return;
      this.#leftovers.add(this.#member.path);
      this.#leaving = null;
      throw asDoubtful(error, about);
    } finally {
      void this.#member.release();
    }
  }

  /**
   * Looks at the members once and acts on the result.
   *
   * @returns whether all have left
   */
  async #step(attempt: Attempt): Promise<boolean> {
    const client = this.#client;
    const { children, stat } = await this.#list(attempt);
    const own = nameOf(this.#member.path);
    const isMember = this.#member.isHeld && children.includes(own);
    const isOpen = children.includes(READY);
    // A znode that a lost session of ours has left behind would be counted for the next round, so we wait for its end,
    // too.
    const others = membersOf(children).filter((name) => name !== own || !isMember);
    if (others.length === 0) return await this.#end({ isMember, isOpen, version: stat.version }, attempt);
    const isLowest = isMember && own < others[0]!;
    const awaited = isLowest ? others.at(-1)! : others[0]!;
    const releasing = isMember && !isLowest ? this.#member.release(attempt.next()) : Promise.resolve();
    // If the look fails, no caller awaits this.
    releasing.catch(() => {});
    using found = await this.#watch(joinPath(this.#path, awaited), attempt);
    await releasing;
    if (found.stat === null) return false;
    let watched: Watched = found;
    // It entered while the round was open, or belongs to the next one and will wait for us.
    if (found.stat.czxid > this.round && !(isOpen && (await this.#isOpen(attempt)))) {
      const paths = others.map((name) => joinPath(this.#path, name));
      const founder = await findFounder(client, paths, this.round, attempt);
      if (founder === null) {
        await this.#member.release(attempt.next());
        return true;
      }
      watched = await this.#watch(founder, attempt);
    }
    using awaitedOne = watched;
    await attempt.any([awaitedOne.changed], isLowest ? { lost: this.#member.signal } : {});
    return false;
  }

  /**
   * Not older than the beginning of our round. The client may know of that only by an event, and may then connect to a
   * server that lags behind: its list would lack the other members.
   */
  async #list(attempt: Attempt): Promise<Children> {
    const listed = await attempt.through((call) => this.#client.children(this.#path, call));
    if (listed.stat.pzxid >= this.round) return listed;
    return attempt.through((call) => this.#client.children(this.#path, { ...call, read: 'linearizable' }));
  }

  #watch(path: string, attempt: Attempt): Promise<{ readonly stat: Stat | null } & Watched> {
    return attempt.through((call) => this.#client.exists(path, { ...call, watch: true }));
  }

  /**
   * Whether the existing `ready` belongs to our round. (Our last member deletes it with its own znode, kazoo's first
   * member does.)
   */
  async #isOpen(attempt: Attempt): Promise<boolean> {
    const ready = await attempt.through((call) => this.#client.exists(joinPath(this.#path, READY), call));
    return ready?.czxid === this.round;
  }

  /**
   * The last one ends the round, unless a client has entered since `version`. A `ready` without members is a leftover
   * of any round.
   */
  async #end({ isMember, isOpen, version }: LastLook, attempt: Attempt): Promise<boolean> {
    if (!isMember && !isOpen) return true;
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    if (isMember) transaction.delete(this.#member.path);
    if (isOpen) transaction.check(this.#path, { version }).delete(joinPath(this.#path, READY));
    try {
      await attempt.through((call) => transaction.commit(call));
      return true;
    } catch (error) {
      if (!(error instanceof TransactionError)) throw error;
      if (!isRace(error)) throw error.cause;
      return false;
    }
  }
}

interface LastLook {
  /** Our znode exists, and is the only one. */
  readonly isMember: boolean;
  /** `ready` exists. */
  readonly isOpen: boolean;
  /** Of the barrier's znode. */
  readonly version: number;
}
