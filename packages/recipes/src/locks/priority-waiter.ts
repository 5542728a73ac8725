import {
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NodeExistsError,
  NoNodeError,
  NotReadOnlyError,
  nameOf,
  TransactionError,
  text,
  ZooKeeperError,
} from '@meerkat/client';
import type { Attempt } from '../kernel/attempt.ts';
import type { Turn } from '../kernel/contender.ts';
import { Deadline } from '../kernel/deadline.ts';
import { nullIfMissing } from '../kernel/failures.ts';
import type { OwnedZnode } from '../kernel/owned-znode.ts';
import { persist, type Refusal, removeIfOurs, removeZnode } from '../kernel/removal.ts';
import { NO_MARGIN } from '../kernel/settings.ts';
import { leftOfDelay } from './lock-delay.ts';
import {
  aheadOf,
  FREE,
  formatDead,
  formatHolder,
  HELD,
  type PriorityLine,
  parseHolder,
  saysDeath,
  waitersOf,
} from './priority-line.ts';

/** The znode `held`, created by us. */
export interface Taken extends OwnedZnode {
  /** Of the lock's znode, while we hold it. */
  readonly version: number;
}

/*
 * Waiting by priority:
 *
 *     list     the children, with the version of the lock's znode. If there is no `held` and no waiter ahead, it is our
 *              turn
 *     acquire  in one transaction: delete our place, write the lock's znode if it still has that version, create `held`
 *     watch    otherwise the one ahead, or `held`; and our own place, which a client that enters ahead of us touches
 *
 * Why it is safe:
 *
 * 1. The holder is determined by the one znode `held`, not by the order: a waiter that comes later and sorts before the
 *    holder's old place gains nothing from that.
 * 2. Each acquisition changes the version that the next one requires. So between a list and the acquisition based on it
 *    there was no other holder, and every client that waited at the last release was in the list.
 * 3. Watches only wake. A touch that is lost, or superfluous, affects only when the next list is read.
 * 4. After a lost reply the lock's znode shows who acquired it last, and its mzxid equals the czxid of `held` if that
 *    belongs to the same acquisition.
 */
export class PriorityWaiter {
  readonly #client: Client;
  readonly #line: PriorityLine;
  readonly #attempt: Attempt;
  readonly #place: OwnedZnode;
  readonly #name: string;
  readonly #heldPath: string;
  /** An acquisition was sent, and its outcome is not known yet. */
  #isDoubtful = false;
  #hasTouched = false;
  #own: Watch | null = null;
  #ahead: Watch | null = null;
  /** The version of the lock's znode for which the delay after a death is over. */
  #versionWaitedOut: number | null = null;

  constructor(attempt: Attempt, line: PriorityLine, place: OwnedZnode) {
    this.#client = attempt.client;
    this.#attempt = attempt;
    this.#line = line;
    this.#place = place;
    this.#name = nameOf(place.path);
    this.#heldPath = joinPath(line.path, HELD);
  }

  /**
   * Waits until the lock is ours.
   *
   * @returns 'gone' when our place or the session is lost; 'not-ours' when it would have to wait and `isTry`
   */
  async awaitTurn(isTry: boolean): Promise<Turn<Taken>> {
    try {
      for (;;) {
        const turn = await this.#attempt.through(() => this.#look(isTry));
        if (turn !== null) return turn;
      }
    } catch (error) {
      // The znode of the lock was deleted, and with it our place.
      if (error instanceof NoNodeError) return 'gone';
      throw error;
    } finally {
      this.#own?.[Symbol.dispose]();
      this.#ahead?.[Symbol.dispose]();
      this.#own = null;
      this.#ahead = null;
    }
  }

