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
import { setWatchesOf } from './set-watches.ts';
import type { WatchEnd, WatchEvent, WatchEventType, WatchKind, WatchListener } from './watch-listener.ts';
import { WatchedPath } from './watched-path.ts';

/**
 * The listeners of each watch: the client's image of the server's state for its connection.
 *
 * A server has one entry per connection and path. Since 3.9 the entry is a set of modes; before, the mode that was set
 * last replaces the others, so that `get` with a watch would silently end a recursive watch on the same path. Hence two
 * rules, which hold on every server:
 *
 * 1. A persistent or recursive watch on exactly that path serves the one-shot watches too, and the server is not asked
 *    for them (`isCovered`), unless it is known to keep modes separate.
 * 2. A recursive watch has no 'children' events. They are derived from the creation and deletion of a direct child. A
 *    server that keeps modes separate sends them as well; the zxid shows that it is the same change. Before 3.9, the
 *    replay for a watch that waited for the child to exist looks the same: a list may then be reported as new once too
 *    often.
 */
export class Watches {
  readonly #entries: Map<string, WatchedPath> = new Map();
  #recursiveCount = 0;
  /** Whether the connected server keeps the modes of a path separate (3.9 and newer); null = not known yet. */
  keepsModes: boolean | null = null;

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Number of paths with a watch. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Called before a request with a one-shot watch is sent.
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

  /**
   * Called before an addWatch is sent.
   *
   * @returns the mode to send: a recursive watch is never replaced by a plain one
   */
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

  /** The reply to an addWatch has arrived, successful or not, wanted or not. */
  onAddWatchAnswered(path: string, mode: number): void {
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    if (mode === AddWatchMode.persistentRecursive) entry.recursiveAsked--;
    else entry.persistentAsked--;
  }

  /** An addWatch of which `onAddWatchSent` was notified is not sent after all. */
  onAddWatchUnsent(path: string, mode: number): void {
    this.onAddWatchAnswered(path, mode);
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    if (mode === AddWatchMode.persistentRecursive) {
      entry.isRecursiveSent = entry.recursiveAsked + entry.recursive.size > 0;
    } else entry.isPersistentSent = entry.persistentAsked + entry.persistent.size > 0;
    this.#dropIfEmpty(path, entry);
  }

