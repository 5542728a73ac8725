import { AddWatchMode, type AddWatchRequest, ErrorCode, OpCode, type WatcherTypeRequest } from '@meerkat/protocol';
import { isWatcherType, type WatchManager } from '../watch/watch-manager.ts';
import type { Client } from './client.ts';

/** Requests that only affect watches: they read no znode and need no permission. */
export class WatchRequests {
  readonly #watches: WatchManager;

  constructor(watches: WatchManager) {
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
}
