import { joinPath, OpCode, type WatchableReadRequest } from '@meerkat/protocol';
import { forEachInFlight } from './conveniences/in-flight.ts';
import { type Deferred, makeDeferred, makeQuietDeferred } from './deferred.ts';
import { NoAuthError, NoNodeError, UnimplementedError } from './errors.ts';
import type { Children } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import type { WatchEnd, WatchEvent, WatchEventType, WatchListener } from './machine/watches.ts';
import { Patience } from './patience.ts';
import type { About } from './requester.ts';
import { makeEndError } from './watch-end.ts';
import type { WatchPorts } from './watch-ports.ts';
import type { GapReason, WatchSink } from './watch-source.ts';

/**
 * Watches a znode, or a whole subtree, by one-shot watches: for services that know no others.
 *
 * Each znode has a data watch (of `exists`) and a child watch (of `getChildren`). One that has fired makes its znode
 * dirty. In rounds, dirty znodes are read again, which arms their watches, and compared with what was told last:
 *
 *     event ──► dirty ──► read and armed again ──► difference to what was told ──► told
 *
 * 1. A change is told once its watch is armed again: whoever reads afterwards misses nothing.
 * 2. What is told leads from the state before to the state now. Changes that follow each other quickly are told as one,
 *    and a znode that was created and deleted between two looks is not told at all.
 * 3. In one round deletions are told first, children before parents, then creations, parents before children, then
 *    changes. The order among znodes is not that of the changes.
 * 4. Connections and sessions may come and go: what has changed meanwhile is told, and `onGap` after it.
 * 5. Children that may not be listed are not watched, except those of the root, which are an error.
 */
export class OneShotTree implements WatchListener {
  /** All znodes are read and armed. Rejects when that is not possible; nobody has to catch that. */
  readonly armed: Promise<void>;
  readonly #ports: WatchPorts;
  /** Absolute paths, here and below. */
  readonly #root: string;
  readonly #isRecursive: boolean;
  readonly #sink: WatchSink;
  readonly #about: About;
  readonly #patience: Patience;
  readonly #armed: Deferred<void> = makeQuietDeferred();
  /** What was told, or is there since the beginning. */
  readonly #known: Map<string, Znode> = new Map();
  /** What is to be read again: the watches that have fired. */
  #dirty: Map<string, number> = new Map();
  /** Znodes that are being read, and whether a watch of theirs has fired since. */
  readonly #reading: Map<string, boolean> = new Map();
  #gap: GapReason | null = null;
  #isOver = false;
  /** Resolved when there is something to do. */
  #work: Deferred<void> = makeDeferred();

