import {
  type CallOptions,
  type Children,
  type Client,
  type CreatedInTransaction,
  type Data,
  joinPath,
  NodeExistsError,
  nameOf,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  type Watched,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { whenBothSettled } from '../kernel/background.ts';
import { asDoubtful, asHarmless, Uncertainty } from '../kernel/doubt.ts';
import { ignoreMissing, isPassing, nullIfMissing } from '../kernel/failures.ts';
import { Holding } from '../kernel/holding.ts';
import { checkLayout, LAYOUTS, type Layout, makeUuidHex } from '../kernel/layout.ts';
import { LossStreak } from '../kernel/loss-streak.ts';
import { removeZnode } from '../kernel/removal.ts';
import { NO_MARGIN } from '../kernel/settings.ts';
import { Inside } from './inside.ts';
import { awaitCreation, findFounder, isRace, membersOf, READY } from './ready.ts';

/*
 * A double barrier: so many processes begin together and end together.
 *
 *     /barrier                                  its version is raised by everyone who comes in
 *       5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21    a member: ephemeral, named by a UUID (kazoo: without dashes)
 *       0d1e…                                   another one
 *       ready                                   there were enough of them: the barrier is open
 *
 * Entering: watch `ready`, and create a znode if it is not there. The transaction that makes it also says how many children
 * were there before, so only those who may be enough list them. The client that sees enough makes `ready`, in one transaction that
 * checks every member it has counted. The event of its creation has all that the others need: its zxid is that of `ready`,
 * and larger than that of their own znode, so they were there.
 *
 * Leaving, as the manual has it, with one watch each: the lowest member waits for the highest, every other client deletes its
 * znode and waits for the lowest. The last one deletes its znode and `ready` in one transaction.
 *
 * What is safe, and why:
 *
 * 1. No client is let in before enough members are there at one moment: the transaction that makes `ready` checks them.
 * 2. The client that comes later than `ready` is let in while one of those is inside who are older than it. They were counted, so
 *    the barrier is open; and a server that lags behind its leader cannot make one come in where all are gone.
 * 3. No client leaves before every member of its round has left or lost its session. A round is known by the zxid of its
 *    `ready`. Those who wait continue when there is no member at all, or when `ready` is gone, or another one, and no member
 *    is left that is older than it.
 * 4. Rounds do not run into each other: no client can come in between the last look at the members and the deletion of
 *    `ready`, because coming in raises the version of the barrier's znode, which that transaction checks. Curator and kazoo
 *    delete `ready` by itself, so with these in the fleet a round should not begin before the last one is over for all.
 * 5. A member that dies is gone with its session, and a caller that waits for it is woken by that. When all have died, `ready`
 *    is left over without a member; the client that comes then removes it and begins a new round.
 */

export interface DoubleBarrierOptions {
  /** Who else uses it: decides the names of the members. Default 'curator'. */
  readonly layout?: Layout | undefined;
  /** What our znode reports about us; kazoo writes host and process. Default: nothing. */
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
  #removed: Promise<void> = Promise.resolve();
  /** Znodes of ours that may still be there. */
  readonly #leftovers = new Set<string>();
  /** Znodes of calls that continue, which come again by the same name. */
  readonly #coming = new Set<string>();

  /** @param memberCount how many have to be there; the client that comes when it is open already comes in, too */
  constructor(client: Client, path: string, memberCount: number, options: DoubleBarrierOptions = {}) {
    if (!Number.isInteger(memberCount) || memberCount < 1) {
      throw new RangeError(`a double barrier has at least one member, not ${memberCount}`);
    }
    checkLayout(options.layout ?? 'curator', LAYOUTS);
    this.path = path;
    this.memberCount = memberCount;
    this.#client = client;
    this.#options = options;
  }

  /**
   * Waits until enough members are there. Goes through lost connections, and through a lost session with a new znode.
   *
   * @throws AbortedError, TimeoutError, ClosedError: we are no member any more, but others may have come in and counted us
   *   (outcome 'unknown'; 'not-applied' if our znode was not even made); RequestTooLargeError also when servers close the
   *   connection because of `data`
   */
  async enter(options: CallOptions = {}): Promise<Inside> {
    const about = { operation: 'DoubleBarrier.enter', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    const path = joinPath(this.path, this.#makeName());
    const coming: Coming = { path, mayBeCounted: false, losses: new LossStreak() };
    try {
      await this.#clear(attempt);
      this.#coming.add(coming.path);
      for (;;) {
        const inside = await this.#come(coming, attempt);
        if (inside === null) continue;
        // It may have been left over on the way, and is not any more.
        this.#leftovers.delete(coming.path);
        return inside;
      }
    } catch (error) {
      throw coming.mayBeCounted ? asDoubtful(error, about) : asHarmless(error, about);
    } finally {
      this.#coming.delete(coming.path);
    }
  }

  async #come(coming: Coming, attempt: Attempt): Promise<Inside | null> {
    const look = await this.#lookAhead(attempt);
    try {
      return await this.#comeAfter(look, coming, attempt);
    } finally {
      look.ready?.[Symbol.dispose]();
    }
  }

  /** One znode, and what comes of it. @returns null when we have to come again */
  async #comeAfter(look: Look, coming: Coming, attempt: Attempt): Promise<Inside | null> {
    const { path } = coming;
    // A znode that comes when the caller has given up already is removed.
    attempt.next();
    const joining = this.#join(coming, look);
    const joined = await attempt.waitFor(joining).catch((error: unknown) => {
      this.#giveUp(path, joining);
      throw error;
    });
    if (joined === null) {
      await attempt.reconnect();
      // The removal of the znode that came to nothing would take the next one away, which has its name.
      await attempt.waitFor(this.#removed);
      return null;
    }
    let round: bigint | null = null;
    try {
      round = await this.#awaitReady(joined, attempt);
      if (round !== null) return new Inside(this.#client, this.path, joined.member, round, this.#leftovers);
    } finally {
      if (round === null) this.#giveUp(path, Promise.resolve(joined));
    }
    await attempt.waitFor(this.#removed);
    return null;
  }

  #remove(path: string, sessionId: bigint): void {
    this.#awaitToo(removeZnode(this.#client, path, sessionId));
  }

  #awaitToo(removal: Promise<unknown>): void {
    this.#removed = whenBothSettled(this.#removed, removal);
  }

  #giveUp(path: string, joining: Promise<Joined | null>): void {
    this.#leftovers.add(path);
    const remove = async (): Promise<void> => {
      const member = (await joining)?.member;
      if (member === undefined) return;
      await member.release();
      // One that counted as lost ends at once, and is removed behind its back; its session may come back, and would find it.
      await removeZnode(this.#client, path, member.sessionId);
    };
    this.#awaitToo(remove().catch(() => {}));
  }

  /** Of earlier calls that were given up znodes may be left, also of lost sessions: with these we would count twice. */
  async #clear(attempt: Attempt): Promise<void> {
    await attempt.waitFor(this.#removed);
    for (const path of this.#leftovers) {
      if (this.#coming.has(path)) continue;
      await attempt.through((call) => this.#client.delete(path, call).catch(ignoreMissing));
      this.#leftovers.delete(path);
    }
  }

  /** Waits while there is a `ready` and no client inside who was counted for it. */
  async #lookAhead(attempt: Attempt): Promise<Look> {
    for (;;) {
      const first = await this.#lookAtReady(attempt);
      if (first.stat === null) return { ready: first, leftOverSince: null };
      using ready = first;
      const others = await this.#list(attempt, 'linearizable');
      if (others === null || !others.children.includes(READY)) continue;
      const members = membersOf(others.children);
      // All members of a round have died, and no client was left to end it.
      if (members.length === 0) return { ready: null, leftOverSince: others.stat.version };
      const paths = members.map((name) => joinPath(this.path, name));
      const founder = await findFounder(this.#client, paths, first.stat.czxid, attempt);
      if (founder !== null) return { ready: null, leftOverSince: null };
      using late = await attempt.through((call) => this.#client.exists(paths[0]!, { ...call, watch: true }));
      if (late.stat !== null) await attempt.any([ready.changed, late.changed]);
    }
  }

  #lookAtReady(attempt: Attempt): Promise<ReadyLook> {
    const path = joinPath(this.path, READY);
    return attempt.through((call) => this.#client.exists(path, { ...call, watch: true }));
  }

  /** @returns null when there is no barrier yet, or not any more */
  #list(attempt: Attempt, read: 'local' | 'linearizable'): Promise<Children | null> {
    return attempt.through((call) => this.#client.children(this.path, { ...call, read })).catch(nullIfMissing);
  }

  /** Makes our znode. @returns null when the session ended meanwhile, or there is none, or `look` is out of date */
  async #join(coming: Coming, look: Look): Promise<Joined | null> {
    const client = this.#client;
    const { path, mayBeCounted } = coming;
    const uncertainty = new Uncertainty();
    let isMade = false;
    const lost = client.lostSignal;
    const sessionId = client.session?.id;
    if (sessionId === undefined) return null;
    // For a caller that gives up from now on.
    coming.mayBeCounted = true;
    // No other client uses the name, so the creation may be repeated until it is answered.
    try {
      while (!lost.aborted && client.session?.id === sessionId) {
        const created = await this.#create(coming, look.leftOverSince, uncertainty);
        if (created === 'again') continue;
        isMade = true;
        const stat = created.stat ?? (await client.exists(path));
        if (stat === null || lost.aborted) break;
        if (stat.ephemeralOwner !== sessionId) {
          // An earlier session of this call has left it behind.
          await client.delete(path).catch(ignoreMissing);
          continue;
        }
        // A member that has counted as lost is recreated by its name: the removal of the old one must not take that.
        const remove = (call: CallOptions): Promise<void> => client.delete(path, call);
        const member = new Holding(client, { path, stat, lost }, { marginMs: NO_MARGIN, isNameShared: true, remove });
        return { member, ready: look.ready, othersMax: created.othersMax };
      }
    } catch (error) {
      this.#remove(path, sessionId);
      if (isPassing(error)) return null;
      // It was refused, and no client has been there.
      if (!isMade && !uncertainty.exists) coming.mayBeCounted = mayBeCounted;
      throw error;
    }
    this.#remove(path, sessionId);
    return null;
  }

  /** @param leftOverSince the version of the barrier's znode at which `ready` is to be removed; null: it stays */
  async #create(
    { path, losses }: Coming,
    leftOverSince: number | null,
    uncertainty: Uncertainty,
  ): Promise<Created | 'again'> {
    const client = this.#client;
    const about = { operation: 'DoubleBarrier.enter', path: this.path };
    const data = this.#options.data ?? '';
    const transaction: Transaction<TransactionResult[]> = client.transaction();
    if (leftOverSince !== null) transaction.delete(joinPath(this.path, READY));
    transaction.set(this.path, '', leftOverSince === null ? {} : { version: leftOverSince });
    transaction.create(path, data, { mode: 'ephemeral' });
    try {
      const [before, created] = (await transaction.commit()).slice(-2) as [Stat, CreatedInTransaction];
      return { stat: created.stat, othersMax: before.numChildren };
    } catch (error) {
      losses.noted(uncertainty.noted(error), data.length);
      if (error instanceof TransactionError) {
        const { cause } = error;
        if (!isRace(error)) throw cause;
        // It is there by an earlier attempt, the reply to which was lost, or others have removed what was left over.
        if (cause instanceof NodeExistsError || leftOverSince !== null)
          return { stat: null, othersMax: Number.POSITIVE_INFINITY };
        await client.ensurePath(this.path, { mode: 'container' });
      } else if (isPassing(error)) {
        const attempt = new Attempt(client, {}, about);
        await attempt.reconnect();
        // A service that answers this may be one that our data are too large for.
        await attempt.through((call) => client.exists(path, call));
        losses.check(about);
      } else throw error;
      return 'again';
    }
  }

  /** @returns the round that we are in, the zxid of the creation of its `ready`; null when we have to come again */
  async #awaitReady({ member, ready, othersMax }: Joined, attempt: Attempt): Promise<bigint | null> {
    let look = ready;
    let own: ReadyLook | null = null;
    try {
      // The client that is the last of so many to create its znode sees them all.
      let canOpen = othersMax + 1 >= this.memberCount;
      while (!member.signal.aborted) {
        if (look === null) {
          own?.[Symbol.dispose]();
          own = await this.#lookAtReady(attempt);
          look = own;
          canOpen = true;
        }
        if (look.stat !== null) return (await this.#isIn(member, look.stat.czxid, attempt)) ? look.stat.czxid : null;
        const opened = canOpen ? await this.#openIfAll(member, attempt) : 'few';
        if (opened === 'gone') return null;
        if (typeof opened === 'bigint') return member.isHeld ? opened : null;
        canOpen = opened === 'again';
        if (canOpen) {
          look = null;
          continue;
        }
        const zxid = await awaitCreation(look.changed, member.signal, attempt);
        if (zxid !== null && zxid > member.token) return member.isHeld ? zxid : null;
        // The server does not send the zxid, or the round began before we came.
        look = null;
      }
      return null;
    } finally {
      own?.[Symbol.dispose]();
    }
  }

  /** @returns the round; 'few' when others are missing; 'again' when the next look shows it; 'gone' with the barrier's own znode */
  async #openIfAll(member: Holding, attempt: Attempt): Promise<bigint | 'few' | 'again' | 'gone'> {
    const listed = await this.#list(attempt, 'local');
    // And ours with it.
    if (listed === null) return 'gone';
    const others = membersOf(listed.children).filter((name) => name !== nameOf(member.path));
    if (others.length + 1 < this.memberCount) return 'few';
    const paths = [member.path, ...others.map((name) => joinPath(this.path, name))];
    return (await this.#open(paths, attempt)) ?? 'again';
  }

  /** Whether we belong to a round that is open: we were there when it began, or come while one is inside who was. */
  async #isIn(member: Holding, round: bigint, attempt: Attempt): Promise<boolean> {
    if (member.token > round) {
      const listed = await this.#list(attempt, 'linearizable');
      const paths = membersOf(listed?.children ?? []).map((name) => joinPath(this.path, name));
      if ((await findFounder(this.#client, paths, round, attempt)) === null) return false;
    }
    return member.isHeld;
  }

  /** Makes `ready` if so many of these are still there. @returns the round; null: the next look says whether it was done */
  async #open(members: readonly string[], attempt: Attempt): Promise<bigint | null> {
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    for (const path of members.slice(0, this.memberCount)) transaction.check(path);
    transaction.create(joinPath(this.path, READY), '');
    try {
      const results = await attempt.through((call) => transaction.commit(call));
      return (results.at(-1) as CreatedInTransaction).stat?.czxid ?? null;
    } catch (error) {
      if (!(error instanceof TransactionError)) throw error;
      if (!isRace(error)) throw error.cause;
      return null;
    }
  }

  /** As the library of the layout names its members. */
  #makeName(): string {
    const hex = makeUuidHex(this.#client.surroundings.random);
    if (this.#options.layout === 'kazoo') return hex;
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }
}

/** A call of `enter`. */
interface Coming {
  /** Of our znode: one name whatever sessions the call goes through, so that it has one znode at a time. */
  readonly path: string;
  /** There may have been a znode of ours, and with it a round. */
  mayBeCounted: boolean;
  /** Of its creation. */
  readonly losses: LossStreak;
}

type ReadyLook = { readonly stat: Stat | null } & Watched;

/** What there was before we came. */
interface Look {
  /** It was not there, and is watched; null: to be looked at once we are there. */
  readonly ready: ReadyLook | null;
  /** The version of the barrier's znode at which there was a `ready` without members; null: there was none. */
  readonly leftOverSince: number | null;
}

interface Created {
  /** null when the server did not send it. */
  readonly stat: Stat | null;
  /** More children than these were not there before. */
  readonly othersMax: number;
}

interface Joined {
  readonly member: Holding;
  readonly ready: ReadyLook | null;
  readonly othersMax: number;
}
