import {
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  nameOf,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import type { Holding } from '../locks/holding.ts';
import { waitFor } from '../locks/wait-for.ts';
import { Wait } from '../wait.ts';
import { isRace, membersOf, READY } from './ready.ts';

/** Being inside a double barrier: from the moment when all are there until all have left. */
export class Inside implements AsyncDisposable {
  /** Larger than that of every round before, and the same for all members of one. */
  readonly round: bigint;
  readonly #client: Client;
  readonly #path: string;
  readonly #member: Holding;
  readonly #leftovers: Set<string>;
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
    return this.#leaving === null && this.#member.isHeld;
  }

  /** Aborts when the session may be over: the others do not wait for us any more. Also once we have left. */
  get signal(): AbortSignal {
    return this.#member.signal;
  }

  /**
   * Leaves, and waits until all have left or lost their sessions; also when we have lost ours.
   *
   * @throws AbortedError, TimeoutError: we have left, and do not know of the others
   */
  leave(options: CallOptions = {}): Promise<void> {
    this.#leaving ??= this.#leave(options);
    return waitFor(this.#client, this.#leaving, options, { operation: 'Inside.leave', path: this.#path });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  async #leave(options: CallOptions): Promise<void> {
    const wait = new Wait(this.#client, options, { operation: 'Inside.leave', path: this.#path });
    try {
      while (!(await this.#step(wait)));
    } catch (error) {
      // The barrier's own znode is gone, so nobody is inside.
      if (error instanceof NoNodeError) return;
      this.#leftovers.add(this.#member.path);
      throw error;
    } finally {
      void this.#member.release();
    }
  }

  /**
   * One look at the members, and what follows from it.
   *
   * @returns whether everybody has left
   */
  async #step(wait: Wait): Promise<boolean> {
    const client = this.#client;
    const [{ children, stat }, ready] = await wait.through((call) =>
      Promise.all([client.children(this.#path, call), client.exists(joinPath(this.#path, READY), call)]),
    );
    const isOpen = ready?.czxid === this.round;
    const members = isOpen ? membersOf(children) : await this.#founders(membersOf(children), wait);
    const own = nameOf(this.#member.path);
    const isMember = this.#member.isHeld && members.includes(own);
    // A znode of ours that a lost session has left behind would count for the next round, so we wait for its end too.
    const others = members.filter((name) => name !== own || !isMember);
    if (others.length === 0) return await this.#end({ isMember, isOpen, version: stat.version }, wait);
    const isLowest = isMember && own < others[0]!;
    if (isMember && !isLowest) {
      await this.#member.release(wait.next());
      return false;
    }
    const awaited = isLowest ? others.at(-1)! : others[0]!;
    const found = await wait.through((call) => client.exists(joinPath(this.#path, awaited), { ...call, watch: true }));
    if (found.stat === null) return false;
    await wait.any([found.changed], isLowest ? { lost: this.#member.signal } : {});
    return false;
  }

  /**
   * Without the `ready` of our round only those belong to it who were there before it was made. All others may be those
   * of the next round, who will wait for us. (Our own members delete `ready` with the last of them; kazoo's first.)
   */
  async #founders(members: readonly string[], wait: Wait): Promise<string[]> {
    const stats = await wait.through((call) =>
      Promise.all(members.map((name) => this.#client.exists(joinPath(this.#path, name), call))),
    );
    return members.filter((_, i) => {
      const stat = stats[i];
      return stat !== null && stat !== undefined && stat.czxid < this.round;
    });
  }

  /** The last one ends the round, unless somebody has come in since `version`. */
  async #end({ isMember, isOpen, version }: LastLook, wait: Wait): Promise<boolean> {
    if (!isMember && !isOpen) return true;
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    if (isMember) transaction.delete(this.#member.path);
    if (isOpen) transaction.check(this.#path, { version }).delete(joinPath(this.#path, READY));
    try {
      await wait.through((call) => transaction.commit(call));
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
  /** The round's `ready` is still there. */
  readonly isOpen: boolean;
  /** Of the barrier's znode. */
  readonly version: number;
}
