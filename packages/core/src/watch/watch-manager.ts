import {
  EventType,
  type MultiOp,
  OpCode,
  parentOf,
  WatcherType,
  type WriteRequest,
  type Zxid,
} from '@meerkat/protocol';
import { FiredWatches } from '../base/meters/fired-watches.ts';
import type { TreeEvents } from '../tree/data-tree.ts';
import { type WatcherSet, WatchMode, WatchTable } from './watch-table.ts';

/** A watch event. All watchers of an event share the object, so that it is encoded once. */
export class WatchEvent {
  readonly type: EventType;
  readonly path: string;
  /** Zxid of the txn that fired the watch; −1 for events of setWatches. */
  readonly zxid: Zxid;
  /** ACL that decides which clients may receive it: the znode's, or the parent's for nodeChildrenChanged. */
  readonly aclId: number;
  /** The encoded frame; null until it is first needed. */
  frame: Uint8Array | null = null;

  constructor(type: EventType, path: string, zxid: Zxid, aclId: number) {
    this.type = type;
    this.path = path;
    this.zxid = zxid;
    this.aclId = aclId;
  }
}

/** A connection with watches. Called while the txn is applied, so before any reply that shows the change. */
export interface Watcher {
  onWatchEvent(event: WatchEvent): void;
}

/**
 * The watches of this server's connections; changes of the tree fire them (WatchManager, DataTree).
 *
 * Two tables. *data*: getData, exists and both kinds of persistent watches. *child*: getChildren and persistent
 * watches. A recursive watch is only in the data table and never gets nodeChildrenChanged.
 */
export class WatchManager implements TreeEvents {
  readonly data: WatchTable<Watcher> = new WatchTable();
  readonly child: WatchTable<Watcher> = new WatchTable();
  readonly fired: FiredWatches = new FiredWatches();
  #notifiedCount = 0;

  /** created: data(P), then child(parent). */
  onCreated(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void {
    if (this.#isIdle) return;
    this.#notify(this.data.trigger(path), new WatchEvent(EventType.nodeCreated, path, zxid, aclId));
    this.#notifyChildrenChanged(parentPath, parentAclId, zxid);
  }

  /** deleted: data(P), then child(P) for watchers not yet notified, then child(parent). */
  onDeleted(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void {
    if (this.#isIdle) return;
    const event = new WatchEvent(EventType.nodeDeleted, path, zxid, aclId);
    const notified = this.data.trigger(path);
    this.#notify(notified, event);
    const watchers = this.child.trigger(path);
    if (watchers !== null) {
      this.#count(event, watchers.size);
      for (const watcher of watchers.keys()) if (notified?.has(watcher) !== true) watcher.onWatchEvent(event);
    }
    this.#notifyChildrenChanged(parentPath, parentAclId, zxid);
  }

  onDataChanged(path: string, aclId: number, zxid: Zxid): void {
    if (this.#isIdle) return;
    this.#notify(this.data.trigger(path), new WatchEvent(EventType.nodeDataChanged, path, zxid, aclId));
  }

  addPersistent(path: string, watcher: Watcher): void {
    this.data.add(path, watcher, WatchMode.persistent);
    this.child.add(path, watcher, WatchMode.persistent);
  }

  addRecursive(path: string, watcher: Watcher): void {
    this.data.add(path, watcher, WatchMode.recursive);
  }

  /** Maximum units of work to look for recursive watches on the ancestors of a path. */
  costOf(path: string): number {
    return UNITS_PER_ANCESTOR * Math.min(this.data.recursiveCount, path.length >> 1);
  }

  /** Approximate number of events that a write would fire with the current watches. */
  eventCountOf({ op, path }: WriteRequest | MultiOp): number {
    if (this.#isIdle) return 0;
    switch (op) {
      case OpCode.setData:
        return this.data.countOf(path);
      case OpCode.delete:
        return this.data.countOf(path) + this.child.countOf(path) + this.child.countOf(parentOf(path));
      case OpCode.setACL:
      case OpCode.check:
        return 0;
      default:
        return this.data.countOf(path) + this.child.countOf(parentOf(path));
    }
  }

  /** @returns true when the watcher has a watch of this WatcherType at the path */
  has(path: string, watcher: Watcher, watcherType: number): boolean {
    const { data, child } = MODES_OF_TYPE[watcherType]!;
    return this.data.has(path, watcher, data) || this.child.has(path, watcher, child);
  }

  /** @returns true when something was removed */
  remove(path: string, watcher: Watcher, watcherType: number): boolean {
    const { data, child } = MODES_OF_TYPE[watcherType]!;
    const isInData = this.data.remove(path, watcher, data);
    const isInChild = this.child.remove(path, watcher, child);
    return isInData || isInChild;
  }

  removeWatcher(watcher: Watcher): void {
    this.data.removeWatcher(watcher);
    this.child.removeWatcher(watcher);
  }

  /** Notifications since the start: an event counts once per watcher. */
  get notifiedCount(): number {
    return this.#notifiedCount;
  }

  /** True while watches of closed connections remain to be swept. */
  get hasGone(): boolean {
    return this.data.hasGone || this.child.hasGone;
  }

  /** Removes some of them: as many as fit into one turn. */
  sweep(): void {
    for (const table of [this.data, this.child]) {
      if (table.hasGone) table.sweep(SWEPT_PER_TURN + (table.goneCount >> BACKLOG_SHIFT));
    }
  }

  get #isIdle(): boolean {
    return this.data.count === 0 && this.child.count === 0;
  }

  #notifyChildrenChanged(parentPath: string, parentAclId: number, zxid: Zxid): void {
    this.#notify(
      this.child.trigger(parentPath),
      new WatchEvent(EventType.nodeChildrenChanged, parentPath, zxid, parentAclId),
    );
  }

  #notify(watchers: WatcherSet<Watcher> | null, event: WatchEvent): void {
    if (watchers === null) return;
    this.#count(event, watchers.size);
    for (const watcher of watchers.keys()) watcher.onWatchEvent(event);
  }

  #count({ type }: WatchEvent, watchers: number): void {
    this.fired.onFired(type, watchers);
    this.#notifiedCount += watchers;
  }
}

/** Watches of one table that are swept per turn: a third of a millisecond. */
const SWEPT_PER_TURN = 1024;
/** More if there are many millions, so that they are swept faster than clients can create and abandon them. */
const BACKLOG_SHIFT = 12;

/** 0.2 to 0.5 microseconds. */
const UNITS_PER_ANCESTOR = 4;

const ALL_MODES = WatchMode.standard | WatchMode.persistent | WatchMode.recursive;

/** The modes in each table that a WatcherType refers to. */
const MODES_OF_TYPE: Readonly<Record<number, { readonly data: number; readonly child: number }>> = {
  [WatcherType.children]: { data: 0, child: WatchMode.standard },
  [WatcherType.data]: { data: WatchMode.standard, child: 0 },
  [WatcherType.any]: { data: ALL_MODES, child: ALL_MODES },
  [WatcherType.persistent]: { data: WatchMode.persistent, child: WatchMode.persistent },
  [WatcherType.persistentRecursive]: { data: WatchMode.recursive, child: 0 },
};

export function isWatcherType(watcherType: number): boolean {
  return MODES_OF_TYPE[watcherType] !== undefined;
}
