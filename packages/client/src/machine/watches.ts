import {
  AddWatchMode,
  ErrorCode,
  EventType,
  OpCode,
  parentOf,
  type Request,
  type SetWatchesRequest,
  WatcherType,
} from '@meerkat/protocol';

/** What happened to a watched znode. */
export type WatchEventType = 'created' | 'deleted' | 'changed' | 'children';

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
  /** zxid of the txn that made the change; null when the server does not send it (before 3.9, and replayed events). */
  readonly zxid: bigint | null;
}

/** A listener of a watch. Called synchronously while bytes are decoded: it must not call back into the session. */
export interface WatchListener {
  onWatchEvent(event: WatchEvent): void;
  /** The connection is gone; the watch is armed again on the next one. Persistent watches miss what happens meanwhile. */
  onWatchSuspended(): void;
  /** The watch is armed again, after `onWatchSuspended`; a persistent one may have missed events before this. */
  onWatchRearmed(sameSession: boolean): void;
  /** The watch has ended. Nothing follows. */
  onWatchEnded(reason: WatchEnd): void;
}

export type WatchEnd = 'closed' | 'auth-failed' | 'removed';

/** The lists in which a path can stand. The first three are one-shot. */
export type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive';

/**
 * The listeners of each watch: the client's image of what the server holds for its connection.
 *
 * A server knows one entry for a connection and a path. Since 3.9 the entry is a set of modes; before, the mode that
 * was set last replaces the others, so that `get` with a watch would silently end a recursive watch on the same path.
 * Hence two rules, which hold on every server:
 *
 * 1. Where a persistent or recursive watch stands on exactly that path, it serves the one-shot watches too, and the
 *    server is not asked for them (`isCovered`), unless it is known to keep modes apart.
 * 2. A recursive watch has no 'children' events. They are derived from the creation and deletion of a direct child. A
 *    server that keeps modes apart sends them as well; the zxid shows that it is the same change.
 */
