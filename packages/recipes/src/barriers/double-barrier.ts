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
import { asDoubtful, asNotApplied, Uncertainty } from '../kernel/doubt.ts';
import { ignoreMissing, isPassing, nullIfMissing } from '../kernel/failures.ts';
import { Holding } from '../kernel/holding.ts';
import { checkLayout, LAYOUTS, type Layout, makeUuidHex } from '../kernel/layout.ts';
import { LossStreak } from '../kernel/loss-streak.ts';
import { removeZnode } from '../kernel/removal.ts';
import { NO_MARGIN } from '../kernel/settings.ts';
import { Inside } from './inside.ts';
import { awaitCreation, findFounder, isRace, membersOf, READY } from './ready.ts';

/*
 * A double barrier: a fixed number of processes begin together and end together.
 *
 *     /barrier                                  its version is raised by every member that enters
 *       5b2f9d0e-5e3b-4f0a-9a44-0c6f3a9f7d21    a member: ephemeral, named by a UUID (kazoo: without dashes)
 *       0d1e…                                   another one
 *       ready                                   there were enough members: the barrier is open
 *
 * Entering: watch `ready`, and create a znode if `ready` does not exist. The creating transaction also returns how many
 * children existed before, so only members that may complete the round list them. The client that sees enough members
 * creates `ready`, in a transaction that checks every counted member. The event of its creation suffices for the
 * others: its zxid is that of `ready`, and larger than that of their own znode, so they existed by then.
 *
 * Leaving, as in the manual, with one watch each: the lowest member waits for the highest, every other member deletes
 * its znode and waits for the lowest. The last one deletes its znode and `ready` in one transaction.
 *
 * Safety, and why it holds:
 *
 * 1. No client is let in before enough members exist at one moment: the transaction that creates `ready` checks them.
 * 2. A client that enters after `ready` was created is let in while a member older than `ready` is inside. That member
 *    was counted, so the barrier is open; a server that lags behind its leader cannot let a client in after all have
 *    left.
 * 3. No client leaves before every member of its round has left or lost its session. A round is identified by the zxid
 *    of its `ready`. Leavers continue when there is no member at all, or when `ready` is gone or replaced and no member
 *    older than it is left.
 * 4. Rounds do not overlap: no client can enter between the last look at the members and the deletion of `ready`,
 *    because entering raises the version of the barrier's znode, which that transaction checks. Curator and kazoo
 *    delete `ready` by itself, so with these in the fleet a round should not begin before the last one is over for all.
 * 5. The znode of a dead member is deleted with its session, which wakes those that wait for it. When all have died,
 *    `ready` is left over without members; the next client to enter removes it and begins a new round.
 */

export interface DoubleBarrierOptions {
  /** Which library shares the barrier: determines the names of the members. Default 'curator'. */
  readonly layout?: Layout | undefined;
  /** The data of our znode; kazoo writes host and process. Default: empty. */
  readonly data?: Data | undefined;
}

