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

/** Being inside a double barrier: from the moment when all are there until all have left. */
export class Inside implements AsyncDisposable {
  /** Larger than that of every round before, and the same for all members of one. */
  readonly round: bigint;
  readonly #client: Client;
  readonly #path: string;
  readonly #member: Holding;
  readonly #leftovers: Set<string>;
  /** A client has called `leave`. */
  #hasLeft = false;
  /** Under way, or successful. */
  #leaving: Promise<void> | null = null;

  /** Made by `DoubleBarrier.enter`. */
  constructor(client: Client, path: string, member: Holding, round: bigint, leftovers: Set<string>) {
    this.round = round;
    this.#client = client;
    this.#path = path;
    this.#member = member;
    this.#leftovers = leftovers;
  }

  /** Whether we are a member for certain: the others wait for us. */
  get isHeld(): boolean {
    return !this.#hasLeft && this.#member.isHeld;
  }

  /** Aborts when the session may be over: the others do not wait for us any more. Also once we have left. */
  get signal(): AbortSignal {
    return this.#member.signal;
  }

  /**
   * Leaves, and waits until all have left or lost their sessions; also when we have lost ours. A caller that has given up waiting
   * may call it again, and waits for the others once more.
   *
   * @throws AbortedError, TimeoutError, ClosedError, of outcome 'unknown': we have left, and do not know of the others
   */
  async leave(options: CallOptions = {}): Promise<void> {
    const about = { operation: 'Inside.leave', path: this.#path };
    const attempt = new Attempt(this.#client, options, about);
    this.#hasLeft = true;
    try {
      // An earlier call has limits of its own.
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

  /** Leaves and waits. Nothing happens any more when `leave` was called and its caller has given up waiting. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasLeft) await this.#leaving;
    else await this.leave();
  }

  async #leave(attempt: Attempt, about: About): Promise<void> {
    try {
      while (!(await this.#step(attempt)));
    } catch (error) {
      // The barrier's own znode is gone, so no client is inside.
      if (error instanceof NoNodeError) return;
      this.#leftovers.add(this.#member.path);
      this.#leaving = null;
      throw asDoubtful(error, about);
    } finally {
      void this.#member.release();
    }
  }

  /**
   * One look at the members, and what follows from it.
   *
   * @returns whether everyone has left
   */
  async #step(attempt: Attempt): Promise<boolean> {
    const client = this.#client;
    const { children, stat } = await this.#list(attempt);
    const own = nameOf(this.#member.path);
    const isMember = this.#member.isHeld && children.includes(own);
    const isOpen = children.includes(READY);
    // A znode of ours that a lost session has left behind would count for the next round, so we wait for its end too.
    const others = membersOf(children).filter((name) => name !== own || !isMember);
    if (others.length === 0) return await this.#end({ isMember, isOpen, version: stat.version }, attempt);
    const isLowest = isMember && own < others[0]!;
    const awaited = isLowest ? others.at(-1)! : others[0]!;
    const releasing = isMember && !isLowest ? this.#member.release(attempt.next()) : Promise.resolve();
    // If the look fails, too, no caller waits for it any more.
    releasing.catch(() => {});
    using found = await this.#watch(joinPath(this.#path, awaited), attempt);
    await releasing;
    if (found.stat === null) return false;
    let watched: Watched = found;
    // It came when the round was open, or belongs to the next one, who will wait for us.
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
   * Not as it was before our round began. Of that the client may know by an event alone, and then it may be connected next to
   * a server that has not come as far: there the others would not be there yet.
   */
  async #list(attempt: Attempt): Promise<Children> {
    const listed = await attempt.through((call) => this.#client.children(this.#path, call));
    if (listed.stat.pzxid >= this.round) return listed;
    return attempt.through((call) => this.#client.children(this.#path, { ...call, read: 'linearizable' }));
  }

  #watch(path: string, attempt: Attempt): Promise<{ readonly stat: Stat | null } & Watched> {
    return attempt.through((call) => this.#client.exists(path, { ...call, watch: true }));
  }

  /** Whether the `ready` that there is belongs to our round. (Our own members delete it with the last of them; kazoo's first.) */
  async #isOpen(attempt: Attempt): Promise<boolean> {
    const ready = await attempt.through((call) => this.#client.exists(joinPath(this.#path, READY), call));
    return ready?.czxid === this.round;
  }

  /**
   * The last one ends the round, unless a client has come in since `version`. A `ready` without members is left over, whichever
   * round it was of.
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
  /** Our znode is the only one. */
  readonly isMember: boolean;
  /** There is a `ready`. */
  readonly isOpen: boolean;
  /** Of the barrier's znode. */
  readonly version: number;
}
