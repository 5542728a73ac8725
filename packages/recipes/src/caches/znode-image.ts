import {
  AbortedError,
  type CallOptions,
  type Client,
  joinPath,
  onAbort,
  parentOf,
  type Stat,
  UnimplementedError,
  type WatchStream,
  type WatchStreamEvent,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { checkEndingMs, checkLimit } from '../kernel/bounds.ts';
import { Audience } from './audience.ts';
import type { CachedZnode, CacheOptions, CacheReads } from './cached-znode.ts';
import type { CacheChanges } from './change-feed.ts';
import { ChildNames } from './child-names.ts';
import { CountedReads } from './counted-reads.ts';
import { EventCoverage } from './event-coverage.ts';
import { endedByUser, isGoodEnd } from './image-end.ts';
import { type ImageLimits, ImageShape } from './image-shape.ts';
import { Inquiries, type Look } from './inquiries.ts';
import { KnownChildren } from './known-children.ts';
import { Setback } from './setback.ts';
import { Timeline } from './timeline.ts';

/**
 * A znode, its children or the whole subtree, as they were at one zxid: the engine of the caches.
 *
 * ZooKeeper has no read of many znodes at one moment, and none of the past. That an image is that of zxid z follows
 * from the order in which one server answers one connection:
 *
 * 1. The header of a reply has the last txn that the server had applied, H (`client.lastZxid` is the largest so far).
 *    The event of a txn is sent before any reply that could show it. So when a reply with H has arrived, all events of
 *    the recursive watch for txns up to H have arrived as well (`WatchStream.take`).
 * 2. Events have path, type and zxid. So it is known for each path at which zxids, up to H, its data changed, and that
 *    it did not change at others.
 * 3. A znode that is read with mzxid m had this data from m until its next change.
 *
 * So each path has a sequence of intervals, in some of which its data is known (`Timeline`). A zxid z ≤ H at which no
 * path's data is unknown can be shown: image and tree at z are equal by (2) and (3). Any number of writers may continue
 * meanwhile; values overwritten before they could be read cost only the zxids at which they were current.
 *
 * Servers before 3.9 leave the zxid out of events. It is then larger than any H before the event, and not larger than
 * the next one: the interval in between is unknown. And a value read while such an event arrived is known at its own
 * zxid only, since the event may be of a later change. The image advances when there is a round trip without changes.
 *
 * While disconnected, events are missed. The image stays that of its zxid, and `isStale` is true. After reconnecting,
 * only the Stat of each znode is requested: an unchanged mzxid means unchanged data, others are read again; a pzxid
 * other than that of the last known creation or deletion of a child means that the children are listed again. Until all
 * of this has completed, and up to the zxid of the first reply of the new connection, nothing is published.
 */
export class ZnodeImage {
  readonly path: string;
  readonly ready: Promise<void>;
  readonly #client: Client;
  readonly #shape: ImageShape;
  readonly #watch: WatchStream;
  readonly #timeline: Timeline<CachedZnode> = new Timeline(({ stat }) => stat.mzxid);
  readonly #names: ChildNames;
  readonly #known: KnownChildren = new KnownChildren();
  readonly #audience: Audience = new Audience();
  /** Called when the image ends. */
  readonly #releases: (() => void)[] = [];
  readonly #coverage: EventCoverage = new EventCoverage();
  /** Events are dropped while it checks whether the service has gone back. */
  readonly #setback: Setback;
  readonly #inquiries: Inquiries;
  /** Not read since the last gap. */
  readonly #unseen: Set<string> = new Set();
  #isSettling = false;
  readonly #reads: CountedReads;
  #end: Error | null = null;

  constructor(client: Client, path: string, limits: ImageLimits, options: CacheOptions = {}) {
    const { signal, refreshSpreadMs = 100, requestsMax = 64 } = options;
    checkEndingMs('refreshSpreadMs', refreshSpreadMs);
    checkLimit('requestsMax', requestsMax);
    this.path = path;
    this.#client = client;
    this.#shape = new ImageShape(path, limits);
    this.#names = new ChildNames(path);
    this.#reads = new CountedReads(client);
    this.#setback = new Setback(client, path, {
      drain: () => this.#drain(),
      onCaughtUp: () => this.#onGap(),
      onFailed: (error) => this.#fail(error),
    });
    this.#inquiries = new Inquiries(
      client,
      { refreshSpreadMs, requestsMax },
      {
        look: (at, how) => this.#look(at, how),
        list: (at) => this.#list(at),
        onAnswered: () => this.#scheduleSettling(),
        onFailed: (error) => this.#fail(error),
      },
    );
    this.#watch = client.watch(path, { recursive: this.#shape.isDeep, bufferMax: BUFFER_MAX });
    this.ready = this.waitFor(0n);
    this.ready.catch(() => {});
    const states = client.onState(({ state }) => {
      // Before the watch is armed nothing can be missed, and no gap follows.
      if (state === 'connected' || !this.#coverage.isArmed) return;
      this.#drain();
      this.#coverage.onConnectionLost();
    });
    this.#releases.push(
      () => states[Symbol.dispose](),
      onAbort(signal, () => void this.close()),
    );
    if (this.#end === null) void this.#run();
  }

  /** The image is the tree as it was at this zxid. −1 before `ready`. */
  get zxid(): bigint {
    if (this.#end === null && this.#coverage.isArmed) {
      this.#drain();
      // Nothing differs up to here; the image itself never changes inside a read of this.
      if (this.#end === null && this.#isQuiet && this.#timeline.isSettled) this.#timeline.publish(this.#coverage.zxid);
    }
    return this.#timeline.zxid;
  }

  /** The image is not being kept up to date: disconnected, not refreshed yet, or closed. */
  get isStale(): boolean {
    if (this.#end !== null || this.#client.state !== 'connected' || this.#timeline.zxid < 0n) return true;
    this.#drain();
    return this.#end !== null || this.#coverage.isInterrupted || this.#isRefreshing;
  }

  get znodes(): ReadonlyMap<string, CachedZnode> {
    return this.#timeline.values;
  }

  get reads(): CacheReads {
    return this.#reads.counts;
  }

  /** Names of the children in the image, sorted; null when the znode is not in it. */
  children(path: string): string[] | null {
    if (!this.#timeline.values.has(path)) return null;
    return this.#names.of(path);
  }

  /**
   * Resolves when the image includes everything up to a zxid.
   *
   * @throws AbortedError, TimeoutError; the error that has ended the image
   */
  async waitFor(zxid: bigint, options: CallOptions = {}): Promise<void> {
    const attempt = new Attempt(this.#client, options, { operation: 'waitFor', path: this.path });
    for (let round = 0; ; round++) {
      if (this.#end !== null) throw this.#end;
      if (this.#timeline.zxid >= 0n && this.zxid >= zxid) return;
      // A change elsewhere causes no event here: only a reply shows that the server has got so far.
      if (round > 0 && this.#timeline.zxid >= 0n) await this.#sync(attempt);
      if (this.#end === null && this.zxid >= zxid && this.#timeline.zxid >= 0n) return;
      if (this.#end !== null) throw this.#end;
      await this.#audience.next(attempt, Math.min(1000, 10 * 2 ** round));
    }
  }

  /** @param hasInitial begins with what is there, as if it had just been created */
  changes(hasInitial: boolean): CacheChanges {
    const { values } = this.#timeline;
    const feed = this.#audience.follow(
      (path) => values.get(path) ?? null,
      () => this.#timeline.zxid,
    );
    if (hasInitial) feed.push([...values.values()].map((after) => ({ path: after.path, before: null, after })));
    return feed;
  }

  /** Closes it; the image stays. Resolves when the server has removed the watch. Never rejects. */
  async close(): Promise<void> {
    this.#finish(new AbortedError({ operation: 'cache', path: this.path, detail: 'the cache is closed' }));
    await this.#watch.close();
  }

  /* ------------------------------------------------------------------------------------------------- the watch ---- */

  async #run(): Promise<void> {
    try {
      await this.#watch.ready;
      if (this.#watch.mode !== 'persistent') {
        const detail = 'a cache needs persistent watches, which servers have since 3.6';
        throw new UnimplementedError({ operation: 'cache', path: this.path, outcome: 'not-applied', detail });
      }
      this.#coverage.arm(this.#client.lastZxid);
      this.#timeline.onBlind(0n);
      this.#timeline.onSight(this.#coverage.zxid);
      this.#unseen.add(this.path);
      this.#inquiries.addLook(this.path, 'read');
      this.#timeline.onChanged(this.path, 0n);
      while (this.#end === null) {
        this.#drain();
        this.#inquiries.ask();
        if (this.#watch.isOver) break;
        this.#scheduleSettling();
        await this.#watch.arrival();
      }
      // Throws the reason, or nothing if the user ended it.
      for await (const _ of this.#watch);
      this.#finish(endedByUser(this.#client, this.path));
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  /**
   * Takes the events that have arrived. Then every change up to the zxid of the coverage is known, unless this was the
   * end.
   */
  #drain(): void {
    try {
      for (let event = this.#watch.take(); event !== null; event = this.#watch.take()) this.#onEvent(event);
    } catch (error) {
      // Thrown by `includes`, the user's function.
      this.#fail(error as Error);
    }
    const { lastZxid } = this.#client;
    if (this.#end !== null || this.#setback.isDoubted || lastZxid <= this.#coverage.zxid) return;
    this.#coverage.advance(lastZxid);
    if (!this.#timeline.isSettled) this.#scheduleSettling();
  }

  #onEvent(event: WatchStreamEvent): void {
    if (event.type === 'gap') {
      this.#onGap();
      return;
    }
    if (this.#setback.isDoubted) return;
    const { type, path, zxid } = event;
    if (type === 'children' || !this.#shape.belongs(path)) return;
    this.#coverage.onEvent(zxid);
    // It existed and was not known: created while events were missed, or not read yet.
    if (type !== 'created' && this.#timeline.newest(path) === null) {
      this.#timeline.onChanged(path, this.#timeline.zxid + 1n);
    }
    if (type !== 'changed') this.#noteChildren(path, type, zxid);
    if (type === 'deleted' && zxid !== null) {
      this.#timeline.onDeleted(path, zxid);
      this.#inquiries.dropLook(path);
      this.#unseen.delete(path);
    } else {
      this.#timeline.onChanged(path, zxid ?? this.#coverage.zxid + 1n);
      this.#inquiries.addLook(path, 'read');
    }
    this.#scheduleSettling();
  }

  #onGap(): void {
    this.#setback.end();
    if (this.#client.lastZxid < this.#coverage.zxid) {
      this.#onDoubt();
      return;
    }
    this.#inquiries.release();
    const from = this.#coverage.onGap();
    this.#timeline.onBlind(from);
    // Some events of a txn may have been missed, so an equal pzxid does not prove equal children.
    this.#known.forgetFrom(from);
    this.#inquiries.dropLists();
    this.#unseen.clear();
    for (const path of this.#timeline.paths().add(this.path)) {
      if (path !== this.path && this.#timeline.newest(path) === null) continue;
      this.#unseen.add(path);
      this.#inquiries.addLook(path, this.#timeline.newestSeen(path) === null ? 'read' : 'check');
    }
    this.#inquiries.holdBack();
    this.#scheduleSettling();
  }

  /** Events are dropped until it is decided: the gap comes after it. */
  #onDoubt(): void {
    // Requests in flight were sent before.
    this.#coverage.onDoubt();
    this.#inquiries.hold();
    void this.#setback.ask(this.#coverage.zxid);
  }

  /** A creation or deletion reported with its zxid need not be detected by the parent's pzxid. */
  #noteChildren(path: string, type: 'created' | 'deleted', zxid: bigint | null): void {
    if (type === 'deleted') this.#known.forget(path);
    else if (zxid !== null) this.#known.note(path, zxid);
    if (zxid === null || path === this.path) return;
    const parent = parentOf(path);
    const isSure = !this.#unseen.has(parent) && !this.#inquiries.hasList(parent);
    if (isSure) this.#known.advance(parent, zxid);
  }

  /* ----------------------------------------------------------------------------------------------- the reading ---- */

  get #isRefreshing(): boolean {
    return this.#unseen.size > 0 || this.#inquiries.hasLists;
  }

  get #isQuiet(): boolean {
    return this.#unseen.size === 0 && this.#inquiries.isIdle;
  }

  async #look(path: string, how: Look): Promise<void> {
    const gaps = this.#coverage.gaps;
    const known = this.#timeline.newestSeen(path);
    let stat: Stat | null;
    let found: CachedZnode | null = null;
    if (how === 'check' && known !== null) {
      stat = await this.#reads.stat(path);
      if (stat !== null && stat.mzxid === known.stat.mzxid) found = { path, data: known.data, stat };
    } else {
      found = await this.#reads.data(path);
      stat = found?.stat ?? null;
    }
    this.#drain();
    if (this.#end !== null) return;
    if (gaps === this.#coverage.gaps) this.#timeline.onSight(this.#coverage.zxid);
    // It says nothing of changes made meanwhile; these cause another look.
    const isSureNow = gaps === this.#coverage.gaps && !this.#inquiries.hasLook(path);
    if (stat === null) {
      this.#known.forget(path);
      this.#timeline.onMissing(path, isSureNow ? this.#coverage.zxid : null);
    } else if (found === null) {
      if (!this.#inquiries.hasLook(path)) this.#inquiries.addLook(path, 'read');
      return;
    } else {
      this.#timeline.onFound(path, found, isSureNow ? this.#coverage.zxid : null);
      // Without zxids, the mark of a change may stand before what was found here, although the change came after it.
      if (!isSureNow && this.#coverage.lacksZxids) this.#timeline.onOutdated(path);
      this.#lookBelow(path, stat);
    }
    if (gaps === this.#coverage.gaps) this.#unseen.delete(path);
  }

  #lookBelow(path: string, stat: Stat): void {
    if (this.#known.isAsOf(path, stat.pzxid) || !this.#shape.reachesBelow(path)) return;
    if (stat.numChildren === 0) this.#known.note(path, stat.pzxid);
    else this.#inquiries.addList(path);
  }

  async #list(path: string): Promise<void> {
    const gaps = this.#coverage.gaps;
    const listed = await this.#reads.list(path);
    this.#drain();
    if (this.#end !== null) return;
    // After a gap the parent is checked again, and so are its children.
    if (gaps !== this.#coverage.gaps || listed === null) return;
    for (const name of listed.children) {
      const child = joinPath(path, name);
      if (!this.#shape.belongs(child) || this.#timeline.newest(child) !== null || this.#inquiries.hasLook(child))
        continue;
      this.#timeline.onChanged(child, this.#timeline.zxid + 1n);
      this.#unseen.add(child);
      this.#inquiries.addLook(child, 'read');
    }
    this.#known.note(path, listed.stat.pzxid);
  }

  /* -------------------------------------------------------------------------------------------- what is published ---- */

  /** Once, after all events that have arrived together. */
  #scheduleSettling(): void {
    if (this.#isSettling) return;
    this.#isSettling = true;
    queueMicrotask(() => {
      this.#isSettling = false;
      if (this.#end === null) this.#settle();
    });
  }

  #settle(): void {
    this.#drain();
    if (this.#end !== null || this.#setback.isDoubted) return;
    // After a deletion there is nothing to read; but only a reply shows that all events of its txn have arrived.
    if (this.#isQuiet && this.#coverage.isAhead) this.#inquiries.addLook(this.path, 'check');
    this.#inquiries.ask();
    if (this.#isRefreshing || !this.#coverage.isArmed) return;
    const differences = this.#timeline.publish(this.#coverage.zxid);
    if (differences === null) return;
    for (const difference of differences) this.#names.note(difference);
    this.#audience.notify(differences);
  }

  async #sync(attempt: Attempt): Promise<void> {
    try {
      await this.#client.sync(this.path, attempt.next());
    } catch {
      // Permanent errors end the image; others are retried until the timeout.
      attempt.next();
    }
  }

  #fail(error: Error): void {
    this.#finish(error);
    void this.#watch.close();
  }

  #finish(error: Error): void {
    if (this.#end !== null) return;
    this.#end = error;
    for (const release of this.#releases.splice(0)) release();
    this.#setback.end();
    this.#inquiries.end();
    this.#audience.end(isGoodEnd(error) ? null : error);
  }
}

/** Events that may be queued between two turns of the event loop; more are treated as a gap, which costs a refresh. */
const BUFFER_MAX = 100_000;