  constructor(ports: WatchPorts, root: string, isRecursive: boolean, sink: WatchSink, about: About) {
    this.#ports = ports;
    this.#root = root;
    this.#isRecursive = isRecursive;
    this.#sink = sink;
    this.#about = about;
    this.#patience = new Patience(ports);
    this.armed = this.#armed.promise;
    void this.#run();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#patience.end();
    this.#work.resolve();
    for (const path of this.#known.keys()) this.#ports.forgetOneShots(path, this);
    this.#ports.forgetOneShots(this.#root, this);
  }

  /* ------------------------------------------------------------------------------------------------ events ---- */

  onWatchEvent({ type, path }: WatchEvent): void {
    if (this.#isOver) return;
    if (this.#reading.has(path)) this.#reading.set(path, true);
    this.#mark(path, FIRED[type]);
  }

  onWatchSuspended(): void {}

  onWatchRearmed(sameSession: boolean): void {
    if (this.#gap !== 'new-session') this.#gap = sameSession ? 'reconnected' : 'new-session';
    this.#work.resolve();
  }

  onWatchEnded(reason: WatchEnd): void {
    this.#fail(makeEndError(reason, this.#about));
  }

  #mark(path: string, watches: number): void {
    this.#dirty.set(path, (this.#dirty.get(path) ?? 0) | watches);
    this.#work.resolve();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.close();
    this.#armed.reject(error);
    this.#sink.onEnd(error);
  }

  /* ------------------------------------------------------------------------------------------------ rounds ---- */

  async #run(): Promise<void> {
    this.#mark(this.#root, ALL);
    let isFirst = true;
    try {
      while (!this.#isOver) {
        await this.#work.promise;
        this.#work = makeDeferred();
        const gap = this.#gap;
        this.#gap = null;
        const changes = await this.#round();
        if (this.#isOver) return;
        if (!isFirst) this.#tell(changes, gap);
        else if (changes.isComplete) {
          // What was there from the beginning is told nobody: it is what everything is compared with.
          isFirst = false;
          this.#armed.resolve();
        }
      }
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #tell({ deleted, created, changed }: Changes, gap: GapReason | null): void {
    // A path is a prefix of those below it, so the descending order has children before their parents.
    deleted.sort((a, b) => (a.path < b.path ? 1 : -1));
    for (const event of deleted) this.#sink.onEvent(event);
    for (const event of created) this.#sink.onEvent(event);
    for (const event of changed) this.#sink.onEvent(event);
    if (gap !== null) this.#sink.onGap(gap);
  }

  /** Reads everything that is dirty, and what turns up below it. */
  async #round(): Promise<Changes> {
    const dirty = this.#dirty;
    this.#dirty = new Map();
    const changes: Changes = { deleted: [], created: [], changed: [], isComplete: true };
    let level: (readonly [string, number])[] = [];
    for (const [path, watches] of dirty) {
      const isRoot = path === this.#root;
      if (!isRoot && (watches & GONE) !== 0) this.#drop(path, changes);
      // Otherwise nothing is known of it, and the list of its parent's children tells whether it is there.
      else if (isRoot || (watches & NEW) !== 0 || this.#known.has(path)) level.push([path, watches]);
    }
    while (level.length > 0) {
      const next: [string, number][] = [];
      let failure: unknown = null;
      await forEachInFlight(level, READS_MAX, async ([path, watches]) => {
        try {
          for (const child of await this.#look(path, watches, changes)) next.push([child, ALL]);
        } catch (error) {
          failure ??= error;
          changes.isComplete = false;
          this.#mark(path, watches | NEW);
        }
      });
      if (this.#isOver) return changes;
      if (failure !== null) await this.#recover(failure);
      level = next;
    }
    return changes;
  }

  /** Waits until it makes sense to go on. @throws what cannot be waited for */
  async #recover(failure: unknown): Promise<void> {
    const { sessionId } = this.#ports;
    const wasAway = await this.#patience.after(failure);
    if (this.#ports.sessionId !== sessionId) this.#gap = 'new-session';
    else if (wasAway) this.#gap ??= 'reconnected';
  }

  /** Reads one znode and arms the watches that have fired. @returns children that were not known */
  async #look(path: string, watches: number, changes: Changes): Promise<string[]> {
    this.#reading.set(path, false);
    let reading: Reading | null;
    let isDisturbed: boolean;
    try {
      reading = await this.#read(path, watches);
    } finally {
      isDisturbed = this.#reading.get(path) === true;
      this.#reading.delete(path);
    }
    if (this.#isOver) this.#ports.forgetOneShots(path, this);
    else if (isDisturbed) {
      // Something has happened to it since: the reading says nothing, and its watches may be used up.
      this.#mark(path, watches | NEW);
    } else if (reading !== null) return this.#compare(path, reading, changes);
    return [];
  }

  /** @returns null when nothing can be said */
  async #read(path: string, watches: number): Promise<Reading | null> {
    const { exists, getChildren2 } = OpCode;
    const [stat, list] = await Promise.all([
      (watches & DATA) === 0 ? undefined : this.#request<Stat>({ op: exists, path, watch: true }),
      (watches & CHILDREN) === 0 ? undefined : this.#request<Children>({ op: getChildren2, path, watch: true }),
    ]);
    // The list was read behind the stat.
    if (list === null) return { stat: null, names: null };
    if (list !== undefined) return { stat: list.stat, names: list.children };
    return stat === undefined ? null : { stat, names: null };
  }

  /** @returns null when there is no such znode, undefined when its children may not be listed */
  async #request<T>(request: WatchableReadRequest): Promise<T | null | undefined> {
    try {
      return await this.#ports.request<T>(request, undefined, this.#about, this);
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      if (error instanceof NoAuthError && request.path !== this.#root) return undefined;
      throw error;
    }
  }

  #compare(path: string, { stat, names }: Reading, changes: Changes): string[] {
    let known = this.#known.get(path);
    if (known !== undefined && known.stat.czxid !== stat?.czxid) {
      this.#drop(path, changes);
      known = undefined;
    }
    if (stat === null) {
      // The watch that `exists` has left where nothing is tells of the root only: of others the parent does.
      if (path !== this.#root) this.#ports.forgetOneShots(path, this);
      return [];
    }
    if (known === undefined) {
      known = { stat, children: NO_CHILDREN };
      this.#known.set(path, known);
      if (this.#known.size > ZNODES_MAX) throw this.#tooLarge();
      changes.created.push({ type: 'created', path, zxid: stat.czxid });
    } else {
      if (known.stat.mzxid !== stat.mzxid) changes.changed.push({ type: 'changed', path, zxid: stat.mzxid });
      if (!this.#isRecursive && known.stat.pzxid !== stat.pzxid) {
        changes.changed.push({ type: 'children', path, zxid: stat.pzxid });
      }
      known.stat = stat;
    }
    return names === null || !this.#isRecursive ? [] : this.#compareChildren(path, known, names, changes);
  }

  #compareChildren(path: string, known: Znode, names: readonly string[], changes: Changes): string[] {
    const children = new Set(names.map((name) => joinPath(path, name)));
    for (const child of known.children) if (!children.has(child)) this.#drop(child, changes);
    known.children = children;
    return [...children].filter((child) => !this.#known.has(child));
  }

  /** A znode is gone, and everything that was below it. */
  #drop(path: string, changes: Changes): void {
    const known = this.#known.get(path);
    if (known === undefined) return;
    this.#known.delete(path);
    changes.deleted.push({ type: 'deleted', path, zxid: null });
    for (const child of known.children) this.#drop(child, changes);
  }

  #tooLarge(): Error {
    const detail =
      `the servers are older than 3.6 and know no recursive watches, ` +
      `and one-shot watches are not put on more than ${ZNODES_MAX} znodes; watch smaller subtrees`;
    return new UnimplementedError({ ...this.#about, detail });
  }
}

interface Znode {
  stat: Stat;
  /** Paths of the children; always empty when only the root is watched. */
  children: ReadonlySet<string>;
}

interface Reading {
  /** null: there is no such znode. */
  readonly stat: Stat | null;
  /** null: not asked for, or not to be had. */
  readonly names: readonly string[] | null;
}

/** What has come out of a round. */
interface Changes {
  readonly deleted: WatchEvent[];
  readonly created: WatchEvent[];
  readonly changed: WatchEvent[];
  /** False when something could not be read. */
  isComplete: boolean;
}

/** What is to be done about a znode, as bits: watches to arm … */
const DATA = 1;
const CHILDREN = 2;
const ALL = 3;
/** … it was deleted … */
const GONE = 4;
/** … it is looked at even if nothing is known of it. */
const NEW = 8;

/** Which watches an event has used up. */
const FIRED: Readonly<Record<WatchEventType, number>> = {
  created: ALL,
  changed: DATA,
  children: CHILDREN,
  deleted: ALL | GONE,
};

const NO_CHILDREN: ReadonlySet<string> = new Set();

/** Znodes that are read at a time. */
const READS_MAX = 64;

/** Two watches on each: more would burden a server that counts them by the connection, and each reconnect. */
const ZNODES_MAX = 10_000;