/**
 * Lets a fixed number of processes begin together and end together.
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
  /** Settled when cancelled calls can no longer create znodes. */
  #removed: Promise<void> = Promise.resolve();
  /** Znodes of ours that may still be there. */
  readonly #leftovers = new Set<string>();
  /** Znodes of running calls, which are recreated under the same name. */
  readonly #coming = new Set<string>();

  /** @param memberCount required members; while the barrier is open, additional clients are let in, too */
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
   * Waits until enough members are there. Survives lost connections, and session loss with a new znode.
   *
   * @throws AbortedError, TimeoutError, ClosedError: we are no longer a member, but others may have entered and counted
   *   us (outcome 'unknown'; 'not-applied' if our znode was never created); RequestTooLargeError also when servers
   *   close the connection because of `data`
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
        // It may have been a leftover meanwhile, and no longer is.
        this.#leftovers.delete(coming.path);
        return inside;
      }
    } catch (error) {
      throw coming.mayBeCounted ? asDoubtful(error, about) : asNotApplied(error, about);
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

  /** One znode and its fate. @returns null when we have to enter again */
  async #comeAfter(look: Look, coming: Coming, attempt: Attempt): Promise<Inside | null> {
    const { path } = coming;
    // A znode that is created after the caller has cancelled is removed.
    attempt.next();
    const joining = this.#join(coming, look);
    const joined = await attempt.waitFor(joining).catch((error: unknown) => {
      this.#abandon(path, joining);
      throw error;
    });
    if (joined === null) {
      await attempt.reconnect();
      // A pending removal of a failed znode would delete the next one, which has the same name.
      await attempt.waitFor(this.#removed);
      return null;
    }
    let round: bigint | null = null;
    try {
      round = await this.#awaitReady(joined, attempt);
      if (round !== null) return new Inside(this.#client, this.path, joined.member, round, this.#leftovers);
    } finally {
      if (round === null) this.#abandon(path, Promise.resolve(joined));
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

  #abandon(path: string, joining: Promise<Joined | null>): void {
    this.#leftovers.add(path);
    const remove = async (): Promise<void> => {
      const member = (await joining)?.member;
      if (member === undefined) return;
      await member.release();
      // A member that counts as lost is released at once and removed in the background; its session may come back and
      // keep it.
      await removeZnode(this.#client, path, member.sessionId);
    };
    this.#awaitToo(remove().catch(() => {}));
  }

  /** Znodes of cancelled calls or lost sessions may be left: with them we would be counted twice. */
  async #clear(attempt: Attempt): Promise<void> {
    await attempt.waitFor(this.#removed);
    for (const path of this.#leftovers) {
      if (this.#coming.has(path)) continue;
      await attempt.through((call) => this.#client.delete(path, call).catch(ignoreMissing));
      this.#leftovers.delete(path);
    }
  }

  /** Waits while there is a `ready` and no counted member is inside. */
  async #lookAhead(attempt: Attempt): Promise<Look> {
    for (;;) {
      const first = await this.#lookAtReady(attempt);
      if (first.stat === null) return { ready: first, leftOverSince: null };
      using ready = first;
      const others = await this.#list(attempt, 'linearizable');
      if (others === null || !others.children.includes(READY)) continue;
      const members = membersOf(others.children);
      // All members of a round have died, and none was left to end it.
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

  /** @returns null when the barrier's znode does not exist */
  #list(attempt: Attempt, read: 'local' | 'linearizable'): Promise<Children | null> {
    return attempt.through((call) => this.#client.children(this.path, { ...call, read })).catch(nullIfMissing);
  }

  /** Creates our znode. @returns null when the session ended meanwhile, or there is none, or `look` is out of date */
  async #join(coming: Coming, look: Look): Promise<Joined | null> {
    const client = this.#client;
    const { path, mayBeCounted } = coming;
    const uncertainty = new Uncertainty();
    let isMade = false;
    const lost = client.lostSignal;
    const sessionId = client.session?.id;
    if (sessionId === undefined) return null;
    // For a caller that cancels from now on.
    coming.mayBeCounted = true;
    // No other client uses the name, so the creation may be retried until there is a reply.
    try {
      while (!lost.aborted && client.session?.id === sessionId) {
        const created = await this.#create(coming, look.leftOverSince, uncertainty);
        if (created === 'again') continue;
        isMade = true;
        const stat = created.stat ?? (await client.exists(path));
        if (stat === null || lost.aborted) break;
        if (stat.ephemeralOwner !== sessionId) {
          // Left behind by an earlier session of this call.
          await client.delete(path).catch(ignoreMissing);
          continue;
        }
        // A lost member is recreated under its name: the removal of the old znode must not delete the new one.
        const remove = (call: CallOptions): Promise<void> => client.delete(path, call);
        const member = new Holding(client, { path, stat, lost }, { marginMs: NO_MARGIN, isNameShared: true, remove });
        return { member, ready: look.ready, othersMax: created.othersMax };
      }
    } catch (error) {
      this.#remove(path, sessionId);
      if (isPassing(error)) return null;
      // It was refused, so no other client has seen it.
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
        // An earlier attempt has created it and its reply was lost, or others have removed the leftover `ready`.
        if (cause instanceof NodeExistsError || leftOverSince !== null)
          return { stat: null, othersMax: Number.POSITIVE_INFINITY };
        await client.ensurePath(this.path, { mode: 'container' });
      } else if (isPassing(error)) {
        const attempt = new Attempt(client, {}, about);
        await attempt.reconnect();
        // A service that answers this may have closed the connection because our data is too large.
        await attempt.through((call) => client.exists(path, call));
        losses.check(about);
      } else throw error;
      return 'again';
    }
  }

  /** @returns the round that we are in, i.e. the czxid of its `ready`; null when we have to enter again */
  async #awaitReady({ member, ready, othersMax }: Joined, attempt: Attempt): Promise<bigint | null> {
    let look = ready;
    let own: ReadyLook | null = null;
    try {
      // The last of the required clients to create its znode sees all of them.
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

  /**
   * @returns the round; 'few' when members are missing; 'again' to look again; 'gone' when the barrier's znode is
   *   deleted
   */
  async #openIfAll(member: Holding, attempt: Attempt): Promise<bigint | 'few' | 'again' | 'gone'> {
    const listed = await this.#list(attempt, 'local');
    // And ours with it.
    if (listed === null) return 'gone';
    const others = membersOf(listed.children).filter((name) => name !== nameOf(member.path));
    if (others.length + 1 < this.memberCount) return 'few';
    const paths = [member.path, ...others.map((name) => joinPath(this.path, name))];
    return (await this.#open(paths, attempt)) ?? 'again';
  }

  /** Whether we belong to an open round: we existed when it began, or entered while a member is inside that did. */
  async #isIn(member: Holding, round: bigint, attempt: Attempt): Promise<boolean> {
    if (member.token > round) {
      const listed = await this.#list(attempt, 'linearizable');
      const paths = membersOf(listed?.children ?? []).map((name) => joinPath(this.path, name));
      if ((await findFounder(this.#client, paths, round, attempt)) === null) return false;
    }
    return member.isHeld;
  }

  /**
   * Creates `ready` if all of these still exist.
   *
   * @returns the round; null: the next look says whether it was applied
   */
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

  /** Named as by the library of the layout. */
  #makeName(): string {
    const hex = makeUuidHex(this.#client.surroundings.random);
    if (this.#options.layout === 'kazoo') return hex;
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }
}

/** A call of `enter`. */
interface Coming {
  /** Of our znode: one name across all sessions of the call, so that it has one znode at a time. */
  readonly path: string;
  /** A znode of ours, and with it a round, may have existed. */
  mayBeCounted: boolean;
  /** Of the creation. */
  readonly losses: LossStreak;
}

type ReadyLook = { readonly stat: Stat | null } & Watched;

/** What existed before we entered. */
interface Look {
  /** `ready` did not exist, and is watched; null: to be read once our znode exists. */
  readonly ready: ReadyLook | null;
  /** The version of the barrier's znode at which `ready` existed without members; null: it did not. */
  readonly leftOverSince: number | null;
}

interface Created {
  /** null when the server did not send it. */
  readonly stat: Stat | null;
  /** An upper bound for the number of children that existed before. */
  readonly othersMax: number;
}

interface Joined {
  readonly member: Holding;
  readonly ready: ReadyLook | null;
  readonly othersMax: number;
}
