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
 * setWatches: a client that comes back sets its watches again and says the last zxid it saw (DataTree.setWatches). What
 * changed since is told at once, before the reply and with zxid −1; the other watches are registered.
 *
 * What the client may not read any more has changed, whatever zxid it names: so it comes to read, and to NOAUTH, and
 * knows no more than that. A znode's mzxid would else be found by asking again and again, and so would the moment of a
 * later change, by asking whether the watch is still there.
 *
 * With many watches it takes several turns: each is looked at by itself, at its own moment.
 */
export class WatchRestoration implements LongRead {
  readonly holdsEvents = false;
  readonly heldBytes = 0;
  readonly #request: SetWatchesRequest;
  readonly #client: Client;
  readonly #parts: WatchRestorationParts;
  /** Index of the list that is gone through, in `LISTS`. */
  #list = 0;
  /** What is left of it; null: all of it. */
  #paths: Iterator<string> | null = null;

  constructor(request: SetWatchesRequest, client: Client, parts: WatchRestorationParts) {
    this.#request = request;
    this.#client = client;
    this.#parts = parts;
  }

  goOn(): boolean {
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

  /** @returns false when there is none left */
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
    if (znode === 0) this.#tellAgain(EventType.nodeDeleted, path);
    else if (tree.mzxidOf(znode) > this.#request.relativeZxid || !this.#mayRead(znode))
      this.#tellAgain(EventType.nodeDataChanged, path);
    else watches.data.add(path, this.#client, WatchMode.standard);
  }

  #restoreExist(path: string): void {
    const { tree, watches } = this.#parts;
    if (tree.znodes.find(path) !== 0) this.#tellAgain(EventType.nodeCreated, path);
    else watches.data.add(path, this.#client, WatchMode.standard);
  }

  #restoreChild(path: string): void {
    const { tree, watches } = this.#parts;
    const znode = tree.znodes.find(path);
    if (znode === 0) this.#tellAgain(EventType.nodeDeleted, path);
    else if (tree.pzxidOf(znode) > this.#request.relativeZxid || !this.#mayRead(znode))
      this.#tellAgain(EventType.nodeChildrenChanged, path);
    else watches.child.add(path, this.#client, WatchMode.standard);
  }

  #mayRead(znode: number): boolean {
    return this.#parts.access.check(znode, Perm.read, this.#client.identities) === ErrorCode.ok;
  }

  /** Whatever the ACL says: it tells no more than that there is such a znode or none, which everybody may know. */
  #tellAgain(type: EventType, path: string): void {
    this.#client.onWatchEvent(new WatchEvent(type, path, ZXID_NONE, OPEN_ACL_ID));
  }
}

/** Each is a look-up in the tree and an entry in a table, or an event. */
const STEPS_PER_WATCH = 8;

/** In the order of the record. */
const LISTS = [
  'dataWatches',
  'existWatches',
  'childWatches',
  'persistentWatches',
  'persistentRecursiveWatches',
] as const;
