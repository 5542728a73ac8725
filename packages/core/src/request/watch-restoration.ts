import { ErrorCode, EventType, Perm, type SetWatchesRequest, ZXID_NONE } from '@meerkat/protocol';
import { OPEN_ACL_ID } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import { WatchEvent, type WatchManager } from '../watch/watch-manager.ts';
import { WatchMode } from '../watch/watch-table.ts';
import type { Client, LongRead } from './client.ts';
import { SLICE_STEPS } from './long-read.ts';
import type { ReadAccess } from './read-access.ts';
import type { WorkMeter } from './work-meter.ts';

export interface WatchRestorationParts {
  readonly tree: DataTree;
  readonly watches: WatchManager;
  readonly access: ReadAccess;
  readonly work: WorkMeter;
}

/**
 * setWatches: a reconnected client sets its watches again and sends the last zxid that it saw (DataTree.setWatches). If
 * a znode has changed since, an event is sent at once, before the reply and with zxid −1; the other watches are
 * registered.
 *
 * A znode that the client may no longer read always counts as changed, so the client reads it, gets NOAUTH and learns
 * nothing else. Otherwise it could find the znode's mzxid by trying different zxids, and the time of a later change by
 * checking whether the watch still exists.
 *
 * With many watches it takes several turns; each watch is checked on its own, against the tree at that time.
 */
export class WatchRestoration implements LongRead {
  readonly holdsEvents = false;
  readonly heldBytes = 0;
  readonly #request: SetWatchesRequest;
  readonly #client: Client;
  readonly #parts: WatchRestorationParts;
  /** Index of the current list in `LISTS`. */
  #list = 0;
  /** The rest of it; null: not begun. */
  #paths: Iterator<string> | null = null;

  constructor(request: SetWatchesRequest, client: Client, parts: WatchRestorationParts) {
    this.#request = request;
    this.#client = client;
    this.#parts = parts;
  }

  advance(): boolean {
    let left = Math.ceil(SLICE_STEPS / STEPS_PER_WATCH);
    while (left > 0 && this.#client.isOpen && this.#restoreNext()) left--;
    this.#parts.work.add(SLICE_STEPS);
    return left > 0;
  }

  answer(client: Client, xid: number, receivedMs: number): void {
    client.output.beginReply(xid, this.#parts.tree.lastZxid, ErrorCode.ok);
    client.output.endReply(receivedMs);
  }

  drop(): void {}

  /** @returns false when no watch is left */
  #restoreNext(): boolean {
    for (; this.#list < LISTS.length; this.#list++) {
      const list = LISTS[this.#list]!;
      this.#paths ??= this.#request[list][Symbol.iterator]();
      const { done, value: path } = this.#paths.next();
      if (done !== true) {
        this.#restore(list, path);
        return true;
      }
      this.#paths = null;
    }
    return false;
  }

  #restore(list: (typeof LISTS)[number], path: string): void {
    const { watches } = this.#parts;
    if (list === 'dataWatches') this.#restoreData(path);
    else if (list === 'existWatches') this.#restoreExist(path);
    else if (list === 'childWatches') this.#restoreChild(path);
    else if (list === 'persistentWatches') watches.addPersistent(path, this.#client);
    else watches.addRecursive(path, this.#client);
  }

  #restoreData(path: string): void {
    const { tree, watches } = this.#parts;
    const znode = tree.znodes.find(path);
    if (znode === 0) this.#notifyAgain(EventType.nodeDeleted, path);
    else if (tree.mzxidOf(znode) > this.#request.relativeZxid || !this.#mayRead(znode))
      this.#notifyAgain(EventType.nodeDataChanged, path);
    else watches.data.add(path, this.#client, WatchMode.standard);
  }

  #restoreExist(path: string): void {
    const { tree, watches } = this.#parts;
    if (tree.znodes.find(path) !== 0) this.#notifyAgain(EventType.nodeCreated, path);
    else watches.data.add(path, this.#client, WatchMode.standard);
  }

  #restoreChild(path: string): void {
    const { tree, watches } = this.#parts;
    const znode = tree.znodes.find(path);
    if (znode === 0) this.#notifyAgain(EventType.nodeDeleted, path);
    else if (tree.pzxidOf(znode) > this.#request.relativeZxid || !this.#mayRead(znode))
      this.#notifyAgain(EventType.nodeChildrenChanged, path);
    else watches.child.add(path, this.#client, WatchMode.standard);
  }

  #mayRead(znode: number): boolean {
    return this.#parts.access.check(znode, Perm.read, this.#client.identities) === ErrorCode.ok;
  }

  /** Sent regardless of the ACL: it only tells whether the znode exists, which any client may know. */
  #notifyAgain(type: EventType, path: string): void {
    this.#client.onWatchEvent(new WatchEvent(type, path, ZXID_NONE, OPEN_ACL_ID));
  }
}

/** A lookup in the tree and a table entry or an event. */
const STEPS_PER_WATCH = 8;

/** In the order of the record. */
const LISTS = [
  'dataWatches',
  'existWatches',
  'childWatches',
  'persistentWatches',
  'persistentRecursiveWatches',
] as const;
