import {
  type CallOptions,
  type Client,
  type Data,
  joinPath,
  NodeExistsError,
  NoNodeError,
  nameOf,
  type Transaction,
  TransactionError,
  type TransactionResult,
} from '@meerkat/client';
import { type Layout, makeUuidHex } from '../layout.ts';
import { Holding } from '../locks/holding.ts';
import { removeZnode } from '../locks/removal.ts';
import { waitFor } from '../locks/wait-for.ts';
import { isPassing, Wait, type Waiting } from '../wait.ts';
import { Inside } from './inside.ts';
import { ignoreMissing, isRace, membersOf, READY } from './ready.ts';

/*
 * A double barrier: so many processes begin together and end together.
 *
 *     /barrier                                  its version is raised by everybody who comes in
 *       5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21    a member: ephemeral, named by a UUID (kazoo: without dashes)
 *       0d1e…                                   another one
 *       ready                                   there were enough of them: the barrier is open
 *
 * Entering: make a znode, list the members. Whoever sees enough makes `ready`, in one transaction that also checks every
 * member it has counted; the others watch `ready`, and nothing else.
 *
 * Leaving, as the manual has it, with one watch each: the lowest member waits for the highest, everybody else deletes its
 * znode and waits for the lowest. The last one deletes its znode and `ready` in one transaction.
 *
 * What is safe, and why:
 *
 * 1. Nobody is let in before enough members are there at one moment: the transaction that makes `ready` checks them.
 * 2. Nobody leaves before every member of its round has left or lost its session. A round is known by the zxid of its
 *    `ready`. Those who wait go on when there is no member at all, or when `ready` is gone, or another one, and no member
 *    is left that is older than it.
 * 3. Rounds do not run into each other: nobody can come in between the last look at the members and the deletion of
 *    `ready`, because coming in raises the version of the barrier's znode, which that transaction checks. Curator and kazoo
 *    delete `ready` by itself, so with these in the fleet a round should not begin before the last one is over for all.
 * 4. A member that dies is gone with its session, and whoever waits for it is woken by that. When all have died, `ready`
 *    is left over without a member; whoever comes then removes it and begins a new round.
 */

export interface DoubleBarrierOptions {
  /** Who else uses it: decides the names of the members. Default 'curator'. */
  readonly layout?: Layout | undefined;
  /** What our znode tells about us; kazoo writes host and process. Default: nothing. */
  readonly data?: Data | undefined;
}

/**
 * Lets so many processes begin together and end together.
 *
 * @example
 * const barrier = new DoubleBarrier(client, '/round', 3);
 * await using inside = await barrier.enter(); // all three are there
 * await compute();
 * await inside.leave(); // all three are done
 */
export class DoubleBarrier {
  readonly path: string;
  readonly memberCount: number;
  readonly #client: Client;
  readonly #options: DoubleBarrierOptions;
  /** Settled when calls that were given up make no znodes any more. */
  #removed: Promise<unknown> = Promise.resolve();
  /** Znodes of ours that may still be there. */
  readonly #leftovers = new Set<string>();

  /** @param memberCount how many have to be there; whoever comes when it is open already comes in, too */
  constructor(client: Client, path: string, memberCount: number, options: DoubleBarrierOptions = {}) {
    if (!Number.isInteger(memberCount) || memberCount < 1) {
      throw new RangeError(`a double barrier has at least one member, not ${memberCount}`);
    }
    this.path = path;
    this.memberCount = memberCount;
    this.#client = client;
    this.#options = options;
  }

