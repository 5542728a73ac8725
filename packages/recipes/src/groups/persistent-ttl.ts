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
  onAbort,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { checkCount } from '../kernel/bounds.ts';
import { Latest } from '../kernel/latest.ts';
import type { ZnodeOptions } from '../kernel/options.ts';
import { COSTLY_PAUSE_MS, Draft, isRefusal } from './draft.ts';

export interface PersistentTtlOptions extends ZnodeOptions {
  /**
   * Milliseconds that the znode outlives its keeper. The service checks periodically, so it may be some seconds more.
   */
  readonly ttlMs: number;
  /** The data of the znode. Default: empty. */
  readonly data?: Data | undefined;
  /** How often within `ttlMs` it is touched, at least 1. Default 2. */
  readonly touchesPerTtl?: number | undefined;
}

/**
 * A znode that outlives its session, but not for long: the service deletes it when it has not been kept for `ttlMs`.
 * For state that must bridge a restart or session loss, which an ephemeral znode cannot.
 *
 *     <path>          created with a TTL; holds the data
 *     <path>/touch    created with the same TTL, and written periodically: as long as it exists, its parent stays
 *
 * Same layout as Curator's PersistentTtlNode. Writing to the child fires no watch on the znode itself. The servers must
 * support TTLs: Apache's need `zookeeper.extendedTypesEnabled=true`. Any number of keepers may keep one znode.
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
  /** Whether the last touch has found or created the znode. */
  readonly #touched: Latest<true> = new Latest();
  readonly #finished: Promise<void>;
  /** Of the last call of `set`. */
  #revision = 0;
  /** What it holds, or is to hold. */
  #wanted: Draft;
  /** The initial data, or the data last known to be accepted: what it is created with. */
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

  /**
   * Resolves once it has been found or created.
   *
   * @throws UnimplementedError when the service has no TTLs; TimeoutError, AbortedError
   */
  async whenPresent(options: CallOptions = {}): Promise<void> {
    const about = { operation: 'whenPresent', path: this.path };
    const attempt = new Attempt(this.#client, options, about);
    await attempt.waitFor((givenUp) => this.#touched.when(() => true, givenUp));
  }

  /**
   * Changes its data. Resolves when it holds this data, or data that was set later.
   *
   * @throws RequestTooLargeError, QuotaExceededError, NoAuthError when the service refuses it: it keeps its data; the
   *   error that has ended its keeping, if any; TimeoutError, AbortedError, also when it is closed first: `outcome`
   *   says whether it may have been written
   */
  async set(data: Data, options: CallOptions = {}): Promise<void> {
    const draft = new Draft(data, ++this.#revision);
    this.#wanted = draft;
    await this.#whileOpen('PersistentTtl.set', options, async (attempt) => {
      this.#expectOpen(attempt.about);
      // Later data was refused.
      if (this.#wanted.revision < draft.revision) this.#wanted = draft;
      await this.#write(attempt).catch((error: unknown) => {
        if (isRefusal(error) && this.#wanted === draft) this.#wanted = this.#held;
        throw error;
      });
    });
  }

  /** Stops keeping it. It expires after its time to live, unless another client keeps it. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#end(new AbortedError({ ...this.#about, detail: 'it was closed' }));
    await this.#finished;
  }

  /** Stops keeping it, and deletes it at once. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.close();
    const about = { operation: 'PersistentTtl.delete', path: this.path };
    const attempt = new Attempt(this.#client, options, about, { awaitsQuorum: true });
    await attempt.run(async () => {
      for (const path of [joinPath(this.path, TOUCH), this.path]) {
        await attempt.apply((call) => this.#client.delete(path, call)).catch(unlessKept);
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const attempt = new Attempt(this.#client, { signal }, this.#about, { awaitsQuorum: true });
    try {
      while (!signal.aborted) {
        await attempt.through(() => this.#touch(attempt));
        this.#touched.publish(true);
        await attempt.pause(this.#touchMs);
      }
    } catch (error) {
      this.#end(error as Error);
    }
  }

  async #touch(attempt: Attempt): Promise<void> {
    const child = joinPath(this.path, TOUCH);
    try {
      await this.#client.set(child, '', attempt.next());
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      await this.#makeBoth(child, attempt);
    }
  }

  /** The child only below a znode of ours: created as a missing parent, that would have no data and no time to live. */
  async #makeBoth(child: string, attempt: Attempt): Promise<void> {
    for (;;) {
      await this.#make(attempt);
      try {
        const shape = { ttlMs: this.#ttlMs, acl: this.#acl, ...attempt.next() };
        await this.#client.create(child, '', shape).catch(unlessThere);
        return;
      } catch (error) {
        // It was deleted in between.
        if (!(error instanceof NoNodeError)) throw error;
      }
    }
  }

  async #write(attempt: Attempt): Promise<void> {
    for (;;) {
      await this.#make(attempt).catch((error: unknown) => {
        // The initial data is retried as long as there is nothing else.
        throw this.#wanted === this.#held ? error : this.#wanted.explain(error, this.path);
      });
      // A retry must not undo a later `set` either.
      const draft = this.#wanted;
      try {
        await this.#client.set(this.path, draft.data, attempt.next());
        draft.written();
        this.#held = draft;
        return;
      } catch (error) {
        // It was deleted in between.
        if (!(error instanceof NoNodeError)) throw draft.failed(error, this.path);
      }
    }
  }

  /** Creates it with its data, if it does not exist. */
  async #make(attempt: Attempt): Promise<void> {
    const draft = this.#held.isCostly ? this.#wanted : this.#held;
    if (draft.isCostly) await attempt.pause(COSTLY_PAUSE_MS);
    try {
      const shape = { ttlMs: this.#ttlMs, acl: this.#acl, parentMode: 'container', ...attempt.next() } as const;
      await this.#client.createParents(this.path, draft.data, shape);
      draft.written();
    } catch (error) {
      draft.failed(error, this.path);
      unlessThere(error);
    }
  }

  /** Also ends when it is closed: then it creates nothing that `delete` has not found. */
  async #whileOpen(operation: string, options: CallOptions, write: (attempt: Attempt) => Promise<void>): Promise<void> {
    const cut = new AbortController();
    const signals = [options.signal, this.#closing.signal];
    const releases = signals.map((signal) => onAbort(signal, () => cut.abort(signal?.reason)));
    const about = { operation, path: this.path };
    const attempt = new Attempt(this.#client, { ...options, signal: cut.signal }, about, { awaitsQuorum: true });
    try {
      await attempt.run(() => attempt.apply(() => write(attempt)));
    } finally {
      for (const release of releases) release();
    }
  }

  /** A retry does not recreate what `delete` has deleted, and does not write what is no longer kept. */
  get #about(): About {
    return { operation: 'PersistentTtl', path: this.path };
  }

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

/** As named by Curator. */
const TOUCH = 'touch';

/** Another client keeps it, or it is gone. */
function unlessKept(error: unknown): void {
  if (!(error instanceof NoNodeError || error instanceof NotEmptyError)) throw error;
}

function unlessThere(error: unknown): void {
  if (!(error instanceof NodeExistsError)) throw error;
}
