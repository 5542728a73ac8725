import { joinPath, OpCode, parentOf, type WatchableReadRequest } from '@meerkat/protocol';
import { forEachInFlight } from './conveniences/in-flight.ts';
import { type Deferred, makeDeferred, makeQuietDeferred } from './deferred.ts';
import { NoAuthError, NoNodeError, UnimplementedError } from './errors.ts';
import type { Children } from './machine/replies.ts';
import type { Stat } from './machine/stat.ts';
import type { WatchEnd, WatchEvent, WatchEventType, WatchListener } from './machine/watch-listener.ts';
import type { About } from './requester.ts';
import { RetryGate } from './retry-gate.ts';
import { makeEndError } from './watch-end.ts';
import type { WatchPorts } from './watch-ports.ts';
import type { GapReason, WatchSink } from './watch-sink.ts';

/**
 * Watches a znode, or a whole subtree, with one-shot watches: for services without persistent ones.
 *
 * Each znode has a data watch (of `exists`) and a child watch (of `getChildren`). One that has fired makes its znode
 * dirty. In rounds, dirty znodes are read again, which rearms their watches, and compared with the last reported state:
 *
 *     event ──► dirty ──► read and rearmed ──► differs from the reported state ──► reported
 *
 * 1. A change is reported once its watch is rearmed: a read after it misses nothing.
 * 2. Reports lead from the previous state to the current one. Changes in quick succession are reported as one, and a
 *    znode that was created and deleted between two reads is not reported at all.
 * 3. In one round deletions are reported first, children before parents, then everything else, parents before children.
 *    The order among znodes is not that of the changes.
 * 4. Across connections and sessions: changes made meanwhile are reported, and `onGap` after them.
 * 5. Children that may not be listed are not watched; for the root this is an error.
 */
export class OneShotTree implements WatchListener {
  /** All znodes are read and armed. Rejects when that is not possible; the rejection need not be handled. */
  readonly armed: Promise<void>;
  readonly #ports: WatchPorts;
  /** Absolute paths, here and below. */
  readonly #root: string;
  readonly #isRecursive: boolean;
  readonly #sink: WatchSink;
  readonly #about: About;
  readonly #retryGate: RetryGate;
  readonly #armed: Deferred<void> = makeQuietDeferred();
  /** The reported state, including what existed at the beginning. */
  readonly #known: Map<string, Znode> = new Map();
  /** What has to be read again: the watches that have fired. */
  #dirty: Map<string, number> = new Map();
  /** The session whose connection is gone; null while there is a connection, as far as is known. */
  #awayFrom: bigint | null = null;
  /** To be reported after the next round. */
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
    this.#retryGate = new RetryGate(ports);
    this.armed = this.#armed.promise;
    void this.#run();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#retryGate.end();
    this.#work.resolve();
    for (const path of this.#known.keys()) this.#ports.forgetOneShots(path, this);
    this.#ports.forgetOneShots(this.#root, this);
  }

  /* ------------------------------------------------------------------------------------------------ events ---- */