export class Watches {
  readonly #entries: Map<string, Entry> = new Map();
  #recursiveCount = 0;
  /** Whether the connected server keeps the modes of a path apart (3.9 and newer); null = not known yet. */
  keepsModes: boolean | null = null;

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Number of paths with a watch. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * A request with a one-shot watch is about to be sent.
   *
   * @returns true when the server must not be asked for the watch, because it would replace another
   */
  isCovered(request: Request): boolean {
    if (this.keepsModes === true || this.#entries.size === 0) return false;
    switch (request.op) {
      case OpCode.exists:
      case OpCode.getData:
      case OpCode.getChildren:
      case OpCode.getChildren2: {
        const entry = this.#entries.get(request.path);
        if (entry?.hasLasting !== true) return false;
        entry.hasCovered = true;
        return true;
      }
      default:
        return false;
    }
  }

  /** An addWatch is about to be sent. @returns the mode to send: a recursive watch is never replaced by a plain one */
  onAddWatchSent(path: string, mode: number): number {
    const entry = this.#entryOf(path);
    if (mode === AddWatchMode.persistentRecursive) {
      entry.isRecursiveSent = true;
      entry.recursiveAsked++;
    } else {
      entry.isPersistentSent = true;
      entry.persistentAsked++;
    }
    const isReplaced = this.keepsModes !== true && (entry.isRecursiveSent || entry.recursive.size > 0);
    if (!isReplaced) return mode;
    if (mode !== AddWatchMode.persistentRecursive) {
      entry.hasCovered = true;
      entry.isWidened = true;
      entry.narrowing = null;
    }
    return AddWatchMode.persistentRecursive;
  }

  /** The reply to an addWatch has come, whatever it says and whether or not it is still wanted. */
  onAddWatchAnswered(path: string, mode: number): void {
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    if (mode === AddWatchMode.persistentRecursive) entry.recursiveAsked--;
    else entry.persistentAsked--;
  }

  /** The reply to a request with a watch: the server holds the watch now, if the reply is one that leaves it behind. */
  onReply(request: Request, code: number, listener: WatchListener): void {
    switch (request.op) {
      case OpCode.exists:
        if (code === ErrorCode.ok) this.add('data', request.path, listener);
        else if (code === ErrorCode.noNode) this.add('exist', request.path, listener);
        return;
      case OpCode.getData:
        if (code === ErrorCode.ok) this.add('data', request.path, listener);
        return;
      case OpCode.getChildren:
      case OpCode.getChildren2:
        if (code === ErrorCode.ok) this.add('child', request.path, listener);
        return;
      case OpCode.addWatch:
        if (code !== ErrorCode.ok) return;
        this.add(
          request.mode === AddWatchMode.persistentRecursive ? 'recursive' : 'persistent',
          request.path,
          listener,
        );
        return;
      default:
    }
  }

  add(kind: WatchKind, path: string, listener: WatchListener): void {
    const listeners = this.#entryOf(path)[kind];
    if (kind === 'recursive' && !listeners.has(listener)) this.#recursiveCount++;
    listeners.add(listener);
  }

  has(kind: WatchKind, path: string): boolean {
    return (this.#entries.get(path)?.[kind].size ?? 0) > 0;
  }

  /**
   * @returns true when this was the last listener of its kind on that path, so that the server's watch can go; false
   *   while an addWatch for another one is on its way, which a removal behind it would undo
   */
  remove(kind: WatchKind, path: string, listener: WatchListener): boolean {
    const entry = this.#entries.get(path);
    if (entry === undefined || !entry[kind].delete(listener)) return false;
    if (kind === 'recursive') this.#recursiveCount--;
    const isLast = entry[kind].size === 0 && entry.askedOf(kind) === 0;
    if (isLast && kind === 'recursive') entry.isRecursiveSent = false;
    if (isLast && kind === 'persistent') entry.isPersistentSent = false;
    this.#dropIfEmpty(path, entry);
    return isLast;
  }

  /** Removes a listener from the one-shot watches of a path. Events of the server's watches are then dropped. */
  forgetOneShots(path: string, listener: WatchListener): void {
    this.remove('data', path, listener);
    this.remove('exist', path, listener);
    this.remove('child', path, listener);
  }

  /** Removes all listeners of these kinds from a path, and notifies them. */
  removeAll(kinds: readonly WatchKind[], path: string): void {
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    for (const kind of kinds) {
      for (const listener of [...entry[kind]]) {
        this.remove(kind, path, listener);
        listener.onWatchEnded('removed');
      }
    }
  }

  /**
   * The requests that take the last persistent or recursive watch off a path on the server. One that keeps no modes
   * apart can only drop the whole entry; what is still wanted there is armed again behind it.
   */
  removalRequests(kind: 'persistent' | 'recursive', path: string, lastZxid: number): Request[] {
    const entry = this.#entries.get(path);
    if (this.keepsModes === true) {
      const { persistent, persistentRecursive } = WatcherType;
      const own: Request = {
        op: OpCode.removeWatches,
        path,
        watcherType: kind === 'persistent' ? persistent : persistentRecursive,
      };
      if (entry?.hasCovered !== true) return [own];
      // Before this was known of the server, others were left to the watch that goes, or it was asked for as a recursive
      // one. They are armed first, so that nothing is lost in between. Removed is by kind only: a read that is on its way may
      // leave a one-shot watch.
      const isWhole = kind === 'persistent' && entry.isWidened && entry.recursive.size + entry.recursiveAsked === 0;
      const rest = this.#setWatches([[path, entry]], lastZxid);
      if (isWhole || kind === 'recursive') entry.narrowBehind(own, kind);
      return isWhole ? [...rest, { ...own, watcherType: persistentRecursive }, own] : [...rest, own];
    }
    // Without the recursive watch nothing has changed for the server: the entry is recursive still.
    if (kind === 'persistent' && entry !== undefined && entry.recursive.size > 0) return [];
    // Nor may the whole entry go while an addWatch of the other mode is on its way.
    if (entry !== undefined && entry.persistentAsked + entry.recursiveAsked > 0) return [];
    const whole: Request = { op: OpCode.removeWatches, path, watcherType: WatcherType.any };
    if (entry === undefined) return [whole];
    entry.narrowBehind(whole, kind);
    return [whole, ...this.#setWatches([[path, entry]], lastZxid)];
  }

  /** The reply to the last of `removalRequests` has come, or never will. */
  onRemovalAnswered(removal: Request, path: string): void {
    const entry = this.#entries.get(path);
    if (entry?.narrowing !== removal) return;
    entry.narrowing = null;
    entry.isWidened = false;
    this.#dropIfEmpty(path, entry);
  }

  /** A persistent or recursive watch stands on this path, or will in a moment. */
  hasLasting(path: string): boolean {
    return this.#entries.get(path)?.hasLasting === true;
  }

  /** The requests that arm all watches of one path; the server reports what they have missed. */
  rearmRequestsOf(path: string, lastZxid: number): SetWatchesRequest[] {
    const entry = this.#entries.get(path);
    return entry === undefined ? [] : this.#setWatches([[path, entry]], lastZxid);
  }

  /** A notification. What is one-shot is taken off. */
  onEvent(type: number, path: string, zxid: bigint | null): void {
    const name = EVENT_NAMES.get(type);
    if (name === undefined) return;
    const event: WatchEvent = { type: name, path, zxid };
    const told = new Set<WatchListener>();
    const entry = this.#entries.get(path);
    if (entry !== undefined) {
      if (name === 'children') {
        if (zxid === null || zxid !== entry.childrenZxid) {
          entry.childrenZxid = zxid;
          consume(entry.child, event, told);
          tell(entry.persistent, event, told);
        }
      } else {
        consume(entry.data, event, told);
        consume(entry.exist, event, told);
        if (name === 'deleted') consume(entry.child, event, told);
        tell(entry.persistent, event, told);
      }
      this.#dropIfEmpty(path, entry);
    }
    if (name === 'children') return;
    for (let above = this.#recursiveCount === 0 ? '' : path; above !== ''; above = parentOf(above)) {
      const recursive = this.#entries.get(above)?.recursive;
      if (recursive !== undefined) tell(recursive, event, told);
    }
    if (name === 'created' || name === 'deleted') this.#deriveChildren(parentOf(path), zxid);
  }

  onDisconnected(): void {
    this.keepsModes = null;
    for (const [path, entry] of this.#entries) {
      entry.isPersistentSent = false;
      entry.isRecursiveSent = false;
      entry.persistentAsked = 0;
      entry.recursiveAsked = 0;
      entry.hasCovered = false;
      entry.isWidened = false;
      entry.narrowing = null;
      entry.childrenZxid = null;
      this.#dropIfEmpty(path, entry);
    }
    for (const listener of this.#allListeners()) listener.onWatchSuspended();
  }

  /** The requests that arm everything on a new connection, and let the server report what one-shot watches missed. */
  rearmRequests(lastZxid: number): SetWatchesRequest[] {
    return this.#setWatches(this.#entries, lastZxid);
  }

  onRearmed(sameSession: boolean): void {
    for (const listener of this.#allListeners()) listener.onWatchRearmed(sameSession);
  }

  /** No event follows. */
  end(reason: WatchEnd): void {
    const listeners = this.#allListeners();
    this.#entries.clear();
    this.#recursiveCount = 0;
    for (const listener of listeners) listener.onWatchEnded(reason);
  }

  /** 'children' of a path with a recursive watch, from what happened to a direct child. */
  #deriveChildren(path: string, zxid: bigint | null): void {
    const entry = this.#entries.get(path);
    if (entry === undefined || entry.child.size + entry.persistent.size === 0) return;
    if (entry.recursive.size === 0 && !entry.isWidened) return;
    if (zxid !== null && zxid === entry.childrenZxid) return;
    entry.childrenZxid = zxid;
    const event: WatchEvent = { type: 'children', path, zxid };
    const told = new Set<WatchListener>();
    consume(entry.child, event, told);
    tell(entry.persistent, event, told);
    this.#dropIfEmpty(path, entry);
  }

  #setWatches(entries: Iterable<[string, Entry]>, relativeZxid: number): SetWatchesRequest[] {
    const requests: SetWatchesRequest[] = [];
    let batch = new Batch();
    for (const [path, entry] of entries) {
      if (entry.data.size > 0) batch.add('dataWatches', path);
      if (entry.exist.size > 0) batch.add('existWatches', path);
      if (entry.child.size > 0) batch.add('childWatches', path);
      if (entry.persistent.size + entry.persistentAsked > 0) batch.add('persistentWatches', path);
      if (entry.recursive.size + entry.recursiveAsked > 0) batch.add('persistentRecursiveWatches', path);
      if (batch.length < BATCH_LENGTH) continue;
      requests.push(batch.toRequest(relativeZxid));
      batch = new Batch();
    }
    if (batch.length > 0) requests.push(batch.toRequest(relativeZxid));
    return requests;
  }

  #allListeners(): Set<WatchListener> {
    const listeners = new Set<WatchListener>();
    for (const entry of this.#entries.values()) {
      for (const kind of KINDS) for (const listener of entry[kind]) listeners.add(listener);
    }
    return listeners;
  }

  #entryOf(path: string): Entry {
    let entry = this.#entries.get(path);
    if (entry === undefined) {
      entry = new Entry();
      this.#entries.set(path, entry);
    }
    return entry;
  }

  #dropIfEmpty(path: string, entry: Entry): void {
    if (entry.isEmpty) this.#entries.delete(path);
  }
}

