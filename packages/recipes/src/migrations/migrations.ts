import {
  BadArgumentsError,
  BadVersionError,
  type CallOptions,
  type Client,
  joinPath,
  NoNodeError,
  type Transaction,
  TransactionError,
  type TransactionResult,
  text,
  ZooKeeperError,
} from '@meerkat/client';
import { Attempt } from '../kernel/attempt.ts';
import { bestEffort } from '../kernel/background.ts';
import { makeUuidHex } from '../kernel/layout.ts';
import { LossStreak } from '../kernel/loss-streak.ts';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { isSame } from '../kernel/same-bytes.ts';
import { compareBySequence } from '../kernel/sequence.ts';
import { Semaphore } from '../locks/semaphore.ts';
import { digestOf, type Migration } from './migration-digest.ts';

export interface MigrationsOptions {
  /** The parent of the locks, one per set by its name. Default '/migrations/locks'. */
  readonly lockPath?: string | undefined;
  /** The parent of the notes, by the name of each set. Default '/migrations/meta'. */
  readonly metaPath?: string | undefined;
}

/** The result of applying a set. */
export interface MigrationReport {
  /** The number of migrations of the set that are applied now. */
  readonly total: number;
  /** How many of them were applied by this call. */
  readonly applied: number;
}

/** The set does not continue what was applied under its name: nothing was done. */
export class MigrationMismatchError extends Error {
  /** Of the set. */
  readonly id: string;
  /** Index of the migration that differs; the number of migrations in the set when more than these were applied. */
  readonly index: number;

  constructor(id: string, index: number, detail: string) {
    super(`the migrations ${id} cannot be applied: ${detail}; migrations that were applied must stay as they were`);
    this.name = 'MigrationMismatchError';
    this.id = id;
    this.index = index;
  }
}

/**
 * Changes of a tree that are applied in order and once, whichever process starts first: every process calls `apply` at
 * its start, with all migrations so far.
 *
 * 1. Each migration is one transaction, together with the note that it was applied. A failed one leaves nothing, and
 *    later ones are not tried.
 * 2. Two processes never apply the same one: they take a lock, and should its holder have been paused, the service
 *    refuses its transaction, which is conditional on the version of the list of notes that it has seen.
 * 3. What was applied is compared by a hash: a set that was changed afterwards is refused.
 *
 * @example
 * const migrations = new Migrations(client);
 * await migrations.apply('shop', [
 *   [{ kind: 'create', path: '/shop' }, { kind: 'create', path: '/shop/items' }],
 *   [{ kind: 'set', path: '/shop', data: 'v2' }],
 * ]);
 */
export class Migrations {
  readonly #client: Client;
  readonly #lockPath: string;
  readonly #metaPath: string;

  constructor(client: Client, options: MigrationsOptions = {}) {
    const { lockPath = '/migrations/locks', metaPath = '/migrations/meta' } = options;
    this.#client = client;
    this.#lockPath = lockPath;
    this.#metaPath = metaPath;
  }

