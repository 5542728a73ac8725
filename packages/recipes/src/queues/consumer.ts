import {
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  NotReadOnlyError,
  type Watched,
  ZooKeeperError,
} from '@meerkat/client';
import { asDoubtful, asHarmless, Uncertainty } from '../doubt.ts';
import { asGivenUp, contend } from '../locks/contender.ts';
import type { Line } from '../locks/line.ts';
import { removeZnode } from '../locks/removal.ts';
import { waitFor } from '../locks/wait-for.ts';
import { Wait, type Waiting } from '../wait.ts';
import type { Claim, Claimer } from './claim.ts';
import { type ItemNaming, orderedItems, type QueuePaths } from './layout.ts';
import type { Tally } from './tally.ts';

/*
 * Taking items, without a herd.
 *
 * In the recipe of the manual every consumer watches the children of the queue: with 50 of them each new item makes 50
 * clients read the whole list, of which one gets the item. Here those who wait stand in a line, and only the first in it
 * reads and watches the list. The claim of the item and the leaving of the line are one transaction; its znode's deletion
 * wakes the next, and nobody else.
 *
 * Who comes and finds items takes the first without the line, so that a queue which is never empty costs no more than a
 * list and a transaction for each item. Whoever loses such a race once stands in the line.
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
  /** Without leases: what is to be given back that came too late for whoever had asked for it, and is nowhere until then. */
  readonly #late: Set<Promise<void>> = new Set();

  constructor(client: Client, parts: ConsumerParts) {
    this.#client = client;
    this.#paths = parts.paths;
    this.#naming = parts.naming;
    this.#claimer = parts.claimer;
    this.#tally = parts.tally;
    this.#hasLeases = parts.hasLeases;
    this.#line = { path: parts.paths.consumers, layout: 'curator', marker: MARKER, markers: [MARKER] };
  }

  /**
   * The first item that nobody has, as soon as there is one.
   *
   * @throws of outcome 'unknown' when an item was perhaps deleted that is not in the queue again
   */
  take(options: CallOptions, about: Waiting): Promise<Claim> {
    return this.#taking(options, about, async (taking) => {
      const taken = await this.#takeFirst(taking, 1);
      if (taken !== null) return taken;
      for (;;) {
        const claim = await this.#takeInLine(taking);
        if (claim !== null) return claim;
      }
    });
  }

  /**
   * The first item that nobody has; null when there was none, or others got all that there was at some moment after the call.
   *
   * @throws as `take`
   */
  tryTake(options: CallOptions, about: Waiting): Promise<Claim | null> {
    return this.#taking(options, about, (taking) => this.#takeFirst(taking, Number.POSITIVE_INFINITY));
  }

  /**
   * Resolves when everything is in the queue again that came too late for its caller.
   *
   * @throws what has ended that, so that an item may be nowhere
   */
  async whenReturned(): Promise<void> {
    await Promise.all(this.#late);
  }

  async #taking<T>(options: CallOptions, about: Waiting, take: (taking: Taking) => Promise<T>): Promise<T> {
    const doubt = new Uncertainty();
    try {
      return await take({ wait: new Wait(this.#client, options, about), about, doubt });
    } catch (error) {
      // Waiting has no effect, and a claim by a lease none that does not end by itself.
      throw doubt.exists ? error : asHarmless(error, about);
    }
  }

  async #takeFirst(taking: Taking, attemptsMax: number): Promise<Claim | null> {
    const { wait } = taking;
    for (;;) {
      const { names } = await this.#see(wait, null);
      const lost = this.#client.lostSignal;
      for (const name of names.slice(0, attemptsMax)) {
        const claim = await this.#claim(name, null, taking);
        if (claim !== null) return claim;
      }
      // A claim that ended with its session says nothing about the item.
      if (names.length === 0 || !lost.aborted) return null;
      await wait.recover();
    }
  }

  /** @returns null when the session, and with it the place, was lost */
  async #takeInLine(taking: Taking): Promise<Claim | null> {
    const client = this.#client;
    const { wait, about } = taking;
    const place = await contend(client, this.#line, wait.next(), about);
    let hasLeft = false;
    try {
      while (!place.lost.aborted) {
        const watches: Watched[] = [];
        try {
          const { names, dueInMs } = await this.#see(wait, watches);
          for (const name of names) {
            const claim = await this.#claim(name, place.path, taking);
            if (claim === null) continue;
            hasLeft = this.#claimer.leavesPlace;
            return claim;
          }
          const wakes = watches.map(({ changed }) => changed);
          await wait.any(wakes, { lost: place.lost, delayMs: dueInMs }).catch((error: unknown) => {
            throw taking.doubt.exists ? error : asGivenUp(error, about, client, 'there was no item that nobody had');
          });
        } finally {
          for (const watch of watches) watch[Symbol.dispose]();
        }
      }
      return null;
    } finally {
      if (!hasLeft) void removeZnode(client, place.path, place.stat.ephemeralOwner);
    }
  }

  /** A claim that comes when the caller has given up already is given back. */
  async #claim(name: string, placePath: string | null, { wait, about, doubt }: Taking): Promise<Claim | null> {
    const limits = wait.next();
    const claiming = this.#claimer.claim(name, placePath);
    try {
      return await waitFor(this.#client, claiming, limits, about);
    } catch (error) {
      const returned = claiming.then((claim) => claim?.giveBack({}));
      if (this.#hasLeases) returned.catch(() => {});
      else {
        doubt.noted(error);
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

  /** Looks until a server answers that can: one without a quorum refuses to say what is newest. */
  async #see(wait: Wait, watches: Watched[] | null): Promise<Sight> {
    for (;;) {
      try {
        return await wait.through(() => this.#look(wait, watches));
      } catch (error) {
        if (!(error instanceof NotReadOnlyError)) throw error;
        await wait.recover();
      }
    }
  }

  /** What may be taken now. @param watches gets what tells that it may have become more; null: nobody waits for that */
  async #look(wait: Wait, watches: Watched[] | null): Promise<Sight> {
    const listings = [
      this.#list(this.#paths.items, wait, watches),
      this.#hasLeases ? this.#list(this.#paths.leases, wait, watches) : [],
    ] as const;
    // If one is refused the caller takes off all watches, and the other one's has to be among them.
    await Promise.allSettled(listings);
    const [items, leases] = await Promise.all(listings);
    const taken = new Set(leases);
    const free = orderedItems(this.#naming, items).filter((name) => !taken.has(name));
    const lastDueMs = free.reduce((latest, name) => Math.max(latest, this.#naming.dueMsOf(name)), 0);
    if (lastDueMs === 0) return { names: free, dueInMs: Number.POSITIVE_INFINITY };
    const { earliestMs: nowMs } = await this.#tally.serverTime(wait.next());
    const names = free.filter((name) => this.#naming.dueMsOf(name) <= nowMs);
    const next = free.find((name) => this.#naming.dueMsOf(name) > nowMs);
    const dueInMs = next === undefined ? Number.POSITIVE_INFINITY : this.#naming.dueMsOf(next) - nowMs;
    return { names, dueInMs };
  }

  /** Whoever waits makes what is missing; whoever only looks takes it for empty. */
  async #list(path: string, wait: Wait, watches: Watched[] | null): Promise<readonly string[]> {
    for (;;) {
      const call = wait.next();
      try {
        if (watches === null) return (await this.#client.children(path, { ...call, read: 'linearizable' })).children;
        const listed = await this.#client.children(path, { ...call, watch: true });
        watches.push(listed);
        return listed.children;
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        if (watches === null) return [];
        await this.#client.ensurePath(path, wait.next());
      }
    }
  }

  /**
   * The items with these names, none of which anybody holds, deleted: how many there were.
   *
   * @throws as `Claim.done`; of outcome 'not-applied' when none was
   */
  async remove(matches: (name: string) => boolean, options: CallOptions, about: Waiting): Promise<number> {
    let mayBeRemoved = false;
    const onRemoval = (): void => {
      mayBeRemoved = true;
    };
    try {
      return await this.#taking(options, about, (taking) => this.#remove(matches, taking, onRemoval));
    } catch (error) {
      throw mayBeRemoved ? asDoubtful(error, about) : error;
    }
  }

  async #remove(matches: (name: string) => boolean, taking: Taking, onRemoval: () => void): Promise<number> {
    const { wait } = taking;
    let count = 0;
    for (;;) {
      const { names } = await this.#see(wait, null);
      const lost = this.#client.lostSignal;
      const wanted = names.filter(matches);
      for (const name of wanted) {
        const claim = await this.#claim(name, null, taking);
        if (claim === null) continue;
        try {
          await claim.done(wait.next());
        } catch (error) {
          // Without a lease the claim was the removal, and it may not come to be given back.
          if (!this.#hasLeases || (error instanceof ZooKeeperError && error.outcome === 'unknown')) onRemoval();
          // Nobody else knows of the claim: the item would be kept from everybody as long as the session lives.
          claim.giveBack({}).catch(() => {});
          throw error;
        }
        onRemoval();
        count++;
      }
      // As above: whatever is still there is looked for once more.
      if (wanted.length === 0 || !lost.aborted) return count;
      await wait.recover();
    }
  }

  /** The names of all items, those that somebody holds included, in the order of the queue. */
  async names(options: CallOptions, about: Waiting): Promise<readonly string[]> {
    const wait = new Wait(this.#client, options, about);
    const names = await wait.through(() => this.#list(this.#paths.items, wait, null));
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

/** A call under way. */
interface Taking {
  readonly wait: Wait;
  readonly about: Waiting;
  /** Whether an item was perhaps deleted. */
  readonly doubt: Uncertainty;
}

interface Sight {
  readonly names: readonly string[];
  /** Milliseconds until the next item is due; infinite when nothing is. */
  readonly dueInMs: number;
}

const MARKER = 'consumer-';
