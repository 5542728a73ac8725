import {
  AbortedError,
  type About,
  type Acl,
  type CallOptions,
  type Client,
  ClosedError,
  type Data,
  joinPath,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  OPEN,
} from '@meerkat/client';
import { onAbort } from '../abort.ts';
import { checkCount } from '../bounds.ts';
import { COSTLY_PAUSE_MS, Draft, isRefusal } from './draft.ts';
import { Latest } from './latest.ts';
import { pause, untilDone, untilDoneWithin, withLimits } from './persistence.ts';

export interface PersistentTtlOptions {
  /** Milliseconds that the znode outlives its keeper. The service looks now and then, so it may be some seconds more. */
  readonly ttlMs: number;
  /** What the znode holds. Default: empty. */
  readonly data?: Data | undefined;
  /** Who may do what with it. Default: everybody everything. */
  readonly acl?: readonly Acl[] | undefined;
  /** How often within `ttlMs` it is kept alive, at least 1. Default 2. */
  readonly touchesPerTtl?: number | undefined;
}

/**
 * A znode that outlives its session, but not for long: it is deleted by the service when nobody has kept it for `ttlMs`.
 * For what must bridge a restart or a lost session, which an ephemeral cannot.
 *
 *     <path>          made with a TTL; holds the data
 *     <path>/touch    made with the same TTL, and written again and again: as long as it is there, its parent stays
 *
 * The znodes are those of Curator's PersistentTtlNode. Writing to the child fires no watch on the znode itself. The servers
 * must know TTLs: Apache's need `zookeeper.extendedTypesEnabled=true`. Any number of keepers may keep one znode.
 *
 * @example
 * await using lease = new PersistentTtl(client, '/leases/printer', { ttlMs: 60_000, data: 'host1' });
 * await lease.whenPresent();
 */
export class PersistentTtl implements AsyncDisposable {
  readonly path: string;
  readonly #client: Client;
  readonly #ttlMs: number;
  readonly #acl: readonly Acl[];
  readonly #touchMs: number;
  readonly #closing = new AbortController();
  /** Whether the last touch has found the znode, or made it. */
  readonly #touched: Latest<true> = new Latest();
  readonly #finished: Promise<void>;
  /** Of what was given to `set` last. */
  #revision = 0;
  /** What it holds, or will. */
  #wanted: Draft;
  /** What it was given first, or was seen to take last: what it is made with. */
  #held: Draft;

  constructor(client: Client, path: string, options: PersistentTtlOptions) {
    const { ttlMs, data = '', acl = OPEN, touchesPerTtl = 2 } = options;
    checkCount('touchesPerTtl', touchesPerTtl);
    this.path = path;
    this.#client = client;
    this.#ttlMs = ttlMs;
    this.#held = new Draft(data);
    this.#wanted = this.#held;
    this.#acl = acl;
    this.#touchMs = ttlMs / touchesPerTtl;
    this.#finished = this.#run();
  }

  get data(): Data {
    return this.#wanted.data;
  }