  /** Leaves the line. @returns once nothing of us is left, or it is going to be deleted with the session */
  async leave(): Promise<Refusal> {
    const sessionId = this.#place.stat.ephemeralOwner;
    const removed = removeZnode(this.#client, this.#place.path, sessionId);
    if (this.#isDoubtful) {
      await persist(this.#client, sessionId, async () => {
        const taken = await this.#find({});
        if (taken !== null) await deletePlace(this.#client, this.#line.path, taken);
      });
    }
    return removed;
  }

  /** One round; null when it has to look again. */
  async #look(isTry: boolean): Promise<Turn<Taken> | null> {
    const { lockDelayMs } = this.#line;
    const { lost } = this.#place;
    if (this.#isDoubtful) {
      const taken = await this.#find(this.#attempt.next());
      this.#isDoubtful = false;
      if (taken !== null) return this.#had(taken);
    }
    // Before the list: clients that are not in it will touch us, which we are then notified of.
    if (!isTry && !(await this.#watchOwn())) return 'gone';
    const list = await this.#list();
    if (list === null || lost.aborted) return 'gone';
    // Nothing can be held on a server without a quorum.
    if (this.#client.state === 'read-only') throw new NotReadOnlyError(this.#attempt.about);
    const { waiters, index, isHeld, version } = list;
    const ahead = aheadOf(waiters, index, isHeld);
    if (ahead === null) {
      if (lockDelayMs > 0 && this.#versionWaitedOut !== version) {
        const delayed = await this.#waitForDelay(version, isTry);
        if (delayed !== 'over') return delayed;
      }
      return this.#take(version);
    }
    if (isTry) return 'not-ours';
    this.#touchOnce(waiters[index + 1]);
    if (!(await this.#watchAhead(ahead))) return null;
    this.#noteObstacle(ahead, isHeld);
    await this.#attempt.any(
      [this.#own, this.#ahead].flatMap((watch) => watch?.changed ?? []),
      { lost },
    );
    return lost.aborted ? 'gone' : null;
  }

  /** The current line; null when we are not in it. */
  async #list(): Promise<{
    readonly waiters: readonly string[];
    readonly index: number;
    readonly isHeld: boolean;
    readonly version: number;
  } | null> {
    try {
      const { children, stat } = await this.#client.children(this.#line.path, this.#attempt.next());
      const waiters = waitersOf(children);
      const index = waiters.indexOf(this.#name);
      return index < 0 ? null : { waiters, index, isHeld: children.includes(HELD), version: stat.version };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** @returns null to look again, as another client was faster */
  async #take(version: number): Promise<Turn<Taken> | null> {
    const { path, data, acl } = this.#line;
    const { stat, lost } = this.#place;
    try {
      const [, generation, made] = await this.#client
        .transaction()
        .delete(this.#place.path)
        .set(path, formatHolder(this.#name), { version })
        .create(this.#heldPath, data, { mode: 'ephemeral', acl })
        .commit(this.#attempt.next());
      if (made.stat === null) {
        // A server up to 3.8.1 does not return it: it is looked up as after a lost reply.
        this.#isDoubtful = true;
        return null;
      }
      const taken = { path: this.#heldPath, stat: made.stat, lost, version: generation.version };
      return made.stat.ephemeralOwner === stat.ephemeralOwner ? this.#had(taken) : this.#forgo(taken);
    } catch (error) {
      if (error instanceof TransactionError) {
        const { cause } = error;
        if (cause instanceof NoNodeError) return 'gone';
        if (cause instanceof BadVersionError || cause instanceof NodeExistsError) return null;
      }
      if (error instanceof ZooKeeperError && error.outcome === 'unknown') this.#isDoubtful = true;
      throw error;
    }
  }

  /** `held`, if it was created by an acquisition of ours. */
  async #find(options: CallOptions): Promise<Taken | null> {
    const read = { ...options, read: 'linearizable' } as const;
    try {
      const { data, stat: generation } = await this.#client.get(this.#line.path, { ...read, codec: text });
      if (parseHolder(data) !== this.#name) return null;
      const stat = await this.#client.exists(this.#heldPath, read);
      if (stat?.czxid !== generation.mzxid) return null;
      return { path: this.#heldPath, stat, lost: this.#place.lost, version: generation.version };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  /** If a holder died with the lock, waits for the delay. */
  async #waitForDelay(version: number, isTry: boolean): Promise<'over' | 'not-ours' | 'gone' | null> {
    const { path, lockDelayMs } = this.#line;
    const { data, stat } = await this.#client.get(path, { ...this.#attempt.next(), codec: text });
    if (stat.version !== version) return null;
    const holder = parseHolder(data);
    if (holder !== null) {
      await this.#noteDeath(holder, version);
      return null;
    }
    const leftMs = saysDeath(data) ? leftOfDelay(lockDelayMs, stat, this.#place) : 0;
    if (leftMs <= 0) return 'over';
    if (isTry) return 'not-ours';
    const { lost } = this.#place;
    this.#attempt.obstacle = 'lockDelayMs has not passed since the death of a holder';
    await this.#attempt.any([], { lost, delayMs: leftMs });
    if (lost.aborted) return 'gone';
    this.#versionWaitedOut = version;
    // A client that came meanwhile may be ahead of us.
    return null;
  }

  /** Records the death, so that every client knows since when. */
  async #noteDeath(holder: string, version: number): Promise<void> {
    try {
      await this.#client.set(this.#line.path, formatDead(holder), { version, ...this.#attempt.next() });
    } catch (error) {
      // Another client has noticed it before us.
      if (!(error instanceof BadVersionError)) throw error;
    }
  }

  /** It is ours, and certain to be, unless the session was lost meanwhile or the server has no quorum. */
  #had(taken: Taken): Turn<Taken> {
    return taken.lost.aborted || new Deadline(this.#client, NO_MARGIN).leftMs <= 0 ? this.#forgo(taken) : taken;
  }

  /** It is ours, but not certain to be. Nothing was done under it, so that no delay is needed. */
  #forgo(taken: Taken): 'gone' {
    const { path, stat } = taken;
    const { ephemeralOwner: sessionId, czxid } = stat;
    const removed = persist(this.#client, sessionId, () => deletePlace(this.#client, this.#line.path, taken));
    void removed.then(() => removeIfOurs(this.#client, path, sessionId, czxid));
    return 'gone';
  }

  #noteObstacle(ahead: string, isHeld: boolean): void {
    const session = `(session 0x${(this.#ahead?.sessionId ?? 0n).toString(16)})`;
    const path = joinPath(this.#line.path, ahead);
    const holder = isHeld ? `${this.#heldPath} holds it` : 'it is free';
    this.#attempt.obstacle =
      ahead === HELD ? `${path} ${session} holds it` : `${holder}, and ${path} ${session} stands before us`;
  }

  /** Wakes the waiter directly behind us, so that it waits for us. */
  #touchOnce(next: string | undefined): void {
    if (this.#hasTouched) return;
    this.#hasTouched = true;
    if (next !== undefined) void touch(this.#client, joinPath(this.#line.path, next));
  }

  async #watchOwn(): Promise<boolean> {
    if (this.#own?.isSpent === false) return true;
    this.#own = await watchZnode(this.#attempt, this.#place.path);
    return this.#own !== null;
  }

  async #watchAhead(name: string): Promise<boolean> {
    const path = joinPath(this.#line.path, name);
    if (this.#ahead?.isSpent === false && this.#ahead.path === path) return true;
    this.#ahead?.[Symbol.dispose]();
    this.#ahead = await watchZnode(this.#attempt, path);
    return this.#ahead !== null;
  }
}

/** Deletes `held` and records that no holder died, unless another client has acquired the lock since. */
export async function deletePlace(client: Client, path: string, taken: Pick<Taken, 'path' | 'version'>): Promise<void> {
  await client.transaction().set(path, FREE, { version: taken.version }).delete(taken.path).commit();
}

/** A one-shot watch that can be awaited several times. */
interface Watch extends Disposable {
  readonly path: string;
  readonly sessionId: bigint;
  readonly changed: Promise<unknown>;
  /** Its event has fired. */
  isSpent: boolean;
}

/** null when there is no such znode; then no watch is left, as `exists` would leave it. */
async function watchZnode(attempt: Attempt, path: string): Promise<Watch | null> {
  const found = await attempt.client.get(path, { ...attempt.next(), watch: true }).catch(nullIfMissing);
  if (found === null) return null;
  const { changed, stat } = found;
  const dispose = (): void => found[Symbol.dispose]();
  const watch: Watch = { path, sessionId: stat.ephemeralOwner, changed, isSpent: false, [Symbol.dispose]: dispose };
  const spend = (): void => {
    watch.isSpent = true;
  };
  changed.then(spend, spend);
  return watch;
}

/** Rewrites the same data. A client that was faster has woken it, too. */
async function touch(client: Client, path: string): Promise<void> {
  try {
    const { data, stat } = await client.get(path);
    await client.set(path, data, { version: stat.version });
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
  }
}
