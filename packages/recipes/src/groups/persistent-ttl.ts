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
  /** Milliseconds that the znode outlives its keeper. The service looks now and then, so it may be some seconds more. */
  readonly ttlMs: number;
  /** What the znode holds. Default: empty. */
  readonly data?: Data | undefined;
  /** How often within `ttlMs` it is kept alive, at least 1. Default 2. */
  readonly touchesPerTtl?: number | undefined;
}

/**
 * A znode that outlives its session, but not for long: it is deleted by the service when no client has kept it for `ttlMs`.
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
    const attempt = new Attempt(this.#client, options, about);
    await attempt.waitFor((givenUp) => this.#touched.when(() => true, givenUp));
  }

  /**
   * Changes what it holds. Resolves when it holds that, or something that was set later.
   *
   * @throws RequestTooLargeError, QuotaExceededError, NoAuthError when the service refuses it: it stays as it is; what has ended
   *   its keeping, if anything has; TimeoutError, AbortedError, also when it is closed first: whether it was written, `outcome` says
   */
  async set(data: Data, options: CallOptions = {}): Promise<void> {
    const draft = new Draft(data, ++this.#revision);
    this.#wanted = draft;
    await this.#whileOpen('PersistentTtl.set', options, async (attempt) => {
      this.#expectOpen(attempt.about);
      // What was set later was refused.
      if (this.#wanted.revision < draft.revision) this.#wanted = draft;
      await this.#write(attempt).catch((error: unknown) => {
        if (isRefusal(error) && this.#wanted === draft) this.#wanted = this.#held;
        throw error;
      });
    });
  }

  /** Keeps it no more. It goes when its time has passed, unless another client keeps it. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#end(new AbortedError({ ...this.#about, detail: 'it was closed' }));
    await this.#finished;
  }

  /** Keeps it no more, and deletes it at once. */
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

  /** The child only below a znode of ours: as a parent that is missing it would have no data, and no time to live. */
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
        // What it was given first is tried as long as there is nothing else.
        throw this.#wanted === this.#held ? error : this.#wanted.explain(error, this.path);
      });
      // What was set later is not undone by a repetition either.
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

  /** With its data, if it is not there. */
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

  /** Gives up when it is closed, too: it makes nothing any more that `delete` has not found. */
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

  /** What was deleted with `delete` does not come back by a repetition, and what no client keeps any more is not written. */
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

/** As Curator calls it. */
const TOUCH = 'touch';

/** Another client keeps it, or it is gone. */
function unlessKept(error: unknown): void {
  if (!(error instanceof NoNodeError || error instanceof NotEmptyError)) throw error;
}

function unlessThere(error: unknown): void {
  if (!(error instanceof NodeExistsError)) throw error;
}
