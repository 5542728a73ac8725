import { NotHeldError } from '../kernel/not-held-error.ts';

/**
 * A store outside of the service, in which only one holder at a time may write a key. It compares and writes in one
 * step: only this protects against a holder that was paused between its last check of `isHeld` and its write.
 */
export interface FencedStore<Key, Value> {
  /**
   * Writes, and keeps the token, unless a larger token has been kept for this key.
   *
   * @returns false when it was refused
   */
  write(key: Key, value: Value, token: bigint): Promise<boolean>;
}

/** What a store can be fenced by: a lock, a lease, a leadership, an item of a queue. */
export interface Fence {
  readonly token: bigint;
  readonly isHeld: boolean;
  /** The znode that stands for it, for the error. */
  readonly path?: string | undefined;
}

/** What writes to a store on behalf of something that is held. */
export interface FencedWriter<Key, Value> {
  /** @throws NotHeldError when it is known not to be held, or the store has seen a later holder */
  write(key: Key, value: Value): Promise<void>;
}

/**
 * Binds a store to what is held.
 *
 * @example
 * const accounts = fence(lock, new AccountStore(database));
 * await accounts.write('ann', 70);
 */
export function fence<Key, Value>(held: Fence, store: FencedStore<Key, Value>): FencedWriter<Key, Value> {
  const { path = 'what the store is fenced by' } = held;
  return {
    async write(key, value) {
      if (!held.isHeld) throw new NotHeldError(path, held.token, 'nothing was written');
      const isWritten = await store.write(key, value, held.token);
      if (isWritten) return;
      throw new NotHeldError(
        path,
        held.token,
        'the store has seen a larger token than this one, and has refused the write',
      );
    },
  };
}