  /** The reply to a request with a watch: the server has the watch now, if the reply is one that sets it. */
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
   * @returns true when this was the last listener of its kind on that path, so that the server's watch can be removed;
   *   false while an addWatch for another one is in flight, which a later removal would undo
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
   * The requests that remove the last persistent or recursive watch of a path from the server. A server with one mode
   * per path can only drop the whole entry; the other watches there are then rearmed.
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
      // Before this was known of the server, others were left to the watch to be removed, or it was requested as a
      // recursive one. They are armed first, so that nothing is lost in between. The removal is by kind only: a read in
      // flight may set a one-shot watch.
      const isWhole = kind === 'persistent' && entry.isWidened && entry.recursive.size + entry.recursiveAsked === 0;
      const rest = setWatchesOf([[path, entry]], lastZxid);
      if (isWhole || kind === 'recursive') entry.narrowBehind(own, kind);
      return isWhole ? [...rest, { ...own, watcherType: persistentRecursive }, own] : [...rest, own];
    }
    // Without the recursive watch nothing has changed for the server: the entry is still recursive.
    if (kind === 'persistent' && entry !== undefined && entry.recursive.size > 0) return [];
    // Nor may the whole entry be removed while an addWatch of the other mode is in flight.
    if (entry !== undefined && entry.persistentAsked + entry.recursiveAsked > 0) return [];
    const whole: Request = { op: OpCode.removeWatches, path, watcherType: WatcherType.any };
    if (entry === undefined) return [whole];
    entry.narrowBehind(whole, kind);
    return [whole, ...setWatchesOf([[path, entry]], lastZxid)];
  }

  /** The reply to the last of `removalRequests` has arrived, or never will. */
  onRemovalAnswered(removal: Request, path: string): void {
    const entry = this.#entries.get(path);
    if (entry?.narrowing !== removal) return;
    entry.narrowing = null;
    entry.isWidened = false;
    this.#dropIfEmpty(path, entry);
  }

  /** There is a persistent or recursive watch on this path, or will be in a moment. */
  hasLasting(path: string): boolean {
    return this.#entries.get(path)?.hasLasting === true;
  }

  /** The requests that arm all watches of one path; the server reports what they have missed. */
  rearmRequestsOf(path: string, lastZxid: number): SetWatchesRequest[] {
    const entry = this.#entries.get(path);
    return entry === undefined ? [] : setWatchesOf([[path, entry]], lastZxid);
  }

  /** Handles a notification. One-shot watches are removed. */
  onEvent(type: number, path: string, zxid: bigint | null): void {
    const name = EVENT_NAMES.get(type);
    if (name === undefined) return;
    const event: WatchEvent = { type: name, path, zxid };
    const notified = new Set<WatchListener>();
    const entry = this.#entries.get(path);
    if (entry !== undefined) {
      if (name === 'children') {
        if (zxid === null || zxid !== entry.childrenZxid) {
          entry.childrenZxid = zxid;
          consume(entry.child, event, notified);
          notify(entry.persistent, event, notified);
        }
      } else {
        consume(entry.data, event, notified);
        consume(entry.exist, event, notified);
        if (name === 'deleted') consume(entry.child, event, notified);
        notify(entry.persistent, event, notified);
      }
      this.#dropIfEmpty(path, entry);
    }
    if (name === 'children') return;
    for (let above = this.#recursiveCount === 0 ? '' : path; above !== ''; above = parentOf(above)) {
      const recursive = this.#entries.get(above)?.recursive;
      if (recursive !== undefined) notify(recursive, event, notified);
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

  /**
   * The requests that rearm all watches on a new connection, and make the server report what one-shot watches missed.
   */
  rearmRequests(lastZxid: number): SetWatchesRequest[] {
    return setWatchesOf(this.#entries, lastZxid);
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

  /** Derives 'children' of a path with a recursive watch from the change of a direct child. */
  #deriveChildren(path: string, zxid: bigint | null): void {
    const entry = this.#entries.get(path);
    if (entry === undefined || entry.child.size + entry.persistent.size === 0) return;
    if (entry.recursive.size === 0 && !entry.isWidened) return;
    if (zxid !== null && zxid === entry.childrenZxid) return;
    entry.childrenZxid = zxid;
    const event: WatchEvent = { type: 'children', path, zxid };
    const notified = new Set<WatchListener>();
    consume(entry.child, event, notified);
    notify(entry.persistent, event, notified);
    this.#dropIfEmpty(path, entry);
  }

  #allListeners(): Set<WatchListener> {
    const listeners = new Set<WatchListener>();
    for (const entry of this.#entries.values()) {
      for (const kind of KINDS) for (const listener of entry[kind]) listeners.add(listener);
    }
    return listeners;
  }

  #entryOf(path: string): WatchedPath {
    let entry = this.#entries.get(path);
    if (entry === undefined) {
      entry = new WatchedPath();
      this.#entries.set(path, entry);
    }
    return entry;
  }

  #dropIfEmpty(path: string, entry: WatchedPath): void {
    if (entry.isEmpty) this.#entries.delete(path);
  }
}

const KINDS: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive'];

const EVENT_NAMES: ReadonlyMap<number, WatchEventType> = new Map([
  [EventType.nodeCreated, 'created'],
  [EventType.nodeDeleted, 'deleted'],
  [EventType.nodeDataChanged, 'changed'],
  [EventType.nodeChildrenChanged, 'children'],
]);

/** Notifies each listener once, however many lists contain it. */
function notify(listeners: Set<WatchListener>, event: WatchEvent, notified: Set<WatchListener>): void {
  if (listeners.size === 0) return;
  for (const listener of [...listeners]) {
    if (notified.has(listener)) continue;
    notified.add(listener);
    listener.onWatchEvent(event);
  }
}

function consume(listeners: Set<WatchListener>, event: WatchEvent, notified: Set<WatchListener>): void {
  if (listeners.size === 0) return;
  const waiting = [...listeners];
  listeners.clear();
  for (const listener of waiting) {
    if (notified.has(listener)) continue;
    notified.add(listener);
    listener.onWatchEvent(event);
  }
}
