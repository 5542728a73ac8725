import {
  type About,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  retryClassOf,
  type Watched,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { ignoreRejection } from '../kernel/background.ts';
import { contend } from '../kernel/contender.ts';
import type { Line } from '../kernel/line.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { removeZnode } from '../kernel/removal.ts';
import { sharedLockSettings } from '../kernel/settings.ts';
import type { Claim, Claimer } from './claim.ts';
import { type ItemNaming, orderedItems, type QueuePaths } from './layout.ts';
import type { Tally } from './tally.ts';

/*
 * Taking items, without a herd.
 *
 * In the recipe of the manual every consumer watches the children of the queue: with 50 of them each new item makes 50
 * clients read the whole list, of which one gets the item. Here waiting consumers stand in a line, and only the first
 * of it reads and watches the list. Claiming the item and leaving the line are one transaction; the deletion of its
 * place wakes the next consumer, and no other.
 *
 * A consumer that finds items on arrival takes the first without the line, so that a queue which is never empty costs
 * only a list and a transaction per item. A consumer that loses such a race once joins the line.
 */

/** The consumers' side of a queue. */
export class Consumer {
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #naming: ItemNaming;
  readonly #claimer: Claimer;
  readonly #tally: Tally;
  readonly #hasLeases: boolean;
  readonly #line: Line;
  /** Without leases: returns of items that came too late for their caller, and are nowhere until then. */
  readonly #late: Set<Promise<void>> = new Set();

  constructor(client: Client, parts: ConsumerParts) {
    this.#client = client;
    this.#paths = parts.paths;
    this.#naming = parts.naming;
    this.#claimer = parts.claimer;
    this.#tally = parts.tally;
    this.#hasLeases = parts.hasLeases;
    this.#line = {
      ...sharedLockSettings({}),
      path: parts.paths.consumers,
      marker: MARKER,
      markers: [MARKER],
      firstDoes: 'is the first to wait',
    };
  }

  /**
   * The first free item, as soon as there is one.
   *
   * @throws of outcome 'unknown' when an item may have been deleted and is not in the queue again
   */
  take(options: CallOptions, about: About): Promise<Claim> {
    return this.#taking(options, about, async (attempt) => {
      const taken = await this.#takeFirst(attempt, 1);
      if (taken !== null) return taken;
      for (;;) {
        const claim = await this.#takeQueued(attempt);
        if (claim !== null) return claim;
      }
    });
  }

  /**
   * The first free item; null when there was none, or other clients claimed all of them, at some moment after the call.
   *
   * @throws as `take`
   */
  tryTake(options: CallOptions, about: About): Promise<Claim | null> {
    return this.#taking(options, about, (attempt) => this.#takeFirst(attempt, Number.POSITIVE_INFINITY));
  }

  /**
   * Resolves when all items that came too late for their caller are in the queue again.
   *
   * @throws what has ended that, so that an item may be nowhere
   */
  async whenReturned(): Promise<void> {
    await Promise.all(this.#late);
  }

  /** Waiting has no effect, and that of a claim by a lease ends by itself. */
  async #taking<T>(options: CallOptions, about: About, take: (attempt: Attempt) => Promise<T>): Promise<T> {
    const attempt = new Attempt(this.#client, options, about, { awaitsQuorum: true });
    return attempt.run(() => take(attempt));
  }

  async #takeFirst(attempt: Attempt, attemptsMax: number): Promise<Claim | null> {
    for (;;) {
      const { names } = await this.#see(attempt, null);
      const lost = this.#client.lostSignal;
      const claim = await this.#claimFirst(names.slice(0, attemptsMax), null, attempt);
      // A claim that ended with its session says nothing about the item.
      if (claim !== null || names.length === 0 || !lost.aborted) return claim;
      await attempt.reconnect();
    }
  }

  /** @returns null when the session, and with it the place, was lost */
  async #takeQueued(attempt: Attempt): Promise<Claim | null> {
    const place = await contend(this.#line, attempt);
    let claim: Claim | null = null;
    try {
      while (claim === null && !place.lost.aborted) claim = await this.#takeOrWait(place, attempt);
      return claim;
    } finally {
      const hasLeft = claim !== null && this.#claimer.leavesPlace;
      if (!hasLeft) void removeZnode(this.#client, place.path, place.stat.ephemeralOwner);
    }
  }

  /** As the first of the line. @returns null when the situation may have changed */
  async #takeOrWait(place: OwnedZnode, attempt: Attempt): Promise<Claim | null> {
    const watches: Watched[] = [];
    try {
      const { names, dueInMs } = await this.#see(attempt, watches);
      const claim = await this.#claimFirst(names, place.path, attempt);
      if (claim !== null) return claim;
      attempt.obstacle = 'there was no free item';
      const wakes = watches.map(({ changed }) => changed);
      await attempt.any(wakes, { lost: place.lost, delayMs: dueInMs });
      return null;
    } finally {
      for (const watch of watches) watch[Symbol.dispose]();
    }
  }

  async #claimFirst(names: readonly string[], placePath: string | null, attempt: Attempt): Promise<Claim | null> {
    for (const name of names) {
      const claim = await this.#claim(name, placePath, attempt);
      if (claim !== null) return claim;
    }
    return null;
  }

  /** A claim that completes after the caller has cancelled is released. */
  async #claim(name: string, placePath: string | null, attempt: Attempt): Promise<Claim | null> {
    // Throws when the deadline has passed: nothing is claimed then.
    attempt.next();
    const claiming = this.#claimer.claim(name, placePath);
    try {
      return await attempt.waitFor(claiming);
    } catch (error) {
      const returned = claiming.then((claim) => claim?.release({}));
      if (this.#hasLeases) ignoreRejection(returned);
      else {
        if (retryClassOf(attempt.noted(error)) === 'over') attempt.doubt();
        this.#noteLate(returned);
      }
      throw error;
    }
  }

  #noteLate(returned: Promise<void>): void {
    this.#late.add(returned);
    const forget = (): void => {
      this.#late.delete(returned);
    };
    returned.then(forget, forget);
  }

  #see(attempt: Attempt, watches: Watched[] | null): Promise<Sight> {
    return attempt.through(() => this.#look(attempt, watches));
  }

  /** The items that may be taken now. @param watches receives watches for new ones; null: the caller does not wait */
  async #look(attempt: Attempt, watches: Watched[] | null): Promise<Sight> {
    const listings = [
      this.#list(this.#paths.items, attempt, watches),
      this.#hasLeases ? this.#list(this.#paths.leases, attempt, watches) : [],
    ] as const;
    // If one is refused the caller removes all watches, so both have to be complete.
    await Promise.allSettled(listings);
    const [items, leases] = await Promise.all(listings);
    const taken = new Set(leases);
    const free = orderedItems(this.#naming, items).filter((name) => !taken.has(name));
    const lastDueMs = free.reduce((latest, name) => Math.max(latest, this.#naming.dueMsOf(name)), 0);
    if (lastDueMs === 0) return { names: free, dueInMs: Number.POSITIVE_INFINITY };
    const { earliestMs: nowMs } = await this.#tally.serverTime(attempt.next());
    const names = free.filter((name) => this.#naming.dueMsOf(name) <= nowMs);
    const next = free.find((name) => this.#naming.dueMsOf(name) > nowMs);
    const dueInMs = next === undefined ? Number.POSITIVE_INFINITY : this.#naming.dueMsOf(next) - nowMs;
    return { names, dueInMs };
  }

  /** A waiting caller creates a missing znode; for one that does not wait it counts as empty. */
  async #list(path: string, attempt: Attempt, watches: Watched[] | null): Promise<readonly string[]> {
    for (;;) {
      const call = attempt.next();
      try {
        if (watches === null) return (await this.#client.children(path, { ...call, read: 'linearizable' })).children;
        const listed = await this.#client.children(path, { ...call, watch: true });
        watches.push(listed);
        return listed.children;
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        if (watches === null) return [];
        await this.#client.ensurePath(path, attempt.next());
      }
    }
  }

  /**
   * Deletes the items with matching names that are not held.
   *
   * @returns their number
   * @throws as `Claim.done`; of outcome 'not-applied' when none was deleted
   */
  remove(matches: (name: string) => boolean, options: CallOptions, about: About): Promise<number> {
    return this.#taking(options, about, (attempt) => this.#remove(matches, attempt));
  }

  async #remove(matches: (name: string) => boolean, attempt: Attempt): Promise<number> {
    let count = 0;
    for (;;) {
      const { names } = await this.#see(attempt, null);
      const lost = this.#client.lostSignal;
      const wanted = names.filter(matches);
      for (const name of wanted) if (await this.#removeOne(name, attempt)) count++;
      // As above: look once more for items that still exist.
      if (wanted.length === 0 || !lost.aborted) return count;
      await attempt.reconnect();
    }
  }

  async #removeOne(name: string, attempt: Attempt): Promise<boolean> {
    const claim = await this.#claim(name, null, attempt);
    if (claim === null) return false;
    // Without a lease the claim was the removal, and releasing it may fail.
    if (!this.#hasLeases) attempt.doubt();
    try {
      await claim.done(attempt.next());
      attempt.doubt();
      return true;
    } catch (error) {
      // No caller knows of the claim: the item would be blocked as long as the session lives.
      ignoreRejection(claim.release({}));
      throw attempt.noted(error);
    }
  }

  /** The names of all items, including held ones, in the order of the queue. */
  async names(options: CallOptions, about: About): Promise<readonly string[]> {
    const attempt = new Attempt(this.#client, options, about);
    const names = await attempt.through(() => this.#list(this.#paths.items, attempt, null));
    return orderedItems(this.#naming, names);
  }

  pathOf(name: string): string {
    return joinPath(this.#paths.items, name);
  }
}

export interface ConsumerParts {
  readonly paths: QueuePaths;
  readonly naming: ItemNaming;
  readonly claimer: Claimer;
  readonly tally: Tally;
  readonly hasLeases: boolean;
}

interface Sight {
  readonly names: readonly string[];
  /** Milliseconds until the next item is due; infinite when there is none. */
  readonly dueInMs: number;
}

const MARKER = 'consumer-';