/** The listeners of one path. */
class Entry {
  readonly data: Set<WatchListener> = new Set();
  readonly exist: Set<WatchListener> = new Set();
  readonly child: Set<WatchListener> = new Set();
  readonly persistent: Set<WatchListener> = new Set();
  readonly recursive: Set<WatchListener> = new Set();
  /** An addWatch of that mode has left on this connection; its reply may not have come yet. */
  isPersistentSent = false;
  isRecursiveSent = false;
  /** On this connection, something here was left to a persistent or recursive watch that stands here. */
  hasCovered = false;
  /** On this connection, a recursive watch delivers the events of persistent ones, which were not set by themselves, or not yet. */
  isWidened = false;
  /** The removal of that watch, in whose place the others are set; its reply has not come. */
  narrowing: Request | null = null;
  /** How many of them have no reply yet. */
  persistentAsked = 0;
  recursiveAsked = 0;
  /** zxid of the last 'children' event, to deliver it once. */
  childrenZxid: bigint | null = null;

  askedOf(kind: WatchKind): number {
    if (kind === 'persistent') return this.persistentAsked;
    return kind === 'recursive' ? this.recursiveAsked : 0;
  }

  /** Events of the removed watch may be on their way until its removal is answered. */
  narrowBehind(removal: Request, kind: 'persistent' | 'recursive'): void {
    if (kind === 'recursive') this.isWidened = true;
    this.narrowing = removal;
  }

