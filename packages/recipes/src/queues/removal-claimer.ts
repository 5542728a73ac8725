import {
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  NotReadOnlyError,
  nullableBytes,
  parentOf,
  TransactionError,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { withoutSequence } from '../kernel/sequence.ts';
import { type Claim, type Claimer, refused } from './claim.ts';
import type { QueuePaths } from './layout.ts';
import type { Tally } from './tally.ts';

/** Claims items by deleting them, for queues whose other consumers do that: items of a consumer that dies are lost. */
export class RemovalClaimer implements Claimer {
  readonly leavesPlace = false;
  readonly #client: Client;
  readonly #paths: QueuePaths;
  readonly #tally: Tally;

  constructor(client: Client, paths: QueuePaths, tally: Tally) {
    this.#client = client;
    this.#paths = paths;
    this.#tally = tally;
  }

  async claim(name: string): Promise<Claim | null> {
    const path = joinPath(this.#paths.items, name);
    const lost = this.#client.lostSignal;
    const attempt = new Attempt(this.#client, {}, { operation: 'claim', path });
    while (!lost.aborted) {
      try {
        const { data, stat } = await attempt.through((call) =>
          this.#client.get(path, { ...call, codec: nullableBytes }),
        );
        // With the tally the deletion is applied once, and whether it was ours is known also when the reply was lost.
        await this.#tally.commit((transaction) => transaction.delete(path, { version: stat.version }));
        return new RemovedClaim(this.#client, { name, path, data, token: stat.czxid }, this.#tally);
      } catch (error) {
        if (error instanceof NoNodeError) return null;
        if (error instanceof NotReadOnlyError) await attempt.reconnect();
        else if (!(error instanceof TransactionError)) throw error;
        // Its data was changed since it was read: it still exists.
        else if (!(error.cause instanceof BadVersionError)) return refused(error);
      }
    }
    return null;
  }
}

interface Removed {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
}

class RemovedClaim implements Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
  readonly guarded: null = null;
  readonly #client: Client;
  readonly #tally: Tally;
  readonly #end = new AbortController();
  #isDone = false;
  #returning: Promise<void> | null = null;

  constructor(client: Client, { name, path, data, token }: Removed, tally: Tally) {
    this.#client = client;
    this.name = name;
    this.path = path;
    this.data = data;
    this.token = token;
    this.#tally = tally;
  }

  get isHeld(): boolean {
    return !this.#end.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  async done(): Promise<void> {
    if (this.#isDone) return;
    if (!this.isHeld) throw new NotHeldError(this.path, this.token, 'it was released');
    this.#isDone = true;
    this.#end.abort(new NotHeldError(this.path, this.token, 'it is done'));
  }

  async release(options: CallOptions): Promise<void> {
    if (this.#isDone) return;
    if (this.isHeld) this.#end.abort(new NotHeldError(this.path, this.token, 'it was released'));
    // It is nowhere until then, so it continues after the caller's deadline.
    this.#returning ??= this.#settle(this.#putBack());
    const about = { operation: 'QueueItem.release', path: this.path };
    await new Attempt(this.#client, options, about, { isUnderWay: true }).waitFor(this.#returning);
  }

  /** What has certainly not been applied may be retried. */
  #settle(returning: Promise<void>): Promise<void> {
    returning.catch((error: unknown) => {
      if (error instanceof ZooKeeperError && error.outcome === 'not-applied') this.#returning = null;
    });
    return returning;
  }

  async #putBack(): Promise<void> {
    const stem = withoutSequence(this.path);
    const attempt = new Attempt(this.#client, {}, { operation: 'QueueItem.release', path: this.path });
    let isParentMissing = false;
    for (;;) {
      try {
        // It was the last item, and the queue was deleted; or the service did so, if it is a container.
        if (isParentMissing) await attempt.through((call) => this.#client.ensurePath(parentOf(this.path), call));
        isParentMissing = false;
        await this.#tally.commit((transaction) => transaction.create(stem, this.data, { sequential: true }));
        return;
      } catch (error) {
        const isGone = error instanceof TransactionError && error.cause instanceof NoNodeError;
        if (!isGone && !(error instanceof NotReadOnlyError)) throw error;
        if (isGone) isParentMissing = true;
        else await attempt.reconnect();
      }
    }
  }
}
