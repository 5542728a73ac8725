import {
  AddWatchMode,
  type AddWatchRequest,
  ErrorCode,
  EventType,
  OpCode,
  type SetWatchesRequest,
  type WatcherTypeRequest,
  ZXID_NONE,
} from '@meerkat/protocol';
import { OPEN_ACL_ID } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import { isWatcherType, WatchEvent, type WatchManager } from '../watch/watch-manager.ts';
import { WatchMode } from '../watch/watch-table.ts';
import type { Client } from './client.ts';

/** Requests about watches alone: no znode is read and no permission needed. */
export class WatchRequests {
  readonly #tree: DataTree;
  readonly #watches: WatchManager;

  constructor(tree: DataTree, watches: WatchManager) {
    this.#tree = tree;
    this.#watches = watches;
  }

  change(request: AddWatchRequest | WatcherTypeRequest, client: Client): ErrorCode {
    const { path } = request;
    switch (request.op) {
      case OpCode.addWatch:
        if (request.mode === AddWatchMode.persistent) this.#watches.addPersistent(path, client);
        else if (request.mode === AddWatchMode.persistentRecursive) this.#watches.addRecursive(path, client);
        else return ErrorCode.marshallingError;
        return ErrorCode.ok;
      case OpCode.checkWatches:
        if (!isWatcherType(request.watcherType)) return ErrorCode.marshallingError;
        return this.#watches.has(path, client, request.watcherType) ? ErrorCode.ok : ErrorCode.noWatcher;
      case OpCode.removeWatches:
        if (!isWatcherType(request.watcherType)) return ErrorCode.marshallingError;
        return this.#watches.remove(path, client, request.watcherType) ? ErrorCode.ok : ErrorCode.noWatcher;
    }
  }

  /**
   * A client that comes back sets its watches again and says the last zxid it saw (DataTree.setWatches). What changed
   * since is told at once, before the reply and with zxid −1; the other watches are registered.
   */
  setWatches(request: SetWatchesRequest, client: Client): void {
    const tree = this.#tree;
    const { relativeZxid } = request;
    for (const path of request.dataWatches) {
      const znode = tree.find(path);
      if (znode === 0) this.#tellAgain(client, EventType.nodeDeleted, path);
      else if (tree.mzxidOf(znode) > relativeZxid) this.#tellAgain(client, EventType.nodeDataChanged, path);
      else this.#watches.data.add(path, client, WatchMode.standard);
    }
    for (const path of request.existWatches) {
      const znode = tree.find(path);
      if (znode !== 0) this.#tellAgain(client, EventType.nodeCreated, path);
      else this.#watches.data.add(path, client, WatchMode.standard);
    }
    for (const path of request.childWatches) {
      const znode = tree.find(path);
      if (znode === 0) this.#tellAgain(client, EventType.nodeDeleted, path);
      else if (tree.pzxidOf(znode) > relativeZxid) this.#tellAgain(client, EventType.nodeChildrenChanged, path);
      else this.#watches.child.add(path, client, WatchMode.standard);
    }
    for (const path of request.persistentWatches) this.#watches.addPersistent(path, client);
    for (const path of request.persistentRecursiveWatches) this.#watches.addRecursive(path, client);
  }

  /** Told without looking at the ACL, as Apache does: the client knew the znode when it set the watch. */
  #tellAgain(client: Client, type: EventType, path: string): void {
    client.onWatchEvent(new WatchEvent(type, path, ZXID_NONE, OPEN_ACL_ID));
  }
}