  /** A persistent or recursive watch stands here, or will in a moment. */
  get hasLasting(): boolean {
    return this.isPersistentSent || this.isRecursiveSent || this.persistent.size > 0 || this.recursive.size > 0;
  }

  get isEmpty(): boolean {
    const hasOneShots = this.data.size > 0 || this.exist.size > 0 || this.child.size > 0;
    return !this.hasLasting && !hasOneShots && !this.isWidened;
  }
}

type ListName = 'dataWatches' | 'existWatches' | 'childWatches' | 'persistentWatches' | 'persistentRecursiveWatches';

/** The paths of one setWatches. */
class Batch {
  /** Characters of all paths. */
  length = 0;
  readonly #lists: Record<ListName, string[]> = {
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };

  add(list: ListName, path: string): void {
    this.#lists[list].push(path);
    this.length += path.length + 1;
  }

  /** Without persistent watches the older operation does, which servers before 3.6 know. */
  toRequest(relativeZxid: number): SetWatchesRequest {
    const { persistentWatches, persistentRecursiveWatches } = this.#lists;
    const isPlain = persistentWatches.length + persistentRecursiveWatches.length === 0;
    return { op: isPlain ? OpCode.setWatches : OpCode.setWatches2, relativeZxid, ...this.#lists };
  }
}

/** Characters of paths in one setWatches, as other clients batch them; far below jute.maxbuffer. */
const BATCH_LENGTH = 128 * 1024;

const KINDS: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];

const EVENT_NAMES: ReadonlyMap<number, WatchEventType> = new Map([
  [EventType.nodeCreated, 'created'],
  [EventType.nodeDeleted, 'deleted'],
  [EventType.nodeDataChanged, 'changed'],
  [EventType.nodeChildrenChanged, 'children'],
]);

/** Notifies each listener once, however many lists contain it. */
function tell(listeners: Set<WatchListener>, event: WatchEvent, told: Set<WatchListener>): void {
  if (listeners.size === 0) return;
  for (const listener of [...listeners]) {
    if (told.has(listener)) continue;
    told.add(listener);
    listener.onWatchEvent(event);
  }
}

function consume(listeners: Set<WatchListener>, event: WatchEvent, told: Set<WatchListener>): void {
  if (listeners.size === 0) return;
  const waiting = [...listeners];
  listeners.clear();
  for (const listener of waiting) {
    if (told.has(listener)) continue;
    told.add(listener);
    listener.onWatchEvent(event);
  }
}
