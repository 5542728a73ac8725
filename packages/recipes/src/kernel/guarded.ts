import {
  BadArgumentsError,
  BadVersionError,
  type CallOptions,
  type Client,
  type CreatedInTransaction,
  type CreateOptions,
  type Data,
  type Done,
  NoNodeError,
  type Stat,
  type Transaction,
  TransactionError,
  type TransactionResult,
  type VersionOptions,
} from '@meerkat/client';
import { isSessionEnd } from './failures.ts';
import { NotHeldError } from './not-held-error.ts';

/** What writes are guarded by. */
export interface Guard {
  /** The znode that represents the ownership: as long as it exists, there is no other holder. */
  readonly path: string;
  readonly token: bigint;
  readonly isHeld: boolean;
  /** Aborts with the reason why it is no longer held. */
  readonly signal: AbortSignal;
  /** Where the znodes of all holders have the same path: what identifies ours. */
  readonly generation?: Generation | undefined;
}

/** A znode whose version changes with each holder. */
export interface Generation {
  readonly path: string;
  /** Its version while we hold it. */
  readonly version: number;
}

/** The error for what is no longer held. */
export function lapse({ path, token, signal }: Pick<Guard, 'path' | 'token' | 'signal'>): NotHeldError {
  const reason: unknown = signal.reason;
  if (reason instanceof NotHeldError) return new NotHeldError(path, token, reason.why, { cause: reason.cause });
  // The clock has passed the deadline before the timer fired.
  return new NotHeldError(path, token, 'no answer of the service came for too long');
}

/**
 * Writes that are applied only while something is held. Each is a transaction that begins with a check of the znode
 * that represents it, so the service decides, at the write's place in the order of all writes: a holder that was paused
 * for an hour between its last check of `isHeld` and this request is refused.
 *
 * @example
 * await lock.guarded.set('/account/7', balance);
 */
export class Guarded {
  readonly #client: Client;
  readonly #guards: readonly Guard[];

  constructor(client: Client, guards: readonly Guard[]) {
    this.#client = client;
    this.#guards = guards;
  }

  /** @throws NotHeldError; NoNodeError, BadVersionError as the client's `set` */
  async set(path: string, data: Data, { version, ...options }: VersionOptions = {}): Promise<Stat> {
    const [stat] = await this.#single((transaction) => transaction.set(path, data, { version }), options);
    return stat;
  }

  /** @throws NotHeldError; NodeExistsError, NoNodeError as the client's `create` */
  async create(path: string, data?: Data, options: CreateOptions = {}): Promise<CreatedInTransaction> {
    const { signal, timeoutMs, ...shape } = options;
    const [created] = await this.#single((transaction) => transaction.create(path, data, shape), { signal, timeoutMs });
    return created;
  }

  /** @throws NotHeldError; NoNodeError, BadVersionError, NotEmptyError as the client's `delete` */
  async delete(path: string, { version, ...options }: VersionOptions = {}): Promise<void> {
    await this.#single((transaction) => transaction.delete(path, { version }), options);
  }

  /**
   * Several writes, applied all or none, while it is held.
   *
   * @returns the results of what `build` has added
   * @throws NotHeldError; TransactionError, whose `index` counts what `build` has added
   * @throws BadArgumentsError when `build` returns another transaction than it was given
   * @example
   * const [stat] = await lock.guarded.commit((transaction) => transaction.set('/a', '1').delete('/b'));
   */
  async commit<Results extends readonly TransactionResult[]>(
    build: (transaction: Transaction<[]>) => Transaction<Results>,
    options?: CallOptions,
  ): Promise<Results> {
    const guards = this.#guards;
    const lapsed = guards.find(({ isHeld }) => !isHeld);
    if (lapsed !== undefined) throw lapse(lapsed);
    const transaction: Transaction<Done[]> = this.#client.transaction();
    for (const { path, generation } of guards) {
      transaction.check(path);
      if (generation !== undefined) transaction.check(generation.path, { version: generation.version });
    }
    const checks = transaction.size;
    // The type covers only what comes after the checks.
    const built = build(transaction as unknown as Transaction<[]>);
    if ((built as unknown) !== transaction) {
      const detail = 'nothing would check whether it is held: add to the transaction that is given, and return it';
      throw new BadArgumentsError({ operation: 'guarded.commit', path: null, detail });
    }
    try {
      const results: readonly TransactionResult[] = await built.commit(options);
      return results.slice(checks) as readonly TransactionResult[] as Results;
    } catch (error) {
      throw this.#toCallerError(error);
    }
  }

  /** A single write: throws its own error instead of the transaction's. */
  async #single<Results extends readonly TransactionResult[]>(
    build: (transaction: Transaction<[]>) => Transaction<Results>,
    options: CallOptions,
  ): Promise<Results> {
    try {
      return await this.commit(build, options);
    } catch (error) {
      throw error instanceof TransactionError ? error.cause : error;
    }
  }

  #toCallerError(error: unknown): unknown {
    // The znodes are deleted with the session: what was not applied will not be applied any longer.
    if (isSessionEnd(error) && error.outcome === 'not-applied') {
      const [guard] = this.#guards;
      if (guard !== undefined)
        return new NotHeldError(guard.path, guard.token, 'the session is over', { cause: error });
    }
    if (!(error instanceof TransactionError)) return error;
    const { index, operations, cause } = error;
    const checked = this.#guards.flatMap((guard) => (guard.generation === undefined ? [guard] : [guard, guard]));
    const guard = checked[index];
    if (guard === undefined) {
      const count = checked.length;
      return new TransactionError(index - count, operations.slice(count), cause);
    }
    if (cause instanceof NoNodeError)
      return new NotHeldError(guard.path, guard.token, 'its znode does not exist', { cause });
    if (cause instanceof BadVersionError)
      return new NotHeldError(guard.path, guard.token, 'another client has held it since', { cause });
    return cause;
  }
}