  onWatchEvent({ type, path }: WatchEvent): void {
    if (this.#isOver) return;
    this.#mark(path, FIRED[type]);
    if (type === 'deleted') this.#markParent(path);
  }

  onWatchSuspended(): void {
    this.#awayFrom ??= this.#ports.sessionId;
  }

  onWatchRearmed(): void {
    this.#onBack();
  }

  /** There is a connection again: a watch was armed on it, or a request answered if all of them had fired. */
  #onBack(): void {
    if (this.#awayFrom === null) return;
    const isSame = this.#ports.sessionId === this.#awayFrom;
    this.#awayFrom = null;
    if (this.#gap !== 'new-session') this.#gap = isSame ? 'reconnected' : 'new-session';
    this.#work.resolve();
  }

  onWatchEnded(reason: WatchEnd): void {
    this.#fail(makeEndError(reason, this.#about));
  }

  #mark(path: string, watches: number): void {
    this.#dirty.set(path, (this.#dirty.get(path) ?? 0) | watches);
    this.#work.resolve();
  }

  /** A znode is gone. If it was recreated, and its parent was listed in between, only another list shows that. */
  #markParent(path: string): void {
    if (path !== this.#root) this.#mark(parentOf(path), CHILDREN);
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
        const { before, isComplete } = await this.#round();
        if (this.#isOver) return;
        if (!isFirst) {
          this.#notify(before);
          if (gap !== null) this.#sink.onGap(gap);
        } else if (isComplete) {
          // The initial state is not reported: later states are compared with it.
          isFirst = false;
          this.#armed.resolve();
        }
      }
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  /** Reports the changes from the state before a round to the state after it. */
  #notify(before: ReadonlyMap<string, Stat | null>): void {
    // A path is a prefix of those below it: in this order parents come before their children.
    const paths = [...before.keys()].sort();
    for (const path of paths.toReversed()) {
      const was = before.get(path) ?? null;
      if (was !== null && was.czxid !== this.#known.get(path)?.stat.czxid) this.#notifyOne('deleted', path, null);
    }
    for (const path of paths) {
      const was = before.get(path) ?? null;
      const stat = this.#known.get(path)?.stat;
      if (stat === undefined) continue;
      if (was?.czxid !== stat.czxid) this.#notifyOne('created', path, stat.czxid);
      else {
        if (was.mzxid !== stat.mzxid) this.#notifyOne('changed', path, stat.mzxid);
        if (!this.#isRecursive && was.pzxid !== stat.pzxid) this.#notifyOne('children', path, stat.pzxid);
      }
    }
  }

  #notifyOne(type: WatchEventType, path: string, zxid: bigint | null): void {
    this.#sink.onEvent({ type, path, zxid });
  }

  /** Reads all dirty znodes, and new znodes below them. */
  async #round(): Promise<Round> {
    const dirty = this.#dirty;
    this.#dirty = new Map();
    const round: Round = { before: new Map(), isComplete: true };
    let level: (readonly [string, number])[] = [];
    for (const [path, watches] of dirty) {
      const isRoot = path === this.#root;
      if (!isRoot && (watches & GONE) !== 0) this.#drop(path, round);
      // Otherwise nothing is known of it, and the list of its parent's children shows whether it exists.
      else if (isRoot || (watches & NEW) !== 0 || this.#known.has(path)) level.push([path, watches]);
    }
    while (level.length > 0) {
      const { children, failure } = await this.#lookAtAll(level, round);
      if (this.#isOver) return round;
      if (failure !== null) await this.#recover(failure);
      if (this.#known.size + children.length > ZNODES_MAX) throw this.#tooLarge();
      level = children.map((child) => [child, ALL]);
    }
    return round;
  }

  /** Znodes that cannot be read stay dirty. @returns children that were not known, and the first failure */
  async #lookAtAll(
    level: readonly (readonly [string, number])[],
    round: Round,
  ): Promise<{ readonly children: readonly string[]; readonly failure: unknown }> {
    const children: string[] = [];
    let failure: unknown = null;
    await forEachInFlight(level, READS_MAX, async ([path, watches]) => {
      try {
        for (const child of await this.#look(path, watches, round)) children.push(child);
      } catch (error) {
        failure ??= error;
        round.isComplete = false;
        this.#mark(path, watches | NEW);
      }
    });
    return { children, failure };
  }

  /** Waits until a retry makes sense. @throws permanent failures */
  async #recover(failure: unknown): Promise<void> {
    const { sessionId } = this.#ports;
    if (await this.#retryGate.after(failure)) this.#awayFrom ??= sessionId;
  }

  /** Reads one znode and arms the watches that have fired. @returns children that were not known */
  async #look(path: string, watches: number, round: Round): Promise<string[]> {
    const reading = await this.#read(path, watches);
    if (this.#isOver) {
      this.#ports.forgetOneShots(path, this);
      return [];
    }
    this.#onBack();
    return reading === null ? [] : this.#compare(path, reading, round);
  }

  /** @returns null when nothing is known */
  async #read(path: string, watches: number): Promise<Reading | null> {
    const { exists, getChildren2 } = OpCode;
    const [stat, list] = await Promise.all([
      (watches & DATA) === 0 ? undefined : this.#request<Stat>({ op: exists, path, watch: true }),
      (watches & CHILDREN) === 0 ? undefined : this.#request<Children>({ op: getChildren2, path, watch: true }),
    ]);
    // The list was read after the stat.
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

  #compare(path: string, { stat, names }: Reading, round: Round): string[] {
    let known = this.#known.get(path);
    if (known !== undefined && known.stat.czxid !== stat?.czxid) {
      this.#drop(path, round);
      known = undefined;
    }
    if (stat === null) {
      this.#markParent(path);
      // The watch that `exists` has set on a missing znode is only needed for the root: others are reported by their
      // parents.
      if (path !== this.#root) this.#ports.forgetOneShots(path, this);
      return [];
    }
    this.#remember(path, round);
    if (known !== undefined) known.stat = stat;
    else {
      known = { stat, children: NO_CHILDREN };
      this.#known.set(path, known);
    }
    return names === null || !this.#isRecursive ? [] : this.#compareChildren(path, known, names, round);
  }

  #compareChildren(path: string, known: Znode, names: readonly string[], round: Round): string[] {
    const children = new Set(names.map((name) => joinPath(path, name)));
    for (const child of known.children) if (!children.has(child)) this.#drop(child, round);
    known.children = children;
    return [...children].filter((child) => !this.#known.has(child));
  }

  /** A znode is gone, with its subtree. */
  #drop(path: string, round: Round): void {
    const known = this.#known.get(path);
    if (known === undefined) return;
    this.#remember(path, round);
    this.#known.delete(path);
    for (const child of known.children) this.#drop(child, round);
  }

  /** Records the state before the round, once per znode. */
  #remember(path: string, { before }: Round): void {
    if (!before.has(path)) before.set(path, this.#known.get(path)?.stat ?? null);
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
  /** null: not requested, or not available. */
  readonly names: readonly string[] | null;
}

/** The result of a round. */
interface Round {
  /** The reported state of the znodes that have changed, before the round; null for those that did not exist. */
  readonly before: Map<string, Stat | null>;
  /** False when something could not be read. */
  isComplete: boolean;
}

/** What has to be done with a znode, as bits: watches to arm … */
const DATA = 1;
const CHILDREN = 2;
const ALL = 3;
/** … it was deleted … */
const GONE = 4;
/** … it is read even if nothing is known of it. */
const NEW = 8;

/** Which watches an event has consumed. */
const FIRED: Readonly<Record<WatchEventType, number>> = {
  created: ALL,
  changed: DATA,
  children: CHILDREN,
  deleted: ALL | GONE,
};

const NO_CHILDREN: ReadonlySet<string> = new Set();

/** Maximum of znodes that are read concurrently. */
const READS_MAX = 64;

/** Two watches on each: more would burden a server that limits them per connection, and each reconnect. */
const ZNODES_MAX = 10_000;