  /**
   * Applies those migrations of a set that have not been applied yet, across lost connections and sessions.
   *
   * @param id of the set, which must never change: the name of a znode, without slashes
   * @throws MigrationMismatchError; TransactionError when the service refuses a migration: its `index` is that of the
   *   operation; RequestTooLargeError when servers close the connection because of its size; TimeoutError,
   *   AbortedError, ClosedError: a part may be applied; of outcome 'not-applied' when certainly none was by this call
   */
  async apply(id: string, migrations: readonly Migration[], options: CallOptions = {}): Promise<MigrationReport> {
    checkId(id);
    const metaPath = joinPath(this.#metaPath, id);
    const about = { operation: 'Migrations.apply', path: metaPath };
    const attempt = new Attempt(this.#client, options, about, { awaitsQuorum: true });
    const run = new MigrationRun(attempt, id, metaPath, migrations);
    await attempt.run(() => attempt.through(() => this.#complete(run, attempt)));
    return run.report;
  }

  /** Applies the rest of a set, under the lock. */
  async #complete(run: MigrationRun, attempt: Attempt): Promise<void> {
    const lock = new Semaphore(this.#client, joinPath(this.#lockPath, run.id), { leasesMax: 1 });
    for (;;) {
      if (await run.isComplete()) return;
      const lease = await lock.acquire(attempt.next());
      try {
        while (!(await run.isComplete())) await run.next(lease.path);
        return;
      } catch (error) {
        // Another client has it now: start again.
        if (!(error instanceof NotHeldError)) throw error;
      } finally {
        await bestEffort(attempt, lease.release());
      }
    }
  }

  /** The number of applied migrations of a set. */
  async appliedCount(id: string, options: CallOptions = {}): Promise<number> {
    checkId(id);
    const path = joinPath(this.#metaPath, id);
    const stat = await this.#client.exists(path, { ...options, read: 'linearizable' });
    return stat?.numChildren ?? 0;
  }
}

/** With a slash in it, its lock and its notes would be among those of another set. */
function checkId(id: string): void {
  if (id !== '' && !id.includes('/')) return;
  const detail = `the id of a set is a name without slashes, not '${id}'`;
  throw new BadArgumentsError({ operation: 'Migrations', path: null, detail });
}

/** One call of `apply`. */
class MigrationRun {
  readonly #client: Client;
  readonly #attempt: Attempt;
  readonly id: string;
  readonly #metaPath: string;
  readonly #migrations: readonly Migration[];
  readonly #digests: readonly Uint8Array[];
  /** How many were applied at the last look, and at which version of the list. */
  #done: Pick<Notes, 'version' | 'marks'> & { readonly count: number } = { count: 0, version: -1, marks: [] };
  #applied = 0;
  /**
   * The marks of transactions that were sent without a reply and have not been applied so far: in a session that is
   * considered lost, one may be applied after the next look.
   */
  readonly #doubtful: Set<string> = new Set();
  /** Of the next migration. */
  readonly #losses = new LossStreak();

  constructor(attempt: Attempt, id: string, metaPath: string, migrations: readonly Migration[]) {
    this.#client = attempt.client;
    this.#attempt = attempt;
    this.id = id;
    this.#metaPath = metaPath;
    this.#migrations = migrations;
    this.#digests = migrations.map(digestOf);
  }

  get report(): MigrationReport {
    return { total: this.#migrations.length, applied: this.#applied };
  }

  /** Reads what has been applied. @throws MigrationMismatchError */
  async isComplete(): Promise<boolean> {
    const notes = await this.#readNotes();
    const count = notes.digests.length;
    for (const [i, digest] of notes.digests.entries()) {
      const own = this.#digests[i];
      if (own === undefined) {
        throw new MigrationMismatchError(this.id, i, `${count} have been applied, and there are only ${i} here`);
      }
      if (!isSame(own, digest)) {
        throw new MigrationMismatchError(this.id, i, `number ${i + 1} is another one than was applied`);
      }
    }
    for (const mark of notes.marks) if (this.#doubtful.delete(mark)) this.#applied++;
    if (count !== this.#done.count) this.#losses.end();
    this.#done = { count, version: notes.version, marks: notes.marks };
    return count === this.#migrations.length;
  }

  /**
   * Applies the next one, if no other client has.
   *
   * @throws NotHeldError when the lock is no longer ours; RequestTooLargeError, since a server closes the connection
   *   without a reply when a request is larger than its limit: it would be retried forever
   */
  async next(leasePath: string): Promise<void> {
    const { count, version, marks } = this.#done;
    const mark = makeUuidHex(this.#client.surroundings.random);
    if (version < 0) {
      await this.#client.ensurePath(this.#metaPath, this.#attempt.next());
      return;
    }
    this.#losses.check({ operation: 'Migrations.apply', path: this.#metaPath });
    const migration = this.#migrations[count] ?? [];
    const transaction: Transaction<TransactionResult[]> = this.#client.transaction();
    for (const operation of migration) {
      const { path } = operation;
      switch (operation.kind) {
        case 'create': {
          const { mode, sequential, ttlMs, acl } = operation;
          transaction.create(path, operation.data ?? '', { mode, sequential, ttlMs, acl });
          break;
        }
        case 'set':
          transaction.set(path, operation.data, { version: operation.version });
          break;
        case 'delete':
          transaction.delete(path, { version: operation.version });
          break;
        default:
          transaction.check(path, { version: operation.version });
      }
    }
    transaction
      .create(joinPath(this.#metaPath, NOTE), this.#digests[count] ?? null, { sequential: true })
      // Raises the version that other clients have seen, and identifies the transaction as ours should its reply be
      // lost.
      .set(this.#metaPath, [mark, ...marks].slice(0, MARKS_MAX).join('\n'), { version })
      .check(leasePath);
    try {
      await transaction.commit(this.#attempt.next());
      this.#attempt.doubt();
      this.#applied++;
      this.#losses.end();
    } catch (error) {
      this.#losses.noted(this.#attempt.noted(error), sizeOf(migration));
      if (error instanceof ZooKeeperError && error.outcome === 'unknown') this.#doubtful.add(mark);
      if (!(error instanceof TransactionError)) throw error;
      const { index, operations, cause } = error;
      if (index < migration.length) {
        // The operations that we have added to the migration are an internal matter.
        const operation = `Migrations.apply (migration ${count + 1} of ${this.id})`;
        throw new TransactionError(index, operations.slice(0, migration.length), cause, operation);
      }
      // Another client was faster: the next look shows its progress.
      if (cause instanceof BadVersionError) return;
      if (cause instanceof NoNodeError) throw new NotHeldError(leasePath, 0n, 'its znode does not exist', { cause });
      throw error;
    }
  }

  async #readNotes(): Promise<Notes> {
    const options = { ...this.#attempt.next(), read: 'linearizable' } as const;
    try {
      const { children, stat } = await this.#client.children(this.#metaPath, options);
      const names = children.toSorted(compareBySequence);
      const notes = await Promise.all(names.map((name) => this.#client.get(joinPath(this.#metaPath, name), options)));
      // After the list: newer data than its version is harmless, since our transaction is refused then.
      const { data } = await this.#client.get(this.#metaPath, { ...options, codec: text });
      return { digests: notes.map((note) => note.data), version: stat.version, marks: data.split('\n') };
    } catch (error) {
      if (error instanceof NoNodeError) return { digests: [], version: -1, marks: [] };
      throw error;
    }
  }
}

/** Bytes, approximately. */
function sizeOf(migration: Migration): number {
  const sizes = migration.map(
    (operation) => operation.path.length + ('data' in operation ? (operation.data?.length ?? 0) : 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The applied migrations. */
interface Notes {
  /** In order. */
  readonly digests: readonly Uint8Array[];
  /** Of the list; −1: it does not exist. */
  readonly version: number;
  /** Of the latest transactions, the newest first. */
  readonly marks: readonly string[];
}

/** The number of latest transactions that their senders can recognize. */
const MARKS_MAX = 100;

/** Named as in Curator. */
const NOTE = 'meta-';