  /**
   * Waits until enough members are there. Goes through lost connections, and through a lost session with a new znode.
   *
   * @throws AbortedError, TimeoutError: we are no member any more
   */
  async enter(options: CallOptions = {}): Promise<Inside> {
    const about = { operation: 'DoubleBarrier.enter', path: this.path };
    const wait = new Wait(this.#client, options, about);
    await this.#clear(wait, about);
    // One name for the whole call, whatever sessions it goes through, so that it has one znode at a time.
    const path = joinPath(this.path, this.#makeName());
    for (;;) {
      // A znode that comes when the caller has given up already is removed.
      const limits = wait.next();
      const joining = this.#join(path);
      const member = await waitFor(this.#client, joining, limits, about).catch((error: unknown) => {
        this.#giveUp(path, joining);
        throw error;
      });
      if (member === null) {
        await wait.recover();
        continue;
      }
      let round: bigint | null = null;
      try {
        round = await this.#awaitReady(member, wait);
        if (round !== null) return new Inside(this.#client, this.path, member, round, this.#leftovers);
      } finally {
        if (round === null) this.#giveUp(path, Promise.resolve(member));
      }
    }
  }

  #giveUp(path: string, joining: Promise<Holding | null>): void {
    this.#leftovers.add(path);
    const removal = joining.then((member) => member?.release()).catch(() => {});
    this.#removed = Promise.all([this.#removed, removal]);
  }

  /** Of earlier calls that were given up znodes may be left, also of lost sessions: with these we would count twice. */
  async #clear(wait: Wait, about: Waiting): Promise<void> {
    await waitFor(this.#client, this.#removed, wait.next(), about);
    for (const path of this.#leftovers) {
      await wait.through((call) => this.#client.delete(path, call).catch(ignoreMissing));
      this.#leftovers.delete(path);
    }
  }

  /** Makes our znode. @returns null when the session ended meanwhile, or there is none */
  async #join(path: string): Promise<Holding | null> {
    const client = this.#client;
    const lost = client.lostSignal;
    const sessionId = client.session?.id;
    if (sessionId === undefined) return null;
    // Nobody else uses the name, so the creation may be repeated until it is answered.
    try {
      while (!lost.aborted && client.session?.id === sessionId) {
        if (!(await this.#create(path))) continue;
        const stat = await client.exists(path);
        if (stat === null || lost.aborted) break;
        if (stat.ephemeralOwner !== sessionId) {
          // An earlier session of this call has left it behind.
          await client.delete(path).catch(ignoreMissing);
          continue;
        }
        return new Holding(client, { path, stat }, lost);
      }
    } catch (error) {
      void removeZnode(client, path, sessionId);
      if (!isPassing(error)) throw error;
      return null;
    }
    void removeZnode(client, path, sessionId);
    return null;
  }

  /** @returns whether it is there; false: to be tried again */
  async #create(path: string): Promise<boolean> {
    const client = this.#client;
    try {
      const { children, stat } = await client.children(this.path);
      // All members of a round have died, and nobody was left to end it.
      const isLeftOver = children.length === 1 && children[0] === READY;
      const transaction: Transaction<TransactionResult[]> = client.transaction();
      if (isLeftOver) transaction.delete(joinPath(this.path, READY));
      transaction.set(this.path, '', isLeftOver ? { version: stat.version } : {});
      transaction.create(path, this.#options.data ?? '', { mode: 'ephemeral' });
      await transaction.commit();
      return true;
    } catch (error) {
      if (error instanceof NoNodeError) await client.ensurePath(this.path, { mode: 'container' });
      else if (error instanceof TransactionError) {
        if (error.cause instanceof NodeExistsError) return true;
        if (!isRace(error)) throw error.cause;
      } else if (isPassing(error)) await client.whenConnected();
      else throw error;
      return false;
    }
  }

  /** @returns the round that we are in, the zxid of the creation of its `ready`; null when the session was lost */
  async #awaitReady(member: Holding, wait: Wait): Promise<bigint | null> {
    const client = this.#client;
    const readyPath = joinPath(this.path, READY);
    try {
      while (!member.signal.aborted) {
        const ready = await wait.through((call) => client.exists(readyPath, { ...call, watch: true }));
        if (ready.stat !== null) return member.isHeld ? ready.stat.czxid : null;
        const { children } = await wait.through((call) => client.children(this.path, call));
        const others = membersOf(children).filter((name) => name !== nameOf(member.path));
        if (others.length + 1 < this.memberCount) await wait.any([ready.changed], { lost: member.signal });
        else await this.#open([member.path, ...others.map((name) => joinPath(this.path, name))], wait);
      }
      return null;
    } catch (error) {
      // The barrier's own znode is gone, and ours with it.
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** Makes `ready` if so many of these are still there; whether it was done, the next look tells. */
  async #open(members: readonly string[], wait: Wait): Promise<void> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    for (const path of members.slice(0, this.memberCount)) transaction.check(path);
    transaction.create(joinPath(this.path, READY), '');
    try {
      await wait.through((call) => transaction.commit(call));
    } catch (error) {
      if (!(error instanceof TransactionError)) throw error;
      if (!isRace(error)) throw error.cause;
    }
  }

  /** As the library of the layout names its members. */
  #makeName(): string {
    const hex = makeUuidHex(this.#client.surroundings.random);
    if (this.#options.layout === 'kazoo') return hex;
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }
}