  /** Resolves when it has been there once, found or made. @throws UnimplementedError when the service knows no TTLs; TimeoutError, AbortedError */
  async whenPresent(options: CallOptions = {}): Promise<void> {
    const about = { operation: 'whenPresent', path: this.path };
    await withLimits(this.#client, options, about, (signal) => this.#touched.when(() => true, signal));
  }

  /**
   * Changes what it holds. Resolves when it holds that, or something that was set later.
   *
   * @throws RequestTooLargeError, QuotaExceededError, NoAuthError when the service refuses it: it stays as it is; what has ended
   *   its keeping, if anything has; TimeoutError, AbortedError, also when it is closed first: whether it was written, `outcome` tells
   */
  async set(data: Data, options: CallOptions = {}): Promise<void> {
    const draft = new Draft(data, ++this.#revision);
    this.#wanted = draft;
    const about = { operation: 'PersistentTtl.set', path: this.path };
    await untilDoneWithin(this.#client, options, about, async (signal) => {
      this.#expectOpen(about);
      // What was set later was refused.
      if (this.#wanted.revision < draft.revision) this.#wanted = draft;
      await this.#unlessClosed(signal, (open) => this.#write(open)).catch((error: unknown) => {
        if (isRefusal(error) && this.#wanted === draft) this.#wanted = this.#held;
        throw error;
      });
    });
  }

  /** Keeps it no more. It goes when its time has passed, unless somebody else keeps it. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#end(new AbortedError({ operation: 'PersistentTtl', path: this.path, detail: 'it was closed' }));
    await this.#finished;
  }

  /** Keeps it no more, and deletes it at once. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.close();
    const about = { operation: 'PersistentTtl.delete', path: this.path };
    await untilDoneWithin(this.#client, options, about, async (signal) => {
      for (const path of [joinPath(this.path, TOUCH), this.path]) {
        await this.#client.delete(path, { signal }).catch((error: unknown) => {
          // Somebody else keeps it.
          if (!(error instanceof NoNodeError || error instanceof NotEmptyError)) throw error;
        });
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    try {
      while (!signal.aborted) {
        await untilDone(this.#client, signal, () => this.#touch(signal));
        this.#touched.publish(true);
        await pause(this.#client, signal, this.#touchMs);
      }
    } catch (error) {
      this.#end(error as Error);
    }
  }

  async #touch(signal: AbortSignal): Promise<void> {
    const child = joinPath(this.path, TOUCH);
    try {
      await this.#client.set(child, '', { signal });
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      await this.#makeBoth(child, signal);
    }
  }

  /** The child only below a znode of ours: as a parent that is missing it would have no data, and no time to live. */
  async #makeBoth(child: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#make(signal);
      try {
        await this.#client.create(child, '', { ttlMs: this.#ttlMs, acl: this.#acl, signal }).catch(unlessThere);
        return;
      } catch (error) {
        // Somebody has deleted it in between.
        if (!(error instanceof NoNodeError)) throw error;
      }
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#make(signal).catch((error: unknown) => {
        // What it was given first is tried as long as there is nothing else.
        throw this.#wanted === this.#held ? error : this.#wanted.explain(error, this.path);
      });
      // What was set later is not undone by a repetition either.
      const draft = this.#wanted;
      try {
        await this.#client.set(this.path, draft.data, { signal });
        draft.written();
        this.#held = draft;
        return;
      } catch (error) {
        // Somebody has deleted it in between.
        if (!(error instanceof NoNodeError)) throw draft.failed(error, this.path);
      }
    }
  }

  /** With its data, if it is not there. */
  async #make(signal: AbortSignal): Promise<void> {
    const shape = { ttlMs: this.#ttlMs, acl: this.#acl, parentMode: 'container', signal } as const;
    const draft = this.#held.isCostly ? this.#wanted : this.#held;
    if (draft.isCostly) await pause(this.#client, signal, COSTLY_PAUSE_MS);
    try {
      await this.#client.createParents(this.path, draft.data, shape);
      draft.written();
    } catch (error) {
      draft.failed(error, this.path);
      unlessThere(error);
    }
  }

  /** Gives an attempt up when it is closed, too: it makes nothing any more that `delete` has not found. */
  async #unlessClosed(signal: AbortSignal, attempt: (open: AbortSignal) => Promise<void>): Promise<void> {
    const cut = new AbortController();
    if (signal.aborted) cut.abort(signal.reason);
    const releases = [signal, this.#closing.signal].map((each) => onAbort(each, () => cut.abort(each.reason)));
    try {
      await attempt(cut.signal);
    } finally {
      for (const release of releases) release();
    }
  }

  /** What was deleted with `delete` does not come back by a repetition, and what nobody keeps any more is not written. */
  #expectOpen(about: About): void {
    if (this.#touched.failure !== null) throw this.#touched.failure;
    if (!this.#closing.signal.aborted) return;
    throw new AbortedError({ ...about, outcome: 'not-applied', detail: 'it was closed' });
  }

  #end(reason: Error): void {
    const isGood = reason instanceof AbortedError || reason instanceof ClosedError;
    this.#touched.end(isGood ? null : reason, reason);
  }
}

/** As Curator calls it. */
const TOUCH = 'touch';

function unlessThere(error: unknown): void {
  if (!(error instanceof NodeExistsError)) throw error;
}
